"""A million calls in the ledger that gates share (PostgreSQL), and what copying a record costs."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from bench.figure import Figure
from bench.record import SERVERS, T0, TOOLS, one_call
from tests.support.postgres import PostgresServer

from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.ledger_queries import (
    CallFilter,
    count_by,
    count_over_time,
    find_call,
    find_calls,
    latencies,
)
from thoughtgate.record.shared_ledger import SharedLedger, open_shared_ledger
from thoughtgate.record.shared_verification import verify_shared
from thoughtgate.record.shipper import ChainShipper
from thoughtgate.record.writer import RecordWriter
from thoughtgate.stores.open_database import StoreLocation

ROWS = 1_000_000
QUERY_MS = 200.0
COPIED_CALLS = 20_000

_COLUMNS = (
    *("call_id", "writer", "run_id", "session", "server", "kind", "tool", "method", "principal"),
    *("preview", "started_at", "decision", "gate", "rule", "reason", "status", "latency_ms"),
    *("ended_at", "file"),
)


def _rows(count: int) -> Iterator[tuple[Any, ...]]:
    for number in range(count):
        at, blocked = T0 + number / 50, number % 10 == 0
        preview = f'{{"path":"/srv/project/src/module_{number % 977}.py","query":"item {number}"}}'
        yield (
            *(f"run.{number}", f"gate{number % 3}", f"run-{number // 5000}", "1"),
            *(SERVERS[number % 3], "tool", TOOLS[number % 6], "tools/call", "local", preview, at),
            *("BLOCK" if blocked else "ALLOW", "rules", f"rules[{number % 7}]", "a rule says so"),
            *("ERROR" if blocked else "OK", number % 300, at + 0.1, 1),
        )


def _fill(conninfo: str, count: int) -> None:
    with psycopg.connect(conninfo) as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY calls ({', '.join(_COLUMNS)}) FROM STDIN") as copy:
            for row in _rows(count):
                copy.write_row(row)
        cursor.execute(
            "INSERT INTO call_words SELECT id, to_tsvector('simple', "
            "regexp_replace(tool || ' ' || preview || ' ' || reason, '[^a-zA-Z0-9]+', ' ', 'g')) "
            "FROM calls"
        )
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _questions(ledger: SharedLedger, rows: int) -> Iterator[tuple[str, Callable[[], object]]]:
    asked, last_day = ledger.connection, T0 + rows / 50 - 3600
    yield "newest 50 calls", lambda: find_calls(asked, CallFilter())
    yield (
        "refusals of a server",
        lambda: find_calls(asked, CallFilter(server="mail", decision="BLOCK")),
    )
    yield "tools by pattern", lambda: find_calls(asked, CallFilter(tool="delete_*"))
    yield "a run", lambda: find_calls(asked, CallFilter(run="run-7"))
    yield "rare words", lambda: find_calls(asked, CallFilter(text=f"item {rows // 2}"))
    yield "common words", lambda: find_calls(asked, CallFilter(text="project src"))
    yield "one call", lambda: find_call(asked, f"run.{rows // 3}")
    yield (
        "decisions, the last hour",
        lambda: count_by(asked, "decision", CallFilter(since=last_day)),
    )
    yield "decisions, all", lambda: count_by(asked, "decision", CallFilter())
    yield "over time, all", lambda: count_over_time(asked, CallFilter(), 3600)
    yield "latencies", lambda: latencies(asked, CallFilter())


def _median_ms(work: Callable[[], object], rounds: int) -> float:
    took = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.median(took)


def _copying(location: StoreLocation, directory: Path, calls: int) -> Iterator[Figure]:
    path = directory / "audit.jsonl"
    writer = RecordWriter(path, Envelope(Run("run", shim_id="bench")), rotate_bytes=0)
    for number in range(calls):
        writer.write(one_call(number))
    writer.close()
    ledger = open_shared_ledger(location)
    shipper, used = ChainShipper(path, "bench", directory), time.thread_time()
    while shipper.ship(ledger):
        pass
    copied = (time.thread_time() - used) / calls * 1e6
    yield Figure("CPU of copying a call's lines", copied, "us", note="in the gate, off the path")
    used = time.thread_time()
    index_ledger(ledger)
    indexed = (time.thread_time() - used) / calls * 1e6
    note = "by whoever asks; a gate spends 1 % of a core at most"
    yield Figure("CPU of indexing a call", indexed, "us", note=note)
    begun = time.perf_counter()
    verify_shared(ledger)
    rate = 3 * calls / (time.perf_counter() - begun)
    yield Figure("lines verified from the ledger", rate, "/s")
    ledger.close()


def measure(*, quick: bool) -> Iterable[Figure]:
    """Fill a ledger with COPY, ask it what people ask, and copy a record to another one."""
    rows, rounds = (ROWS // 5, 3) if quick else (ROWS, 5)
    server = PostgresServer("shared_buffers=256MB")
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        try:
            server.start()
            location = StoreLocation(directory, server.url("million"))
            ledger = open_shared_ledger(location)
            _fill(location.url, rows)
            for name, question in _questions(ledger, rows):
                figure = f"{name}, {rows:,} calls"
                yield Figure(figure, _median_ms(question, rounds), "ms", QUERY_MS)
            ledger.close()
            other = StoreLocation(directory, server.url("copied"))
            yield from _copying(other, directory, COPIED_CALLS // (5 if quick else 1))
        finally:
            server.remove()
