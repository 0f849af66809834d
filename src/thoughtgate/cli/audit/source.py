"""Which record an audit command reads, from when to when, and how its answers are written."""

import csv
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import typer

from thoughtgate.cli.progress import Reading
from thoughtgate.config.durations import parse_duration
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import StoreError, UsageError
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.open_governor import record_place
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.record.call_rows import parse_time
from thoughtgate.record.ledger import MAX_FAULTS, Ledger, ledger_path
from thoughtgate.record.reader import GONE, read_entry, read_lines, record_files

RecordOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="The record to read. Default: the one that the config, or its absence, says.",
        show_default=False,
    ),
]
SinceOption: TypeAlias = Annotated[
    str, typer.Option("--since", metavar="TIME", help="From: 2h, 3d (ago), or 2026-01-31T12:00Z.")
]
UntilOption: TypeAlias = Annotated[
    str, typer.Option("--until", metavar="TIME", help="Up to: as --since.")
]

_SHOWN_FAULTS: Final = 5


class Place(NamedTuple):
    """A record, and what the config says about it."""

    record: Path
    key: bytes = b""
    """What its checkpoints are signed with."""
    ledger: bool = True
    """Whether a database is kept beside it."""


def find_place(record: Path | None, config: str | None) -> Place:
    """Return the record that is meant.

    Raises:
        ConfigError: the config is wrong.
        UsageError: the config sends the record where it cannot be read back.
    """
    if record is not None and config is None:
        return Place(record)
    loaded = load_configuration(config, os.environ, str(Path.cwd()))
    key = os.environ.get(loaded.settings.audit.sign_key_env or "", "").encode()
    ledger = loaded.settings.audit.ledger
    if record is not None:
        return Place(record, key, ledger)
    place = record_place(loaded, state_directory(os.environ))
    if place in {"stderr", "stdout"}:
        raise UsageError(f"the config sends the record to {place}; name a file with --record")
    return Place(Path(place), key, ledger)


@contextmanager
def open_ledger(place: Place) -> Iterator[Ledger]:
    """Open the ledger of a record and bring it up to date; say what could not be read.

    Where none is kept, or none can be, one is made for the question and thrown away.
    """
    with ExitStack() as stack:
        ledger = _ledger(place, stack)
        stack.callback(ledger.close)
        with Reading(record_files(place.record)) as progress:
            ingested = ledger.ingest(place.record, progress.read)
        warn_of_faults(ingested.faults)
        yield ledger


def warn_of_faults(faults: Sequence[tuple[str, int, str]]) -> None:
    """Name lines that could not be read on stderr, by file, line and reason."""
    for file, line, fault in faults[:_SHOWN_FAULTS]:
        sys.stderr.write(f"Warning: {file}:{line}: {fault}\n")
    if len(faults) > _SHOWN_FAULTS:
        sys.stderr.write(f"Warning: {len(faults) - _SHOWN_FAULTS} more faulty lines\n")


def existing_files(record: Path) -> list[Path]:
    """Return the files of a record, oldest first, and say on stderr when the current one is gone.

    Raises:
        StoreError: there is no such record.
    """
    files = record_files(record)
    if record not in files:
        sys.stderr.write(f"Warning: {record}: {GONE}\n")
    return files


def require_events(record: Path, files: list[Path]) -> None:
    """Refuse a file that is somebody else's; a record without a line yet is none.

    Raises:
        StoreError: there are lines, and none of them is an event.
    """
    faults = list[tuple[str, int, str]]()
    for line in (line for file in files for line in read_lines(file) if line.data):
        fault = read_entry(line).fault
        if not fault:
            return
        if len(faults) < MAX_FAULTS:
            faults.append((line.file, line.number, fault))
    if faults:
        warn_of_faults(faults)
        raise StoreError(f"{record}: this is no record: no line of it is an event")


def _ledger(place: Place, stack: ExitStack) -> Ledger:
    # Before anything is made.
    require_events(place.record, existing_files(place.record))
    if place.ledger:
        try:
            return Ledger(ledger_path(place.record))
        except StoreError as error:
            sys.stderr.write(f"Warning: {error}; answering without it\n")
    directory = stack.enter_context(TemporaryDirectory(prefix="thoughtgate-"))
    return Ledger(Path(directory) / "ledger")


def parse_moment(text: str, now: float) -> float:
    """Read a time: how long ago, or when; 0 for an empty text.

    Raises:
        UsageError: it is neither.
    """
    if not text:
        return 0.0
    try:
        return now - parse_duration(text)
    except ValueError:
        when = parse_time(text) or parse_time(f"{text}T00:00:00Z") or parse_time(f"{text}Z")
    if when is None:
        raise UsageError(f"{text!r} is no time; write 2h or 3d (ago), or 2026-01-31T12:00:00Z")
    return when


def span(since: str, until: str) -> tuple[float, float]:
    """Return the time between ``--since`` and ``--until``."""
    now = time.time()
    return parse_moment(since, now), parse_moment(until, now)


def shown_time(at: float | None) -> str:
    """Return a time for people."""
    return render_time(at)[:19].replace("T", " ") if at else "-"


def write_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def write_csv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows as CSV, safe to open in a spreadsheet."""
    names = list(columns)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(name, row.get(name)) for name in names])
    sys.stdout.write(text.getvalue())


def _cell(name: str, value: Any) -> Any:
    if name.endswith("_at") and isinstance(value, float):
        return render_time(value)
    if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        # A spreadsheet would run it; tool names come from servers.
        return f"'{value}"
    return value
