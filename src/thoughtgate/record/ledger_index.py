"""Rows for queries from the lines of the shared ledger: one per call, and totals of traffic.

The position in each file is committed together with the rows, as in the ledger of one machine.
A process that queries the ledger first indexes what is missing; a gate indexes its own files in
the background, slowly enough that calls are not delayed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from thoughtgate.record.call_rows import CALL_COLUMNS, RecordRows, Row
from thoughtgate.record.reader import read_entry
from thoughtgate.record.search_words import search_words
from thoughtgate.record.shared_ledger import BATCH_BYTES, Chunk, SharedLedger, StoredFile
from thoughtgate.record.verification import RecordLine
from thoughtgate.stores.database import Transaction

PUT_ROWS: Final = 100
"""Rows per statement: converting more of them at once would block other threads."""

PACE_LINES: Final = 32
"""Lines after which other threads get a turn: about half a millisecond of work."""

MAX_WORDS: Final = 100_000
"""Characters of a call that are indexed for the search by words; PostgreSQL refuses megabytes."""

_NAMES: Final = tuple(column.name for column in CALL_COLUMNS)
_TYPES: Final = {"integer": "bigint", "boolean": "bigint", "time": "float8"}
_ARRAYS: Final = ", ".join(f"?::{_TYPES.get(column.type, 'text')}[]" for column in CALL_COLUMNS)
_MERGED: Final = ", ".join(
    f"{name} = coalesce(excluded.{name}, calls.{name})" for name in _NAMES[2:]
)
_PUT_CALLS: Final = (
    f"INSERT INTO calls ({', '.join(_NAMES)}, file) SELECT rows.*, ? FROM unnest({_ARRAYS}) "  # noqa: S608 - our own names
    f"AS rows ON CONFLICT (call_id, writer) DO UPDATE SET {_MERGED}, file = excluded.file"
)
# Words of later events, such as an error, are added to those of earlier ones.
_PUT_WORDS: Final = (
    "INSERT INTO call_words (id, words) "
    "SELECT calls.id, to_tsvector('simple', found.words) "
    "FROM unnest(?::text[], ?::text[], ?::text[]) AS found (call_id, writer, words) "
    "JOIN calls ON calls.call_id = found.call_id AND calls.writer = found.writer "
    "ON CONFLICT (id) DO UPDATE SET words = call_words.words || excluded.words"
)
_PUT_TRAFFIC: Final = (
    "INSERT INTO traffic (run_id, server, minute, type, direction, detail, count, bytes, file) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (minute, type, server, direction, detail, run_id, file) DO UPDATE SET "
    "count = traffic.count + excluded.count, bytes = traffic.bytes + excluded.bytes"
)
_PUT_POLICY: Final = "INSERT INTO policy_changes (at, told, file) VALUES (?, ?, ?)"
_MOVE: Final = "UPDATE record_files SET indexed = ? WHERE id = ? AND indexed = ?"


def index_ledger(
    ledger: SharedLedger,
    files: Sequence[StoredFile] | None = None,
    pace: Callable[[], None] = lambda: None,
    *,
    watch: Callable[[int, int], None] = lambda _done, _all: None,
) -> int:
    """Create the rows for all lines that are not indexed yet, and return the number of lines.

    ``pace`` is called every few lines, and ``watch`` with the bytes done and to be done.

    Raises:
        StoreError: the ledger cannot be read or written.
    """
    files = ledger.files() if files is None else files
    left = sum(max(0, file.size - file.indexed) for file in files)
    done = lines = 0
    for file in files:
        batch, size, at = list[Chunk](), 0, file.indexed
        if at >= file.size:
            continue
        for chunk in ledger.chunks(file.id, at):
            batch.append(chunk)
            size += len(chunk.data)
            if size >= BATCH_BYTES:
                lines += _index(ledger, file, at, batch, pace)
                at, done = chunk.start + len(chunk.data), done + size
                watch(done, left)
                batch, size = [], 0
        if batch:
            lines += _index(ledger, file, at, batch, pace)
            done += size
            watch(done, left)
    return lines


def _index(
    ledger: SharedLedger,
    file: StoredFile,
    at: int,
    batch: list[Chunk],
    pace: Callable[[], None],
) -> int:
    """Make the rows of consecutive chunks; return the number of lines."""
    rows, lines = RecordRows(), 0
    for chunk in batch:
        for data in chunk.data.split(b"\n"):
            if data:
                lines += 1
                entry = read_entry(RecordLine("", lines, data))
                if not entry.fault:
                    rows.add(entry.event)
                if lines % PACE_LINES == 0:
                    pace()
    end = batch[-1].start + len(batch[-1].data)
    with ledger.database.write(exclusive=False) as transaction:
        # Another process may have indexed these lines in the meantime.
        if not transaction.execute(_MOVE, (end, file.id, at)).rowcount:
            return 0
        _put(transaction, rows, file.id, pace)
    return lines


def _put(transaction: Transaction, rows: RecordRows, file: int, pace: Callable[[], None]) -> None:
    cleaned = ({name: clean(value) for name, value in row.items()} for row in rows.calls.values())
    calls = {(row["call_id"], row["writer"]): row for row in cleaned}
    # In a fixed order, so that two transactions never wait for each other's rows.
    ordered = [calls[key] for key in sorted(calls)]
    for start in range(0, len(ordered), PUT_ROWS):
        part = ordered[start : start + PUT_ROWS]
        columns = [[row.get(name) for row in part] for name in _NAMES]
        transaction.execute(_PUT_CALLS, (file, *columns))
        words = [(row["call_id"], row["writer"], text) for row in part if (text := _words(row))]
        if words:
            transaction.execute(_PUT_WORDS, [list(column) for column in zip(*words, strict=True)])
        pace()
    traffic = [(*map(clean, key), *sums, file) for key, sums in sorted(rows.traffic.items())]
    if traffic:
        transaction.executemany(_PUT_TRAFFIC, traffic)
    if rows.policies:
        told = [(at, clean(text), file) for at, text in rows.policies]
        transaction.executemany(_PUT_POLICY, told)


def _words(row: Row) -> str:
    """Return the words of a row that are not indexed yet."""
    names = ["reason", "error_message"]
    if row.get("preview") is not None:
        names = ["tool", "preview", "extra", *names]
    text = " ".join(str(row[name]) for name in names if row.get(name))
    return " ".join(search_words(text[:MAX_WORDS]))


def clean(value: Any) -> Any:
    """Return a value that PostgreSQL can store: its texts have no NUL."""
    return value.replace("\0", "\\x00") if type(value) is str else value
