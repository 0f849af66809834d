"""``thoughtgate audit export``: the record in the forms that other systems read."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from thoughtgate.cli.audit_place import (
    RecordOption,
    SinceOption,
    UntilOption,
    existing_files,
    find_place,
    open_ledger,
    span,
    write_csv,
)
from thoughtgate.cli.options import ConfigOption, examples
from thoughtgate.core.export import CSV_CALLS, CallKey, approved_call, flat_event
from thoughtgate.core.folding import event_time
from thoughtgate.core.ocsf import ocsf_event
from thoughtgate.errors import UsageError
from thoughtgate.stores.ledger_queries import CallFilter, find_calls
from thoughtgate.stores.record_reader import read_record

EXPORT_EXAMPLES: Final = examples(
    "thoughtgate audit export --format ocsf --since 1d",
    "thoughtgate audit export --format flat --record audit.jsonl",
    "thoughtgate audit export --format csv > calls.csv",
)

Shape: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Gives an event in another form; None leaves it out."""

_FORMATS: Final[dict[str, Shape]] = {
    "jsonl": lambda event: event,
    "flat": flat_event,
    "ocsf": ocsf_event,
}


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
    place = find_place(record, config)
    start, end = span(since, until)
    if format_ == "csv":
        with open_ledger(place) as ledger:
            calls = find_calls(ledger.connection, CallFilter(since=start, until=end, limit=0))
        write_csv(CSV_CALLS, calls)
        return
    shape = _FORMATS.get(format_)
    if shape is None:
        raise UsageError(f"--format is one of jsonl, flat, ocsf and csv, not {format_!r}")
    existing_files(place.record)
    if shape is flat_event:
        shape = partial(flat_event, approved=_approved_calls(place.record))
    _export(place.record, shape, start, end)


def _approved_calls(record: Path) -> frozenset[CallKey]:
    """Return the held calls that were made: a person may answer long after the verdict."""
    found = (approved_call(entry.event) for entry in read_record(record))
    return frozenset(call for call in found if call is not None)


def _export(record: Path, shape: Shape, since: float, until: float) -> None:
    for entry in read_record(record):
        if entry.fault:
            line = entry.line
            sys.stderr.write(f"Warning: {line.file}:{line.number}: {entry.fault}\n")
            continue
        at = event_time(entry.event)
        if at < since or (until and at >= until):
            continue
        shaped = shape(entry.event)
        if shaped is entry.event:
            # As it was written, byte for byte: the chain goes with it.
            sys.stdout.write(entry.line.data.decode() + "\n")
        elif shaped is not None:
            sys.stdout.write(json.dumps(shaped, separators=(",", ":")) + "\n")
