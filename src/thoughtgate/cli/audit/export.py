"""``thoughtgate audit export``: the record in the forms that other systems read."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from thoughtgate.cli.audit.source import (
    RecordOption,
    SinceOption,
    UntilOption,
    existing_files,
    find_place,
    open_ledger,
    require_events,
    span,
    write_csv,
)
from thoughtgate.cli.options import ConfigOption, examples
from thoughtgate.cli.progress import Reading
from thoughtgate.errors import UsageError
from thoughtgate.record.call_rows import event_time
from thoughtgate.record.export import CSV_CALLS, CallKey, approved_call, flat_event
from thoughtgate.record.ledger_queries import CallFilter, find_calls
from thoughtgate.record.ocsf import Starts, ocsf_event, ocsf_line
from thoughtgate.record.reader import RecordEntry, read_record, record_files

EXPORT_EXAMPLES: Final = examples(
    "thoughtgate audit export --format ocsf --since 1d",
    "thoughtgate audit export --format flat --record audit.jsonl",
    "thoughtgate audit export --format csv > calls.csv",
)

Shape: TypeAlias = Callable[[dict[str, Any], float, Mapping[str, str]], dict[str, Any] | None]
"""Gives an event in another form; None leaves it out.

It is told the time of the line before, and what the start of the event's call said.
"""

_FORMATS: Final = ("jsonl", "flat", "ocsf", "csv")
_CUT_SHORT: Final = "cut short"
_NO_TIME: Final = "its time cannot be read, and no line before it has one"


def export_command(
    *,
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="jsonl, flat, ocsf or csv.")
    ] = "jsonl",
    since: SinceOption = "",
    until: UntilOption = "",
    record: RecordOption = None,
    config: ConfigOption = None,
) -> None:
    """Print the record on stdout, one JSON object a line, or its calls as CSV.

    Lines that are no events are left out and named on stderr.
    """
    if format_ not in _FORMATS:
        raise UsageError(f"--format is one of jsonl, flat, ocsf and csv, not {format_!r}")
    place = find_place(record, config)
    start, end = span(since, until)
    if format_ == "csv":
        with open_ledger(place) as ledger:
            calls = find_calls(ledger.connection, CallFilter(since=start, until=end, limit=0))
        write_csv(CSV_CALLS, calls)
        return
    require_events(place.record, existing_files(place.record))
    _export(place.record, _shape(format_, place.record), start, end)


def _shape(format_: str, record: Path) -> Shape:
    if format_ == "ocsf":
        return ocsf_event
    if format_ == "jsonl":
        return lambda event, *_: event
    approved = _approved_calls(record)
    return lambda event, *_: flat_event(event, approved)


def _approved_calls(record: Path) -> frozenset[CallKey]:
    """Return the held calls that were made: a person may answer long after the verdict."""
    with Reading(record_files(record)) as progress:
        entries = read_record(record, watch=progress.read)
        found = (approved_call(entry.event) for entry in entries if entry.line.ended)
        return frozenset(call for call in found if call is not None)


def _export(record: Path, shape: Shape, since: float, until: float) -> None:
    """Print the events between two times; one that does not say when stands by the line before."""
    before, starts = 0.0, Starts()
    # On a terminal the events themselves show how far it is.
    with Reading(record_files(record), wanted=not sys.stdout.isatty()) as progress:
        for entry in read_record(record, watch=progress.read):
            at = event_time(entry.event)
            at = at if at > 0 else before
            fault = _fault(entry, timeless=shape is ocsf_event and not at)
            if fault:
                progress.clear()
                sys.stderr.write(f"Warning: {entry.line.file}:{entry.line.number}: {fault}\n")
                continue
            start = starts.said(entry.event)
            if at >= since and (not until or at < until):
                _write(entry, shape(entry.event, before, start))
            before = at


def _fault(entry: RecordEntry, *, timeless: bool) -> str:
    """Return why a line is left out, if it is."""
    if not entry.line.ended:
        return _CUT_SHORT
    return entry.fault or (_NO_TIME if timeless else "")


def _write(entry: RecordEntry, shaped: dict[str, Any] | None) -> None:
    if shaped is entry.event:
        # As it was written, byte for byte: the chain goes with it.
        sys.stdout.write(entry.line.data.decode() + "\n")
    elif shaped is not None and "class_uid" in shaped:
        sys.stdout.write(ocsf_line(shaped) + "\n")
    elif shaped is not None:
        sys.stdout.write(json.dumps(shaped, separators=(",", ":")) + "\n")
