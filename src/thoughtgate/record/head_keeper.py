"""Keeps the heads of the record files that a gate writes in the store.

Noting a head only assigns a variable; a thread stores it at most once per second, because a
transaction would cost more than the rest of a call. After a kill, the stored head is therefore up
to a second behind the file. Before a head replaces that of another gate, the other gate's head is
compared with the file: if the line that it names is gone, the writer records the loss.
"""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from thoughtgate.errors import StoreError
from thoughtgate.record.file import is_written
from thoughtgate.stores.database import Database
from thoughtgate.stores.engines.sqlite import open_sqlite
from thoughtgate.stores.record_heads import RecordHead, save_head

SAVE_EVERY_S: Final = 1.0

_JOIN_S: Final = 5.0
"""How long closing waits for a transaction of the thread: longer than the store's busy timeout."""


class HeadKeeper:
    """Stores the heads of the files of one gate. Heads are noted from one thread only."""

    def __init__(self, state: Path, say: Callable[[str], None] = lambda _: None) -> None:
        """Use the store in a state directory; ``say`` reports a failure to the operator."""
        self._state = state
        self._say = say
        self._latest: dict[str, RecordHead] = {}
        self._saved: dict[str, RecordHead] = {}
        self._missing: dict[str, int] = {}
        """Files that lack what was written before, with the number of missing bytes, until the loss
        is on the record."""
        self._replaced: set[str] = set()
        """Files whose loss is on the record, so that the old stored head may be replaced."""
        self._database: Database | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._has_failed = False

    def note(self, head: RecordHead) -> None:
        """Remember a head; it is stored soon."""
        self._latest[head.record] = head
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="record heads", daemon=True)
            self._thread.start()
        # Setting an event takes a lock, and the thread needs to be woken only once per save.
        if not self._wake.is_set():
            self._wake.set()

    def missing(self, record: str) -> int:
        """Return the minimum number of bytes that a file lacks, until it is reported; usually 0."""
        return self._missing.get(record, 0)

    def reported(self, record: str) -> None:
        """Note that the loss is on the record."""
        self._missing.pop(record, None)
        self._replaced.add(record)

    def may_remove(self, record: str, number: int) -> bool:
        """Tell whether a rotated file may be removed: the stored head must be in a later one.

        Otherwise the file that the head names would be gone, which only a loss may look like.
        If heads cannot be stored at all, files must still not fill the disk.
        """
        saved = self._saved.get(record)
        return self._has_failed or (saved is not None and saved.number > number)

    def save(self) -> None:
        """Store the latest heads now."""
        with self._lock:
            try:
                self._save()
            except StoreError as error:
                if not self._has_failed:
                    self._has_failed = True
                    self._say(f"{error}; if the end of the record is cut off, nobody will notice")

    def close(self) -> None:
        """Store the latest heads and end the thread."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)
        self.save()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            if not self._stop.is_set():
                self.save()
                self._stop.wait(SAVE_EVERY_S)

    def _save(self) -> None:
        for record, head in list(self._latest.items()):
            if self._saved.get(record) == head:
                continue
            if self._database is None:
                self._database = open_sqlite(self._state)
            if record in self._missing:
                continue  # Until the loss is on the record, the old head is its only evidence.
            replace = record in self._replaced
            gone = save_head(self._database, head, replace=replace, is_kept=self._is_kept)
            if gone is not None:
                size = 0
                with contextlib.suppress(OSError):
                    size = Path(record).stat().st_size
                self._missing[record] = max(1, gone.size - size)
                continue
            self._replaced.discard(record)
            self._saved[record] = head

    def _is_kept(self, stored: RecordHead) -> bool:
        """Tell whether the file still contains what another gate, or an earlier one, wrote.

        If the head is our own, the writer itself notices what is missing with its next line.
        """
        return self._saved.get(stored.record) == stored or is_written(
            Path(stored.record), stored.number, stored.size, stored.chain
        )
