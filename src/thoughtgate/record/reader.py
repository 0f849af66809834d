"""Reading the record: its files in order, line by line.

Truncated, corrupted or foreign lines never raise an exception; each is returned as an entry
with a fault and its position.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from thoughtgate.core.envelope import CONTRACT
from thoughtgate.errors import StoreError
from thoughtgate.record.file import rotated_files
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

MAX_LINE: Final = 16 * 1024 * 1024
"""Maximum bytes read of one line; the gate's own lines are far shorter."""

GONE: Final = "the current file is missing; only the rotated files are read"

_CHUNK: Final = 1024 * 1024
_MAJOR: Final = CONTRACT.partition(".")[0]


Watch: TypeAlias = Callable[[Path, int, int], None]
"""Called from time to time with the number of lines and bytes read of a file."""


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
        with file.open("rb") as stream:
            if inode and os.fstat(stream.fileno()).st_ino != inode:
                return
            stream.seek(offset)
            rest, left_out = b"", 0
            while chunk := stream.read(_CHUNK):
                watch(file, number, offset)
                offset += len(chunk)
                *lines, last = chunk.split(b"\n")
                for data in lines:
                    number += 1
                    rest, left_out = _longer(rest, left_out, data)
                    yield RecordLine(name, number, rest, left_out=left_out)
                    rest, left_out = b"", 0
                rest, left_out = _longer(rest, left_out, last)
            watch(file, number, offset)
            if rest:
                yield RecordLine(name, number + 1, rest, ended=False, left_out=left_out)
    except OSError as error:
        if inode and isinstance(error, FileNotFoundError):
            return
        raise StoreError(f"{file}: the record cannot be read: {error.strerror}") from error


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
    """Yield every entry of a record, including rotated files.

    Raises:
        StoreError: there is no such record, or it cannot be read.
    """
    for file in record_files(path):
        for line in read_lines(file, watch=watch):
            if line.data:
                yield read_entry(line)


def verify_record(
    path: Path,
    *,
    key: bytes = b"",
    anchor: str = "",
    rotated: bool = True,
    being_written: bool = False,
    watch: Watch = unwatched,
) -> Verification:
    """Verify a record's chain over all its files; ``being_written`` if a gate is writing it now.

    Raises:
        StoreError: there is no such record, or it cannot be read.
    """
    files = record_files(path, rotated=rotated)
    is_gone = path not in files
    # A running writer does not explain a missing file.
    verifier = Verifier(key, anchor, file=str(path), being_written=being_written and not is_gone)
    for file in files:
        for line in read_lines(file, watch=watch):
            verifier.feed(line)
    report = verifier.finish()
    if is_gone:
        gone = RecordFinding(CURRENT_GONE, str(path), 0, GONE)
        report = report._replace(findings=(gone, *report.findings))
    return report
