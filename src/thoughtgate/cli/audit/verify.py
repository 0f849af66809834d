"""``thoughtgate audit verify``: check that the record has not been tampered with."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, cast

from typer import Argument, Exit, Option

from thoughtgate.cli.audit.source import Place, find_place
from thoughtgate.cli.options import ConfigOption, JsonOption, examples
from thoughtgate.cli.output import counted, write_report
from thoughtgate.cli.progress import Progress, Reading
from thoughtgate.core.envelope import GENESIS
from thoughtgate.errors import EXIT_CONFIG, StoreError, UsageError, visible
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.record.file import traffic_path
from thoughtgate.record.reader import all_files, no_heads, verify_record
from thoughtgate.record.shared_ledger import shared_ledger
from thoughtgate.record.shared_verification import OwnRecord, WriterReport, verify_shared
from thoughtgate.record.verification import OPEN_RUN, TRUNCATED, Verification
from thoughtgate.stores.open_database import StoreLocation
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

    If gates share a PostgreSQL store, the records of all of them are verified from its ledger,
    and the files on this machine are compared with it.

    Lines that a running gate has not signed yet are reported as a note.
    """
    if anchor is not None and not _CHAIN.fullmatch(anchor):
        raise UsageError(f"--anchor must be {len(GENESIS)} hex digits (got {anchor!r:.80})")
    place = find_place(file, config)
    if key_env:
        place = place._replace(key=_key(key_env))
    if file is None and place.store is not None and anchor is None and not alone:
        _verify_all(place, as_json=json_)
        return
    report = _verify(place, (anchor or "").lower(), rotated=not alone)
    write_report(_as_json(place, report), _lines(place, report), as_json=json_)
    if not report.is_sound:
        raise Exit(EXIT_CONFIG)


def _verify_all(place: Place, *, as_json: bool) -> None:
    """Verify the record of this machine, and those of all gates in the ledger that they share."""
    try:
        own = _verify(place, "", rotated=True)
    except StoreError:
        own = None  # The config may belong to gates on other machines.
    store = cast("StoreLocation", place.store)
    with shared_ledger(store) as ledger, Progress() as progress:
        now = ledger.database.time(time.time())
        here = OwnRecord(Path(state_directory(os.environ)), place.record)
        reports = verify_shared(
            ledger,
            key=place.key,
            now=now,
            here=here,
            watch=lambda lines: _show(progress, lines),
        )
    shown = {"writers": [_writer_as_json(one) for one in reports]}
    facts = {"file": str(place.record), "sound": True, "findings": []}
    whole = {**(facts if own is None else _as_json(place, own)), **shown}
    is_sound = (own is None or own.is_sound) and all(one.report.is_sound for one in reports)
    whole["sound"] = is_sound
    lines = [*([] if own is None else _lines(place, own))]
    lines += [line for one in reports for line in _writer_lines(place, one)]
    verdict = "sound" if is_sound else "NOT sound"
    lines.append(f"{counted(len(reports), 'record')} of all gates: {verdict}")
    write_report(whole, lines, as_json=as_json)
    if not is_sound:
        raise Exit(EXIT_CONFIG)


def _show(progress: Progress, lines: int) -> None:
    if progress.is_due():
        progress.show(f"verifying the ledger: {lines:,} lines of a file")


def _writer_as_json(one: WriterReport) -> dict[str, object]:
    report = one.report
    return {
        "writer": one.writer,
        "host": one.host,
        "path": one.path,
        "files": one.files,
        "sound": report.is_sound,
        "lines": report.lines,
        "runs": report.runs,
        "checkpoints": report.checkpoints,
        "head": report.head,
        "findings": _findings_as_json(report),
    }


def _writer_lines(place: Place, one: WriterReport) -> Iterator[str]:
    yield from _finding_lines(one.report)
    name = visible(f"{one.host}:{one.path} (writer {one.writer})")
    yield f"{name}: {_summary(place, one.report)}"
    yield f"head {one.report.head}"


def _key(name: str) -> bytes:
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"--key-env: the environment variable {name} is not set")
    return value.encode()


def _verify(place: Place, anchor: str, *, rotated: bool) -> Verification:
    """Verify a record, taking into account a gate that is writing it, or starts to in the meantime."""
    # Only with a key is an end without a checkpoint a fault that a running gate can explain.
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
        # A gate started during the verification: the missing checkpoint may be explained now.
        written = True


def _files(record: Path, *, rotated: bool) -> list[Path]:
    """Return the files to read; none if they are missing, which the verification then reports."""
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
        "findings": _findings_as_json(report),
    }


def _findings_as_json(report: Verification) -> list[dict[str, object]]:
    return [{**finding._asdict(), "fault": finding.is_fault} for finding in report.findings]


def _finding_lines(report: Verification) -> Iterator[str]:
    findings = [finding for finding in report.findings if finding.kind != OPEN_RUN]
    for finding in findings[:_SHOWN]:
        word = "FAULT" if finding.is_fault else "note"
        where = f"{finding.file}:{finding.line}" if finding.line else finding.file
        # Names in the record and in the ledger are those that its writers gave.
        yield visible(f"{word}: {where}: {finding.kind}: {finding.message}")
    if len(findings) > _SHOWN:
        yield f"… and {len(findings) - _SHOWN} more; --json lists all"


def _summary(place: Place, report: Verification) -> str:
    open_runs = sum(finding.kind == OPEN_RUN for finding in report.findings)
    verdict = "sound" if report.is_sound else "NOT sound"
    lines, runs = counted(report.lines, "line"), counted(report.runs, "run")
    facts = f"{lines}, {runs}, {open_runs} without an end"
    checked = "checked" if place.key else "not checked: no key"
    signed = f"{counted(report.checkpoints, 'checkpoint')} {checked}"
    signed = signed if report.checkpoints or place.key else "not signed"
    return f"{verdict}: {facts}; {signed}"


def _lines(place: Place, report: Verification) -> Iterator[str]:
    yield from _finding_lines(report)
    yield f"{place.record}: {_summary(place, report)}"
    yield f"head {report.head}"
    if report.traffic_head:
        traffic = counted(report.traffic_lines, "line")
        yield f"traffic {traffic_path(place.record)}: {traffic}; head {report.traffic_head}"
