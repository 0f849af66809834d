"""``thoughtgate audit verify``: check that the record has not been tampered with."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Exit, Option

from thoughtgate.cli.audit.source import Place, find_place
from thoughtgate.cli.options import ConfigOption, JsonOption, examples
from thoughtgate.cli.output import counted, write_report
from thoughtgate.cli.progress import Reading
from thoughtgate.core.envelope import GENESIS
from thoughtgate.errors import EXIT_CONFIG, StoreError, UsageError
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.record.file import traffic_path
from thoughtgate.record.reader import all_files, no_heads, verify_record
from thoughtgate.record.verification import OPEN_RUN, TRUNCATED, Verification
from thoughtgate.stores.process_owner import name_of
from thoughtgate.stores.record_heads import RecordHead, find_head

VERIFY_EXAMPLES: Final = examples(
    "thoughtgate audit verify",
    "thoughtgate audit verify audit.jsonl --json",
    "thoughtgate audit verify audit.jsonl --key-env AUDIT_KEY",
)

_CHAIN: Final = re.compile(rf"[0-9a-fA-F]{{{len(GENESIS)}}}")

_SHOWN: Final = 50
"""Maximum number of findings in the readable output; ``--json`` prints all."""


def verify_command(
    file: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            help="Record to verify. Default: the one that the config names, or the one in the state directory.",
        ),
    ] = None,
    *,
    config: ConfigOption = None,
    key_env: Annotated[
        str,
        Option(metavar="NAME", help="Environment variable that holds the key of the checkpoints."),
    ] = "",
    anchor: Annotated[
        str | None,
        Option(
            metavar="CHAIN",
            help="Head of an earlier verification; the record must still contain it.",
        ),
    ] = None,
    alone: Annotated[
        bool, Option("--alone", help="Verify only this file, without rotated ones.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Check that no line of the record was edited, removed, moved, inserted or cut off.

    The exit code is 0 if the record is sound, 1 if it is not, and 2 if it cannot be read.

    The state directory stores how far each file was written, so an end that was cut off, or
    a file that was emptied or removed, is detected as well. Somebody who can also change the
    state directory can hide that, and can rewrite a file as a whole. Signed checkpoints detect
    both, unless whole runs are missing at the end. An anchor that you keep elsewhere detects
    all of these, up to the line where it was taken.

    Lines that a running gate has not signed yet are reported as a note.
    """
    if anchor is not None and not _CHAIN.fullmatch(anchor):
        raise UsageError(f"--anchor must be {len(GENESIS)} hex digits (got {anchor!r:.80})")
    place = find_place(file, config)
    if key_env:
        place = place._replace(key=_key(key_env))
    report = _verify(place, (anchor or "").lower(), rotated=not alone)
    write_report(_as_json(place, report), _lines(place, report), as_json=json_)
    if not report.is_sound:
        raise Exit(EXIT_CONFIG)


def _key(name: str) -> bytes:
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"--key-env: the environment variable {name} is not set")
    return value.encode()


def _verify(place: Place, anchor: str, *, rotated: bool) -> Verification:
    """Verify a record, taking into account a gate that is writing it or starts to meanwhile."""
    written = bool(place.key) and _is_being_written(place.record)
    while True:
        with Reading(_files(place.record, rotated=rotated)) as progress:
            report = verify_record(
                place.record,
                key=place.key,
                anchor=anchor,
                rotated=rotated,
                being_written=written,
                heads=_stored_head if rotated else no_heads,
                watch=progress.read,
            )
        is_open = any(finding.kind == TRUNCATED for finding in report.findings)
        if written or not is_open or not _is_being_written(place.record):
            return report
        written = True


def _files(record: Path, *, rotated: bool) -> list[Path]:
    """Return the files to read; none if they are gone, which the verification then reports."""
    try:
        return all_files(record, rotated=rotated)
    except StoreError:
        return []


def _stored_head(file: Path) -> RecordHead | None:
    return find_head(Path(state_directory(os.environ)), file)


def _is_being_written(record: Path) -> bool:
    """Return whether a gate with this state directory is writing the record now."""
    named = record.resolve()
    return any(
        type(gate.get("record")) is str
        and Path(gate["record"]).resolve() == named
        # Only a gate that is certainly alive counts; one on another machine might be gone.
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
        "traffic_lines": report.traffic_lines,
        "traffic_head": report.traffic_head,
        "findings": [
            {**finding._asdict(), "fault": finding.is_fault} for finding in report.findings
        ],
    }


def _lines(place: Place, report: Verification) -> Iterator[str]:
    open_runs = sum(finding.kind == OPEN_RUN for finding in report.findings)
    findings = [finding for finding in report.findings if finding.kind != OPEN_RUN]
    for finding in findings[:_SHOWN]:
        word = "FAULT" if finding.is_fault else "note"
        where = f"{finding.file}:{finding.line}" if finding.line else finding.file
        yield f"{word}: {where}: {finding.kind}: {finding.message}"
    if len(findings) > _SHOWN:
        yield f"… and {len(findings) - _SHOWN} more; --json lists all"
    verdict = "sound" if report.is_sound else "NOT sound"
    lines, runs = counted(report.lines, "line"), counted(report.runs, "run")
    facts = f"{lines}, {runs}, {open_runs} without an end"
    checked = "checked" if place.key else "not checked: no key"
    signed = f"{counted(report.checkpoints, 'checkpoint')} {checked}"
    signed = signed if report.checkpoints or place.key else "not signed"
    yield f"{place.record}: {verdict}: {facts}; {signed}"
    yield f"head {report.head}"
    if report.traffic_head:
        traffic = counted(report.traffic_lines, "line")
        yield f"traffic {traffic_path(place.record)}: {traffic}; head {report.traffic_head}"
