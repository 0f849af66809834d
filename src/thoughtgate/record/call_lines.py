"""The lines of a record about one call, found by time without reading the whole record.

Gates append lines in order of time; a line is late only by as long as its process waited for the
lock of the file. So a position is found by bisection, and only the surroundings of the call's own
times are read.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from thoughtgate.errors import StoreError
from thoughtgate.record.call_rows import event_time, member, parse_time, text
from thoughtgate.record.file import open_regular
from thoughtgate.record.reader import (
    RecordEntry,
    read_entry,
    read_lines,
    record_files,
    traffic_files,
)

SLACK_S: Final = 2.0
"""How far out of order a line may be; a writer waits for the lock for half of that at most."""

MAX_BYTES: Final = 8 * 1024 * 1024
"""Maximum bytes read around one time; a busy gate writes less in four seconds."""

_TIME: Final = re.compile(rb'"ts":"([0-9TZ:.+-]{1,40})"')
_LOOK: Final = 64 * 1024
"""How much of a line is searched for its time, which is near the beginning."""


def find_call_lines(record: Path, call: Mapping[str, Any], limit: int) -> list[RecordEntry]:
    """Return the entries about a call, whose row in the ledger has its times, in order.

    Raises:
        StoreError: there is no such record, or it cannot be read.
    """
    ident = str(call["call_id"])
    times = sorted(float(call[name]) for name in call if name.endswith("_at") and call[name])
    found: list[RecordEntry] = []
    # Requests of servers are calls too, but their lines may be in the traffic file.
    for file in (*record_files(record), *traffic_files(record)):
        reached = 0
        for begin, end in _spans(times):
            # What was read for an earlier time is not read again.
            start = max(reached, _find(file, begin))
            for entry in _until(file, start, end):
                reached = start = start + entry.line.size
                if text(member(entry.event, "call"), "call_id") == ident and len(found) < limit:
                    found.append(entry)
    return sorted(found, key=lambda entry: event_time(entry.event))


def _spans(times: list[float]) -> list[tuple[float, float]]:
    """Return the surroundings of times; those that overlap are one."""
    spans: list[tuple[float, float]] = []
    for at in times:
        if spans and at - SLACK_S <= spans[-1][1]:
            spans[-1] = (spans[-1][0], at + SLACK_S)
        else:
            spans.append((at - SLACK_S, at + SLACK_S))
    return spans


def _find(file: Path, at: float) -> int:
    try:
        with open_regular(file) as stream:
            return _position(stream, at)
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror}") from None


def _until(file: Path, start: int, end: float) -> Iterator[RecordEntry]:
    size = late = 0
    for line in read_lines(file, start):
        size += line.size
        at = _time(line.data[:_LOOK])
        # A line that is out of order does not end the search.
        late = late + line.size if late or (at is not None and at > end) else 0
        if size > MAX_BYTES or late > _LOOK:
            return
        yield read_entry(line)


def _position(stream: BinaryIO, at: float) -> int:
    """Return where a line begins before which every line is older than a time, within the slack."""
    low, high = 0, stream.seek(0, 2)
    while high - low > _LOOK:
        middle = (low + high) // 2
        stream.seek(middle)
        stream.readline(_LOOK)  # the rest of a line
        begun = stream.tell()
        seen = _time(stream.readline(_LOOK))
        # A line without a time decides nothing; searching before it misses no line.
        if seen is not None and seen < at and begun < high:
            low = begun
        else:
            high = middle
    return low


def _time(line: bytes) -> float | None:
    found = _TIME.search(line)
    return parse_time(found[1].decode("ascii")) if found else None
