"""Records of several gates, and the ledger in PostgreSQL that they share."""

from collections.abc import Sequence
from pathlib import Path

from tests.support.postgres import PostgresServer
from tests.support.records import RUN, call

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import Record
from thoughtgate.record.file import traffic_path
from thoughtgate.record.shared_ledger import SharedLedger, open_shared_ledger
from thoughtgate.record.shipper import ChainShipper
from thoughtgate.record.writer import RecordWriter
from thoughtgate.stores.open_database import StoreLocation


class Writer:
    """The state directory of one gate, whose record is copied step by step."""

    def __init__(self, directory: Path, name: str, *, rotate_bytes: int = 0) -> None:
        self.state = directory / name
        self.state.mkdir()
        (self.state / "host-id").write_text(name, encoding="ascii")
        self.name = name
        self.path = self.state / "audit.jsonl"
        run = RUN._replace(run_id=f"run-{name}", host_id=name, shim_id=f"shim-{name}")
        self._envelope = Envelope(run)
        self._rotate_bytes = rotate_bytes
        self._calls = 0
        self.shipper = self.new_shipper()

    def new_shipper(self) -> ChainShipper:
        """Return what a gate that was started anew copies with."""
        return ChainShipper(self.path, self.name, self.state)

    def write(self, *records: Record) -> None:
        """Append events to the record."""
        writer = RecordWriter(self.path, self._envelope, rotate_bytes=self._rotate_bytes)
        writer.write(records)
        writer.close()

    def call(self, count: int = 1, *, later: float = 0.0, **changes: str) -> None:
        """Append calls, one batch each; ``later`` than usual by some seconds."""
        for _ in range(count):
            self._calls += 1
            records = call(self._calls, f"run-{self.name}", **changes)
            self.write(*(record._replace(at=record.at + later) for record in records))

    def ship(self, ledger: SharedLedger, shipper: ChainShipper | None = None) -> None:
        """Copy everything that is new."""
        chosen = shipper or self.shipper
        while chosen.ship(ledger):
            pass

    def whole(self) -> bytes:
        """Return the content of all files, in order."""
        files = [*sorted(self.state.glob("audit.jsonl.0*")), self.path]
        return b"".join(file.read_bytes() for file in files if file.exists())

    def lines(self) -> list[bytes]:
        """Return the lines of the current file."""
        return self.path.read_bytes().splitlines(keepends=True)

    def put(self, lines: Sequence[bytes]) -> None:
        """Replace the lines of the current file, in place."""
        self.path.write_bytes(b"".join(lines))


def new_ledger(server: PostgresServer, directory: Path) -> SharedLedger:
    """Open an empty ledger."""
    return open_shared_ledger(StoreLocation(directory, server.url()))


def stored_bytes(ledger: SharedLedger, record: Path) -> bytes:
    """Return what the ledger has of a record, without its traffic."""
    assert record != traffic_path(record)
    files = [file for file in ledger.files() if file.path == str(record)]
    return b"".join(chunk.data for file in files for chunk in ledger.chunks(file.id))
