"""What the audit commands share: finding the record, opening the ledger, time spans, CSV."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from thoughtgate.cli.options import read_config
from thoughtgate.cli.output import counted, write_line
from thoughtgate.cli.progress import Progress, Reading
from thoughtgate.config.durations import parse_duration
from thoughtgate.errors import StoreError, UsageError
from thoughtgate.gate.open_governor import record_place, store_location
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.record.call_rows import parse_time
from thoughtgate.record.error_events import error_events
from thoughtgate.record.export import csv_lines
from thoughtgate.record.ledger import MAX_FAULTS, Ledger, ledger_path
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.reader import GONE, all_files, read_entry, read_lines, record_files
from thoughtgate.record.shared_ledger import SharedLedger, shared_ledger
from thoughtgate.record.shared_reader import SharedFollower
from thoughtgate.stores.open_database import StoreLocation

_SHOWN_FAULTS: Final = 5


class Place(NamedTuple):
    """A record and its settings in the config."""

    record: Path
    key: bytes = b""
    """The key with which its checkpoints are signed; empty if there is none."""
    ledger: bool = True
    """Whether a ledger is kept next to it."""
    store: StoreLocation | None = None
    """The store with the ledger of all gates, if they share one."""
    retain_s: float = 0.0
    """How long it is kept; 0 means forever."""


def find_place(record: Path | None, config: str | None) -> Place:
    """Return the record that the options and the config select.

    Raises:
        ConfigError: the config is invalid.
        UsageError: the config writes the record to stderr or stdout.
    """
    if record is not None and config is None:
        return Place(record)
    loaded = read_config(config)
    key = os.environ.get(loaded.settings.audit.sign_key_env or "", "").encode()
    audit = loaded.settings.audit
    if record is not None:
        return Place(record, key, audit.ledger)
    state = state_directory(os.environ)
    place, store = record_place(loaded, state), store_location(loaded, state)
    if store.is_shared:
        return Place(Path(place).absolute(), key, audit.ledger, store, audit.retain_s)
    if place in {"stderr", "stdout"}:
        raise UsageError(
            f"the config (audit.sink) writes the record to {place}, where it cannot be read back; "
            "name a file with --record"
        )
    return Place(Path(place), key, audit.ledger, retain_s=audit.retain_s)


@contextmanager
def open_ledger(place: Place) -> Iterator[Ledger | SharedLedger]:
    """Open the ledger of a record, bring it up to date and report unreadable lines.

    If gates share a store, it is the ledger of all of them. If no ledger is kept, or it cannot be
    opened, a temporary one is used.
    """
    if place.store is not None:
        with shared_ledger(place.store) as shared, Progress() as shown:
            index_ledger(shared, watch=lambda done, left: _show_indexing(shown, done, left))
            shown.clear()
            yield shared
        return
    with ExitStack() as stack:
        ledger = _ledger(place, stack)
        stack.callback(ledger.close)
        with Reading(all_files(place.record)) as progress:
            ingested = ledger.ingest(place.record, progress.read)
        warn_of_faults(ingested.faults)
        if place.retain_s:
            ledger.forget_before(time.time() - place.retain_s)
        yield ledger


def _show_indexing(shown: Progress, done: int, left: int) -> None:
    if shown.is_due():
        shown.show(f"indexing the ledger: {100 * done // max(1, left)} %")


def warn_of_faults(faults: Sequence[tuple[str, int, str]]) -> None:
    """Report unreadable lines on stderr, by file, line and reason."""
    for file, line, fault in faults[:_SHOWN_FAULTS]:
        sys.stderr.write(f"Warning: {file}:{line}: {fault}\n")
    if len(faults) > _SHOWN_FAULTS:
        more = counted(len(faults) - _SHOWN_FAULTS, "more unreadable line")
        sys.stderr.write(f"Warning: {more}\n")


def require_record(record: Path) -> list[Path]:
    """Check that a record has events, and return its files, oldest first.

    An empty file is accepted. A missing current file is reported on stderr.

    Raises:
        StoreError: there is no such record, or it has lines but none of them is an event.
    """
    files = record_files(record)
    if record not in files:
        sys.stderr.write(f"Warning: {record}: {GONE}\n")
    faults = list[tuple[str, int, str]]()
    for line in (line for file in files for line in read_lines(file) if line.data):
        fault = read_entry(line).fault
        if not fault:
            return files
        if len(faults) < MAX_FAULTS:
            faults.append((line.file, line.number, fault))
    if faults:
        warn_of_faults(faults)
        raise StoreError(f"{record} is not a record: it contains no events")
    return files


def _ledger(place: Place, stack: ExitStack) -> Ledger:
    # Checked first, so that no database is created next to a file that is not a record.
    require_record(place.record)
    if place.ledger:
        try:
            return Ledger(ledger_path(place.record))
        except StoreError as error:
            sys.stderr.write(f"Warning: {error}; using a temporary database instead\n")
    directory = stack.enter_context(TemporaryDirectory(prefix="thoughtgate-"))
    return Ledger(Path(directory) / "ledger")


def parse_moment(text: str, now: float) -> float:
    """Parse a point in time, absolute or as an age; an empty text is 0.

    Raises:
        UsageError: it is neither.
    """
    if not text:
        return 0.0
    try:
        return now - parse_duration(text)
    except ValueError:
        # A date alone, and a time without a zone, are in UTC.
        when = parse_time(text) or parse_time(f"{text}T00:00:00Z") or parse_time(f"{text}Z")
    if when is None:
        raise UsageError(f"{text!r} is not a time; use 2h or 3d (ago), or 2026-01-31T12:00:00Z")
    return when


def span(since: str, until: str) -> tuple[float, float]:
    """Return the values of ``--since`` and ``--until`` as times; 0 if not given."""
    now = time.time()
    return parse_moment(since, now), parse_moment(until, now)


def write_csv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows as CSV that is safe to open in a spreadsheet."""
    for line in csv_lines(columns, rows):
        write_line(line.removesuffix("\n"))


def place_events(place: Place, ident: str) -> Iterator[dict[str, Any]]:
    """Yield the events, of all gates that share a store, that may be about an error with this id.

    Raises:
        StoreError: the record cannot be read.
    """
    if place.store is None:
        for file in all_files(place.record):
            yield from error_events(read_lines(file), ident)
        return
    with shared_ledger(place.store) as ledger:
        yield from error_events(SharedFollower(ledger, from_start=True).lines(), ident)
