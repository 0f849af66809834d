"""``thoughtgate audit verify``: prove that the record is what was written, or say where not."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from thoughtgate.cli.audit.source import Place, find_place, write_json
from thoughtgate.cli.options import ConfigOption, JsonOption, counted, examples
from thoughtgate.cli.progress import Reading
from thoughtgate.core.envelope import GENESIS
from thoughtgate.errors import EXIT_CONFIG, UsageError
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.record.reader import record_files, verify_record
from thoughtgate.record.verification import OPEN_RUN, TRUNCATED, RecordFinding, Verification
from thoughtgate.stores.process_owner import name_of

VERIFY_EXAMPLES: Final = examples(
    "thoughtgate audit verify",
    "thoughtgate audit verify audit.jsonl --json",
    "thoughtgate audit verify audit.jsonl --key-env AUDIT_KEY",
)

_CHAIN: Final = re.compile(rf"[0-9a-fA-F]{{{len(GENESIS)}}}")

_SHOWN: Final = 50
"""Findings printed for people; ``--json`` has all."""


def verify_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="The record. Default: the one that the config, or its absence, says.",
            show_default=False,
        ),
    ] = None,
    *,
    config: ConfigOption = None,
    key_env: Annotated[
        str,
        typer.Option("--key-env", metavar="NAME", help="Variable with the key of the checkpoints."),
    ] = "",
    anchor: Annotated[
        str | None,
        typer.Option(
            "--anchor",
            metavar="CHAIN",
            help="A chain noted earlier that must be there.",
            show_default=False,
        ),
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Leave the files put aside out of it.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Check that no line of the record was edited, removed, moved, put in or cut off.

    Exit code 0 when it is sound, 1 when it is not, 2 when it cannot be read. Without a key
    a rewriter of the whole file and a tail cut off after its gate ended go unnoticed; signed
    checkpoints find both, except whole runs missing at the end: a record cut right behind an
    earlier closing checkpoint looks like one that ended there. Only an anchor kept elsewhere
    finds that, and it finds the others too. What a gate that runs here has not signed yet is
    a note.
    """
    if anchor is not None and not _CHAIN.fullmatch(anchor):
        raise UsageError(f"--anchor takes a chain, {len(GENESIS)} hex digits, not {anchor!r:.80}")
    place = find_place(file, config)
    if key_env:
        place = place._replace(key=_key(key_env))
    report = _verify(place, (anchor or "").lower(), rotated=not alone)
    if json_:
        write_json(_as_json(place, report))
    else:
        _tell(place, report)
    if not report.is_sound:
        raise typer.Exit(EXIT_CONFIG)


def _key(name: str) -> bytes:
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"the variable {name} is not set")
    return value.encode()


def _verify(place: Place, anchor: str, *, rotated: bool) -> Verification:
    """Verify a record, knowing of a gate that writes it, though it may begin meanwhile."""
    written = bool(place.key) and _is_being_written(place.record)
    while True:
        with Reading(record_files(place.record, rotated=rotated)) as progress:
            report = verify_record(
                place.record,
                key=place.key,
                anchor=anchor,
                rotated=rotated,
                being_written=written,
                watch=progress.read,
            )
        is_open = any(finding.kind == TRUNCATED for finding in report.findings)
        if written or not is_open or not _is_being_written(place.record):
            return report
        written = True


def _is_being_written(record: Path) -> bool:
    """Tell whether a gate of this state directory writes this record now."""
    named = record.resolve()
    return any(
        type(gate.get("record")) is str
        and Path(gate["record"]).resolve() == named
        # One that only cannot be told to be gone, as on another machine, is no excuse.
        and name_of(gate["pid"]) == gate["owner"]
        for gate in list_gates(state_directory(os.environ))
    )


def _as_json(place: Place, report: Verification) -> dict[str, object]:
    return {
        "file": str(place.record),
        "sound": report.is_sound,
        "lines": report.lines,
        "runs": report.runs,
        "checkpoints": report.checkpoints,
        "signatures_checked": bool(place.key),
        "head": report.head,
        "findings": [
            {**finding._asdict(), "fault": finding.is_fault} for finding in report.findings
        ],
    }


def _tell(place: Place, report: Verification) -> None:
    open_runs = sum(finding.kind == OPEN_RUN for finding in report.findings)
    told = [finding for finding in report.findings if finding.kind != OPEN_RUN]
    for finding in told[:_SHOWN]:
        word = "FAULT" if finding.is_fault else "note"
        sys.stdout.write(f"{word}: {_where(finding)}: {finding.kind}: {finding.message}\n")
    if len(told) > _SHOWN:
        sys.stdout.write(f"… and {len(told) - _SHOWN} more; --json lists them\n")
    verdict = "sound" if report.is_sound else "NOT sound"
    lines, runs = counted(report.lines, "line"), counted(report.runs, "run")
    facts = f"{lines}, {runs}, {open_runs} without an end"
    checked = "checked" if place.key else "not checked: no key"
    signed = f"{counted(report.checkpoints, 'checkpoint')} {checked}"
    signed = signed if report.checkpoints or place.key else "not signed"
    sys.stdout.write(f"{place.record}: {verdict}: {facts}; {signed}\nhead {report.head}\n")


def _where(finding: RecordFinding) -> str:
    return f"{finding.file}:{finding.line}" if finding.line else finding.file
