"""Reading the record: its files in order, line by line.

Truncated, corrupted or foreign lines never raise an exception; each is returned as an entry
with a fault and its position.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

from thoughtgate.core.envelope import CONTRACT, TRAFFIC_LINE
from thoughtgate.errors import StoreError
from thoughtgate.record.call_rows import event_time
from thoughtgate.record.file import open_regular, rotated_files, traffic_path
from thoughtgate.record.verification import (
    CURRENT_GONE,
    TOO_LONG,
    RecordFinding,
    RecordLine,
    Verification,
    Verifier,
    parse_event,
    unreadable,
)
from thoughtgate.stores.record_heads import RecordHead

_ENVELOPE: Final = 2048
"""Bytes at the beginning of a line that say which chain it belongs to."""

MAX_LINE: Final = 16 * 1024 * 1024
"""Maximum bytes read of one line; the gate's own lines are far shorter."""

GONE: Final = "the current file is missing; only the rotated files are read"

_CHUNK: Final = 1024 * 1024
_MAJOR: Final = CONTRACT.partition(".")[0]


Watch: TypeAlias = Callable[[Path, int, int], None]
"""Called from time to time with a file and the number of lines and bytes read from it."""


Heads: TypeAlias = Callable[[Path], RecordHead | None]
"""Returns how far a gate wrote a file, if that is known."""


def no_heads(_file: Path) -> None:
    """Return no head: how far the files were written is unknown."""


class RecordEntry(NamedTuple):
    """One line of the record: an event, or the reason why it is not one."""

    line: RecordLine
    event: dict[str, Any]
    """Empty if there is a fault."""
    fault: str = ""


def record_files(path: Path, *, rotated: bool = True) -> list[Path]:
    """Return the files of a record, oldest first; only rotated ones if the current is missing.

    Raises:
        StoreError: there is no such record.
    """
    older = rotated_files(path) if rotated and path.parent.is_dir() else []
    if not path.is_file():
        if older:
            return [file for _, file in older]
        raise StoreError(
            f"{path}: there is no record here; a gate creates it with its first call. "
            "If yours is elsewhere, specify its config with -c, or the file itself"
        )
    current = path.stat().st_ino
    # A rotation that was killed halfway leaves one file under two names.
    return [*(file for _, file in older if file.stat().st_ino != current), path]


def all_files(path: Path, *, rotated: bool = True) -> list[Path]:
    """Return the files of a record and of its traffic, each oldest first.

    Raises:
        StoreError: there is no such record.
    """
    files = record_files(path, rotated=rotated)
    return files + traffic_files(path) if rotated else files


def traffic_files(path: Path) -> list[Path]:
    """Return the files of a record's traffic, oldest first; there may be none."""
    try:
        return record_files(traffic_path(path))
    except StoreError:
        return []


def unwatched(_file: Path, _lines: int, _size: int) -> None:
    """Ignore the progress."""


def read_lines(
    file: Path, offset: int = 0, number: int = 0, watch: Watch = unwatched, *, inode: int = 0
) -> Iterator[RecordLine]:
    """Yield the lines of one file from an offset on; ``number`` lines precede it.

    With ``inode``, nothing is read if the name now belongs to another file or to none.

    Raises:
        StoreError: the file cannot be read.
    """
    name = str(file)
    try:
        with open_regular(file) as stream:
            if inode and os.fstat(stream.fileno()).st_ino != inode:
                return
            stream.seek(offset)
            yield from split_lines(name, _parts(stream, file, offset, number, watch), number)
    except OSError as error:
        if inode and isinstance(error, FileNotFoundError):
            return
        raise StoreError(f"{file}: the record cannot be read: {error.strerror}") from error


def _parts(stream: BinaryIO, file: Path, offset: int, lines: int, watch: Watch) -> Iterator[bytes]:
    """Yield the rest of a file in parts, and report the progress."""
    while part := stream.read(_CHUNK):
        watch(file, lines, offset)
        offset += len(part)
        lines += part.count(b"\n")
        yield part
    watch(file, lines, offset)


def split_lines(name: str, parts: Iterable[bytes], number: int = 0) -> Iterator[RecordLine]:
    """Yield the lines of consecutive parts of a file; ``number`` lines precede them."""
    rest, left_out = b"", 0
    for part in parts:
        *lines, last = part.split(b"\n")
        for data in lines:
            number += 1
            rest, left_out = _longer(rest, left_out, data)
            yield RecordLine(name, number, rest, left_out=left_out)
            rest, left_out = b"", 0
        rest, left_out = _longer(rest, left_out, last)
    if rest:
        yield RecordLine(name, number + 1, rest, ended=False, left_out=left_out)


def _longer(data: bytes, left_out: int, more: bytes) -> tuple[bytes, int]:
    """Append data to a line, up to ``MAX_LINE``; return it and the number of bytes left out."""
    room = MAX_LINE - len(data)
    if len(more) > room:
        return data + more[:room], left_out + len(more) - room
    return data + more, left_out


def read_entry(line: RecordLine) -> RecordEntry:
    """Parse a line as an event, or return the reason why it is not one."""
    if line.left_out:
        return RecordEntry(line, {}, TOO_LONG)
    event = parse_event(line.data)
    if event is None:
        return RecordEntry(line, {}, unreadable(line.data) if line.ended else "cut short")
    if type(event.get("type")) is not str:
        return RecordEntry(line, {}, "not an event")
    version = event.get("v")
    if type(version) is not str or version.partition(".")[0] != _MAJOR:
        return RecordEntry(line, {}, f"an event of contract {version!s:.20}, not {_MAJOR}.x")
    return RecordEntry(line, event)


def read_record(path: Path, *, watch: Watch = unwatched) -> Iterator[RecordEntry]:
    """Yield every entry of a record and of its traffic, including rotated files, by time.

    Raises:
        StoreError: there is no such record, or it cannot be read.
    """
    calls = _entries(record_files(path), watch)
    traffic = _entries(traffic_files(path), watch)
    yield from (entry for _, entry in merge(calls, traffic, key=itemgetter(0)))


def _entries(files: list[Path], watch: Watch) -> Iterator[tuple[float, RecordEntry]]:
    """Yield the entries of files with their times; one without a time gets that of the last."""
    at = 0.0
    for file in files:
        for line in read_lines(file, watch=watch):
            if line.data:
                entry = read_entry(line)
                at = event_time(entry.event) or at
                yield at, entry


def verify_record(
    path: Path,
    *,
    key: bytes = b"",
    anchor: str = "",
    rotated: bool = True,
    being_written: bool = False,
    heads: Heads = no_heads,
    watch: Watch = unwatched,
) -> Verification:
    """Verify the chains of a record and of its traffic over all files.

    ``being_written`` tells that a gate is writing it now; ``heads`` returns how far a file was
    written.

    Raises:
        StoreError: there is no such record, or it cannot be read.
    """
    # Loaded before the files are read: a gate that writes meanwhile may store later ones.
    head, other_head = heads(path), heads(traffic_path(path))
    try:
        files = record_files(path, rotated=rotated)
    except StoreError:
        if head is None:
            raise
        files = []
    is_gone = path not in files
    # A running writer does not explain a missing file.
    written = being_written and not is_gone
    calls = Verifier(key, anchor, file=str(path), being_written=written, head=head)
    other = str(traffic_path(path))
    traffic = Verifier(key, file=other, being_written=being_written, head=other_head)
    has_traffic = other_head is not None
    for file in files + (traffic_files(path) if rotated else []):
        for line in read_lines(file, watch=watch):
            # An exported record has the lines of both chains in one file.
            is_traffic = TRAFFIC_LINE in line.data[:_ENVELOPE] or str(file).startswith(other)
            has_traffic = has_traffic or is_traffic
            (traffic if is_traffic else calls).feed(line)
    report = calls.finish()
    if has_traffic:
        report = _joined(report, traffic.finish(), len(calls.runs | traffic.runs))
    if is_gone:
        gone = RecordFinding(CURRENT_GONE, str(path), 0, GONE)
        report = report._replace(findings=(gone, *report.findings))
    return report


def _joined(calls: Verification, traffic: Verification, runs: int) -> Verification:
    """Return one result for the two chains of a record."""
    return calls._replace(
        findings=calls.findings + traffic.findings,
        lines=calls.lines + traffic.lines,
        runs=runs,
        checkpoints=calls.checkpoints + traffic.checkpoints,
        traffic_lines=traffic.lines,
        traffic_head=traffic.head,
    )
