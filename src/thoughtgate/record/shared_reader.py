"""Reading the records of all gates from the ledger that they share."""

from collections.abc import Callable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any, Final

from thoughtgate.record.call_rows import event_time, member, text
from thoughtgate.record.reader import RecordEntry, read_entry, split_lines
from thoughtgate.record.shared_ledger import Chunk, SharedLedger, StoredFile
from thoughtgate.record.verification import RecordLine

_NEWEST_CHUNKS: Final = 16
"""Chunks that are fetched at once to find the newest events."""

Accepts = Callable[[dict[str, Any]], bool]


def read_shared(ledger: SharedLedger) -> Iterator[RecordEntry]:
    """Yield every entry of all records, by time.

    Raises:
        StoreError: the ledger cannot be read.
    """
    records: dict[tuple[str, str], list[StoredFile]] = {}
    for file in ledger.files():
        records.setdefault((file.writer, file.path), []).append(file)
    entries = [_entries(ledger, files) for files in records.values()]
    yield from (entry for _, entry in merge(*entries, key=itemgetter(0)))


def _entries(ledger: SharedLedger, files: list[StoredFile]) -> Iterator[tuple[float, RecordEntry]]:
    """Yield the entries of files with their times; one without a time gets that of the last."""
    at = 0.0
    for file in files:
        for chunk in ledger.chunks(file.id):
            for line in _lines(file, chunk):
                entry = read_entry(line)
                at = event_time(entry.event) or at
                yield at, entry


def newest_events(ledger: SharedLedger, accepts: Accepts, count: int) -> list[dict[str, Any]]:
    """Return the newest events that are accepted, oldest first."""
    found: list[tuple[float, dict[str, Any]]] = []
    files = {file.id: file for file in ledger.files()}
    skipped = 0
    while count:
        chunks = ledger.newest_chunks(skipped, _NEWEST_CHUNKS)
        for file, chunk in chunks:
            # Older chunks have no newer event than what was found already.
            if len(found) >= count and found[-count][0] >= chunk.last_at:
                return [event for _, event in found[-count:]]
            events = _events(files.get(file), chunk)
            found += [(event_time(event), event) for event in events if accepts(event)]
            found.sort(key=itemgetter(0))
        if len(chunks) < _NEWEST_CHUNKS:
            break
        skipped += len(chunks)
    return [event for _, event in found[len(found) - min(count, len(found)) :]]


def call_events(
    ledger: SharedLedger, call: dict[str, Any], file: int, limit: int
) -> list[dict[str, Any]]:
    """Return the events of one call, in order."""
    ident = str(call["call_id"])
    times = [call[name] for name in call if name.endswith("_at") and call[name]]
    events: list[dict[str, Any]] = []
    for chunk in ledger.chunks_with(ident, file, min(times, default=0.0)):
        found = _events(None, chunk)
        events += [one for one in found if text(member(one, "call"), "call_id") == ident]
    return sorted(events, key=event_time)[:limit]


class SharedFollower:
    """Reads the events that all gates added since the previous read."""

    def __init__(self, ledger: SharedLedger, *, from_start: bool = False) -> None:
        """Follow the ledger from now on, or from its first line."""
        self._ledger = ledger
        self._read: dict[int, int] = {}
        if not from_start:
            self._read = {file.id: file.size for file in ledger.files()}

    def lines(self, *, with_lists: bool = False) -> Iterator[RecordLine]:
        """Yield the lines that were added since the last read.

        With ``with_lists``, only chunks that contain a line about a server are read.
        """
        for file in self._ledger.files():
            start = self._read.get(file.id, 0)
            if file.size <= start:
                continue
            chunks = (
                iter(self._ledger.chunks_with_lists(file.id, start))
                if with_lists
                else self._ledger.chunks(file.id, start)
            )
            # With ``with_lists``, the last chunks may not be returned, but they count as read too.
            self._read[file.id] = file.size
            for chunk in chunks:
                self._read[file.id] = max(self._read[file.id], chunk.start + len(chunk.data))
                yield from _lines(file, chunk)

    def read(self) -> list[dict[str, Any]]:
        """Return the events added since the last read, by time, without invalid lines."""
        entries = (read_entry(line) for line in self.lines())
        return sorted((one.event for one in entries if one.event), key=event_time)


def _lines(file: StoredFile | None, chunk: Chunk) -> Iterator[RecordLine]:
    name = file.name if file is not None else ""
    return (line for line in split_lines(name, [chunk.data], chunk.lines_before) if line.data)


def _events(file: StoredFile | None, chunk: Chunk) -> Iterator[dict[str, Any]]:
    for line in _lines(file, chunk):
        event = read_entry(line).event
        if event:
            yield event
