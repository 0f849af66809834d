"""Verification of the records of all gates, from the ledger that they share.

The chains of every writer are verified from the lines in the ledger, so an edit of a line before
it was stored, or in the ledger itself, is found anywhere. Files on this machine are also compared
with the ledger byte by byte, which finds what was edited, cut off, removed or exchanged after it
was stored. A gate that sees its own file change continues it as a branch, which is reported, too.
"""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from thoughtgate.core.envelope import GENESIS, render_time
from thoughtgate.errors import StoreError
from thoughtgate.record.file import current_number, open_regular, rotated_files
from thoughtgate.record.reader import split_lines
from thoughtgate.record.shared_ledger import Chunk, SharedLedger, StoredFile
from thoughtgate.record.shipper import first_line
from thoughtgate.record.verification import (
    BEGINS,
    EDITED,
    FORKED,
    MISSING,
    NOT_COMPARED,
    NOT_STORED,
    REMOVED,
    REPLACED,
    RecordFinding,
    RecordLine,
    Verification,
    Verifier,
)

WRITING_S: Final = 120.0
"""A file that grew within this time counts as being written: its end need not be signed yet."""


_MAX_WRITER: Final = 1024
"""Bytes read of the file with a writer's id; its directory comes from the ledger, so from others."""


class WriterReport(NamedTuple):
    """The result for one record of one writer."""

    writer: str
    host: str
    path: str
    files: int
    report: Verification


class OwnRecord(NamedTuple):
    """The record of whoever verifies, which is compared whatever the ledger says of its place."""

    directory: Path
    """Their state directory."""
    path: Path


class _Segment(NamedTuple):
    """A part of a stored file."""

    file: StoredFile
    start: int
    end: int


def verify_shared(
    ledger: SharedLedger,
    *,
    key: bytes = b"",
    now: float = 0.0,
    here: OwnRecord | None = None,
    watch: Callable[[int], None] = lambda _lines: None,
) -> list[WriterReport]:
    """Verify the record of every writer.

    ``now`` is the store's time, and ``watch`` is called with the number of lines from time to time.
    ``here`` is the record on this machine that must be in the ledger.

    Raises:
        StoreError: the ledger cannot be read.
    """
    files = ledger.files()
    by_id = {file.id: file for file in files}
    records: dict[tuple[str, str], list[StoredFile]] = {}
    for file in files:
        records.setdefault((file.writer, file.path), []).append(file)
    reports = []
    local = _writer_of(here.directory) if here is not None else ""
    for (writer, path), own in records.items():
        report = _verify_record(ledger, own, by_id, key, now, watch)
        compared = _compare(ledger, own, is_own=writer == local)
        findings = tuple(dict.fromkeys((*report.findings, *compared)))
        report = report._replace(findings=findings)
        reports.append(WriterReport(writer, own[-1].host, path, len(own), report))
    if here is not None and local and (local, str(here.path)) not in records:
        reports += _absent(local, here.path)
    return reports


def _absent(writer: str, path: Path) -> Iterator[WriterReport]:
    """Yield the report of this machine's own record, if the ledger has nothing of it."""
    if first_line(path)[0]:
        text = (
            "nothing of this record is in the ledger: no gate copied it there, "
            "or somebody deleted it there"
        )
        found = RecordFinding(NOT_STORED, str(path), 0, text)
        report = Verification((found,), 0, 0, 0, GENESIS)
        yield WriterReport(writer, socket.gethostname(), str(path), 0, report)


def _verify_record(  # noqa: PLR0917 - all of one kind
    ledger: SharedLedger,
    own: list[StoredFile],
    by_id: dict[int, StoredFile],
    key: bytes,
    now: float,
    watch: Callable[[int], None],
) -> Verification:
    """Verify every chain of a record; there are several if it was forked or began anew."""
    findings: dict[RecordFinding, None] = {}
    continued = {file.previous for file in own}
    branched = {file.branch_of for file in own if file.size > file.branch_at}
    ends = [
        file
        for file in own
        # A file that continues elsewhere is verified as part of that chain.
        if (file.chain not in continued or file.chain == GENESIS) and file.size > file.branch_at
    ]
    lines, runs, checkpoints, head = 0, set[str](), 0, GENESIS
    for file in ends or own[-1:]:
        is_last = file.last_at == max(one.last_at for one in own)
        written = is_last and now - file.last_at < WRITING_S
        # The end of what was replaced by a branch can have no closing checkpoint.
        checked = key if file.id not in branched else b""
        verifier = Verifier(checked, file=file.name, being_written=written)
        for finding in _feed(ledger, verifier, _segments(file, own, by_id), watch):
            findings[finding] = None
        report = verifier.finish()
        findings.update(dict.fromkeys(report.findings))
        lines, head = lines + report.lines, report.head
        runs |= verifier.runs
        checkpoints += report.checkpoints
    findings.update(dict.fromkeys(_beginnings(own, by_id)))
    return Verification(tuple(findings), lines, len(runs), checkpoints, head)


def _segments(
    file: StoredFile, own: list[StoredFile], by_id: dict[int, StoredFile]
) -> list[_Segment]:
    """Return the parts of the chain that ends with a file, in order."""
    found, end, seen = list[_Segment](), file.size, set[int]()
    while file.id not in seen:
        seen.add(file.id)
        found.append(_Segment(file, file.start, end))
        parent = by_id.get(file.branch_of)
        if parent is not None:
            end = file.branch_at
        else:
            before = [one for one in own if file.previous not in {GENESIS, ""}]
            parent = next((one for one in before if one.chain == file.previous), None)
            end = parent.size if parent is not None else 0
        if parent is None or file.cut_size > file.branch_at:
            break
        file = parent
    return found[::-1]


def _feed(
    ledger: SharedLedger,
    verifier: Verifier,
    segments: list[_Segment],
    watch: Callable[[int], None],
) -> Iterator[RecordFinding]:
    """Feed the lines of a chain to a verifier; yield where the ledger itself lacks some."""
    first = segments[0].file
    if first.cut_size:
        when = f" on {render_time(first.cut_at)[:10]}" if first.cut_at > 0 else ""
        note = f"the ledger begins after line {first.cut_lines}: older lines were deleted{when} by audit.retain"
        place = RecordLine(first.name, first.cut_lines, b"")
        verifier.continue_from(place, first.cut_chain or GENESIS, note)
    for file, start, end in segments:
        at, name, before = start, file.name, -1
        for chunk in ledger.chunks(file.id, start, end):
            if chunk.start != at:
                text = f"the ledger lacks {chunk.start - at} bytes after line {max(before, 0)}"
                yield RecordFinding(REMOVED, name, max(before, 0), text)
            at, before = chunk.start + len(chunk.data), chunk.lines_before
            for line in split_lines(name, [chunk.data], chunk.lines_before):
                verifier.feed(line)
            before += chunk.data.count(b"\n")
            watch(before)
        if at < end:
            text = f"the ledger lacks the last {end - at} bytes that were stored of this file"
            yield RecordFinding(MISSING, name, max(before, 0), text)


def _beginnings(own: list[StoredFile], by_id: dict[int, StoredFile]) -> Iterator[RecordFinding]:
    """Yield files that do not continue what the writer had written before."""
    for at, file in enumerate(own):
        earlier = own[:at]
        if file.gone_at:
            when = render_time(file.gone_at)
            text = (
                f"its gate found this file gone at {when}; the ledger has {file.lines} lines of it"
            )
            yield RecordFinding(REMOVED, file.name, 0, text)
        if file.branch_of:
            yield _branch(file, by_id.get(file.branch_of))
        elif earlier and file.previous not in {one.chain for one in earlier}:
            last = earlier[-1]
            text = (
                f"this file does not continue {last.name}, which ends with line {last.lines}: "
                "that one was removed or replaced"
            )
            yield RecordFinding(REPLACED, file.name, 1, text)


def _branch(file: StoredFile, parent: StoredFile | None) -> RecordFinding:
    if parent is None:
        text = "this file continues one that is not in the ledger"
        return RecordFinding(FORKED, file.name, 0, text)
    text = (
        f"after byte {file.branch_at} this file is not what was stored of {parent.name} "
        f"({parent.size} bytes)"
    )
    if parent.writer != file.writer:
        why = "it was copied from there, or exchanged for it"
        return RecordFinding(REPLACED, file.name, 0, f"{text}: {why}")
    why = "it was cut off or edited, or a copy of the state directory is in use as well"
    return RecordFinding(FORKED, file.name, 0, f"{text}: {why}")


# Comparison with the files on this machine.


def _compare(
    ledger: SharedLedger, own: list[StoredFile], *, is_own: bool
) -> Iterator[RecordFinding]:
    last = own[-1]
    # Whoever writes to the ledger chooses its host names, and those of containers change.
    if not is_own and _writer_of(Path(last.directory)) != last.writer:
        if last.host != socket.gethostname():
            return
        text = "the files of this writer are not compared: its state directory is no longer here"
        yield RecordFinding(NOT_COMPARED, last.name, 0, text)
        return
    path = Path(last.path)
    local = dict(rotated_files(path)) if path.parent.is_dir() else {}
    if path.is_file():
        local.setdefault(current_number(path), path)
    # A branch replaces what was stored before under the same number.
    latest = {file.number: file for file in own}
    oldest = min(local, default=0)
    for number, file in latest.items():
        if number not in local:
            yield _missing(file, is_kept=number >= oldest)
        else:
            yield from _compare_file(ledger, file, local[number], own)


def _writer_of(directory: Path) -> str:
    """Return the id of the writer whose state directory this is; empty if it is none."""
    try:
        with open_regular(directory / "host-id") as found:
            return found.read(_MAX_WRITER).strip().decode()
    except (OSError, ValueError):
        return ""


def _missing(file: StoredFile, *, is_kept: bool) -> RecordFinding:
    text = f"the ledger has its {file.lines} lines"
    if is_kept:
        return RecordFinding(REMOVED, file.name, 0, f"this file was removed; {text}")
    return RecordFinding(BEGINS, file.name, 0, f"this file is no longer kept; {text}")


def _compare_file(
    ledger: SharedLedger, file: StoredFile, path: Path, own: list[StoredFile]
) -> Iterator[RecordFinding]:
    head, _ = first_line(path)
    if head and head != file.head:
        others = {one.head: one for one in ledger.files_with(head)}
        other = others.get(head)
        if any(one.head == head for one in own):
            return  # reported as a file that does not continue the earlier one
        what = f"the file {other.name}" if other is not None else "a file that is not stored"
        yield RecordFinding(REPLACED, str(path), 0, f"in place of {file.name}, here is {what}")
        return
    at = file.start
    try:
        with open_regular(path) as stream:
            for chunk in ledger.chunks(file.id, file.start):
                stream.seek(chunk.start)
                found = stream.read(len(chunk.data))
                if found != chunk.data:
                    yield _difference(path, file, chunk, found)
                    return
                at = chunk.start + len(chunk.data)
            stream.seek(at)
            more = len(stream.read())
    except OSError as error:
        raise StoreError(f"{path}: the record cannot be read: {error.strerror}") from error
    if more:
        text = f"the last {more} bytes are not in the ledger yet"
        yield RecordFinding(NOT_STORED, str(path), 0, text)


def _difference(path: Path, file: StoredFile, chunk: Chunk, found: bytes) -> RecordFinding:
    """Name the first line that differs from what was stored."""
    ours, theirs = found.split(b"\n"), chunk.data.split(b"\n")
    same = next(
        (at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]),
        min(len(ours), len(theirs)),
    )
    number = chunk.lines_before + same + 1
    if chunk.data.startswith(found):
        count = file.lines - number + 1
        text = f"{count} lines from here on were cut off; the ledger has them"
        return RecordFinding(MISSING, str(path), number, text)
    text = "this line is not what was stored in the ledger: it was edited, moved or removed"
    return RecordFinding(EDITED, str(path), number, text)
