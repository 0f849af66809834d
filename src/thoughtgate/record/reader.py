"""Reading the record back: its files in order, line by line, whatever they hold.

A truncated, corrupted, foreign or mixed file is read as far as it is sound; what is not
is an entry with a fault and its place, never an exception.
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
    Finding,
    Line,
    Verification,
    Verifier,
    parse_event,
    unreadable,
)

MAX_LINE: Final = 16 * 1024 * 1024
"""Bytes of one line that are read; the gate's own stay far below."""

GONE: Final = "the current file is gone; only the files put aside are read"

_CHUNK: Final = 1024 * 1024
_MAJOR: Final = CONTRACT.partition(".")[0]


Watch: TypeAlias = Callable[[Path, int, int], None]
"""Is told now and then how much of a file has been read: its lines and its bytes."""


class Entry(NamedTuple):
    """One line read: an event, or why it is none."""

    line: Line
    event: dict[str, Any]
    """Empty when there is a fault."""
    fault: str = ""


def record_files(path: Path, *, rotated: bool = True) -> list[Path]:
    """Return the files of a record, oldest first; those put aside alone when the current is gone.

    Raises:
        StoreError: there is no such record.
    """
    older = rotated_files(path) if rotated and path.parent.is_dir() else []
    if not path.is_file():
        if older:
            return [file for _, file in older]
        raise StoreError(
            f"{path}: there is no record here; a gate writes it with its first call. "
            "If yours is elsewhere, name its config with -c, or the file itself"
        )
    current = path.stat().st_ino
    # A rotation cut short by a kill leaves one file under two names.
    return [*(file for _, file in older if file.stat().st_ino != current), path]


def unwatched(_file: Path, _lines: int, _size: int) -> None:
    """Watch a reading that nobody waits for."""


def read_lines(
    file: Path, offset: int = 0, number: int = 0, watch: Watch = unwatched, *, inode: int = 0
) -> Iterator[Line]:
    """Give the lines of one file from an offset on; ``number`` lines stand before it.

    With ``inode``, nothing is read when the name has come to mean another file or none.

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
                    yield Line(name, number, rest, left_out=left_out)
                    rest, left_out = b"", 0
                rest, left_out = _longer(rest, left_out, last)
            watch(file, number, offset)
            if rest:
                yield Line(name, number + 1, rest, ended=False, left_out=left_out)
    except OSError as error:
        if inode and isinstance(error, FileNotFoundError):
            return
        raise StoreError(f"{file}: the record cannot be read: {error.strerror}") from error


def _longer(data: bytes, left_out: int, more: bytes) -> tuple[bytes, int]:
    """Add to a line what is read of it; return it, and how much of it is left out."""
    room = MAX_LINE - len(data)
    if len(more) > room:
        return data + more[:room], left_out + len(more) - room
    return data + more, left_out


def read_entry(line: Line) -> Entry:
    """Turn a line into an event, or say why it is none."""
    if line.left_out:
        return Entry(line, {}, TOO_LONG)
    event = parse_event(line.data)
    if event is None:
        return Entry(line, {}, unreadable(line.data) if line.ended else "cut short")
    if type(event.get("type")) is not str:
        return Entry(line, {}, "not an event")
    version = event.get("v")
    if type(version) is not str or version.partition(".")[0] != _MAJOR:
        return Entry(line, {}, f"an event of contract {version!s:.20}, not {_MAJOR}.x")
    return Entry(line, event)


def read_record(path: Path, *, rotated: bool = True, watch: Watch = unwatched) -> Iterator[Entry]:
    """Give every entry of a record, the files put aside included.

    Raises:
        StoreError: there is no such record, or it cannot be read.
    """
    for file in record_files(path, rotated=rotated):
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
    """Verify a record's chain over all its files; ``being_written`` when a gate is at it now.

    Raises:
        StoreError: there is no such record, or it cannot be read.
    """
    files = record_files(path, rotated=rotated)
    is_gone = path not in files
    # No living writer accounts for a file that is gone.
    verifier = Verifier(key, anchor, file=str(path), being_written=being_written and not is_gone)
    for file in files:
        for line in read_lines(file, watch=watch):
            verifier.feed(line)
    report = verifier.finish()
    if is_gone:
        gone = Finding(CURRENT_GONE, str(path), 0, GONE)
        report = report._replace(findings=(gone, *report.findings))
    return report
