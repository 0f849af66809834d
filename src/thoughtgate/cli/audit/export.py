"""``thoughtgate audit export``: print the record in formats for other systems."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from typer import Option

from thoughtgate.cli.audit.source import (
    Place,
    find_place,
    open_ledger,
    require_record,
    span,
    write_csv,
)
from thoughtgate.cli.options import (
    ConfigOption,
    RecordOption,
    SinceOption,
    UntilOption,
    examples,
    require_choice,
)
from thoughtgate.cli.output import write_line
from thoughtgate.cli.progress import Progress, Reading
from thoughtgate.record.call_rows import event_time
from thoughtgate.record.export import CSV_CALLS, CallKey, approved_call, flat_event
from thoughtgate.record.ledger_queries import CallFilter, find_calls
from thoughtgate.record.ocsf import Starts, ocsf_event, ocsf_line
from thoughtgate.record.reader import RecordEntry, all_files, read_record
from thoughtgate.record.shared_ledger import shared_ledger
from thoughtgate.record.shared_reader import read_shared

EXPORT_EXAMPLES: Final = examples(
    "thoughtgate audit export --format ocsf --since 1d",
    "thoughtgate audit export --format flat --record audit.jsonl",
    "thoughtgate audit export --format csv > calls.csv",
)

Convert: TypeAlias = Callable[[dict[str, Any], float, Mapping[str, str]], dict[str, Any] | None]
"""Converts an event to an export format; None leaves it out.

The other arguments are the time of the previous line and facts from the start of the call.
"""

Read: TypeAlias = Callable[[bool], AbstractContextManager[tuple[Progress, Iterable[RecordEntry]]]]
"""Reads the whole record; the argument tells whether to show the progress."""

_FORMATS: Final = ("jsonl", "flat", "ocsf", "csv")
_INCOMPLETE: Final = "the line is incomplete"
_NO_TIME: Final = "the time cannot be read, and no earlier line has one"


def export_command(
    *,
    format_: Annotated[
        str, Option("--format", metavar="FORMAT", help="jsonl, flat, ocsf or csv.")
    ] = "jsonl",
    since: SinceOption = "",
    until: UntilOption = "",
    record: RecordOption = None,
    config: ConfigOption = None,
) -> None:
    """Print the record as one JSON object per line, or its calls as CSV.

    Lines that are not events are left out and reported on stderr.
    """
    require_choice("--format", format_, _FORMATS)
    place = find_place(record, config)
    start, end = span(since, until)
    if format_ == "csv":
        with open_ledger(place) as ledger:
            calls = find_calls(ledger.connection, CallFilter(since=start, until=end, limit=0))
        write_csv(CSV_CALLS, calls)
        return
    if place.store is None:
        require_record(place.record)
    with _reading(place) as read:
        _export(read, _converter(format_, read), start, end)


@contextmanager
def _reading(place: Place) -> Iterator[Read]:
    """Return a function that reads the record from its beginning, or the ledger of all gates."""
    if place.store is not None:
        with shared_ledger(place.store) as ledger:
            yield lambda _wanted: nullcontext((Progress(wanted=False), read_shared(ledger)))
    else:
        yield lambda wanted: _read_local(place.record, wanted=wanted)


@contextmanager
def _read_local(record: Path, *, wanted: bool) -> Iterator[tuple[Progress, Iterable[RecordEntry]]]:
    with Reading(all_files(record), wanted=wanted) as progress:
        yield progress, read_record(record, watch=progress.read)


def _converter(format_: str, read: Read) -> Convert:
    if format_ == "ocsf":
        return ocsf_event
    if format_ == "jsonl":
        return lambda event, *_: event
    # A first pass over the record: an approval may come after other lines about its call.
    approved = _approved_calls(read)
    return lambda event, *_: flat_event(event, approved)


def _approved_calls(read: Read) -> frozenset[CallKey]:
    """Return the held calls that were approved and made, possibly long after their verdicts."""
    with read(True) as (_, entries):
        found = (approved_call(entry.event) for entry in entries if entry.line.ended)
        return frozenset(call for call in found if call is not None)


def _export(read: Read, convert: Convert, since: float, until: float) -> None:
    """Print the events between two times; an event without a time gets that of the line before."""
    before, starts = 0.0, Starts()
    # On a terminal, the events themselves show the progress.
    with read(not sys.stdout.isatty()) as (progress, entries):
        for entry in entries:
            at = event_time(entry.event)
            at = at if at > 0 else before
            fault = _fault(entry, timeless=convert is ocsf_event and not at)
            if fault:
                progress.clear()
                sys.stderr.write(f"Warning: {entry.line.file}:{entry.line.number}: {fault}\n")
                continue
            start = starts.said(entry.event)
            if at >= since and (not until or at < until):
                _write(entry, convert(entry.event, before, start))
            before = at


def _fault(entry: RecordEntry, *, timeless: bool) -> str:
    """Return the reason for leaving out a line, or an empty text."""
    if not entry.line.ended:
        return _INCOMPLETE
    return entry.fault or (_NO_TIME if timeless else "")


def _write(entry: RecordEntry, converted: dict[str, Any] | None) -> None:
    if converted is entry.event:
        # Byte for byte as it was written, so that the chain stays valid.
        write_line(entry.line.data.decode())
    elif converted is not None and "class_uid" in converted:
        sys.stdout.write(ocsf_line(converted) + "\n")
    elif converted is not None:
        sys.stdout.write(json.dumps(converted, separators=(",", ":")) + "\n")
