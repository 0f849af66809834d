"""The console's pages with a million calls on record, and how soon a page learns of a call."""

import contextlib
import http
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from bench.figure import Figure, percentile
from bench.record import SERVERS, TOOLS, one_call
from playwright.sync_api import Browser, Page
from tests.support.approvals import CALL, a_desk, a_store
from tests.support.consoles import Client, LocalConsole, chromium, write_events
from tests.support.postgres import PostgresServer

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import PENDING, Vote
from thoughtgate.core.open_calls import OpenCall
from thoughtgate.policy.call import APPROVE, Verdict
from thoughtgate.record.ledger import Ledger, ledger_path
from thoughtgate.record.shared_ledger import open_shared_ledger
from thoughtgate.record.shipper import RecordShipper
from thoughtgate.stores.open_database import StoreLocation

ROWS = 1_000_000
DAYS = 30
PAGE_MS = 200.0
LIVE_MS = 500.0

HELD = Verdict(APPROVE, "rules", reason="it deletes", rule="rules[0]")

CONFIG = """\
schema: 1
default: forward
rules:
  - {tool: "delete_*", action: approve, reason: gone is gone}
  - {tool: write_file, action: deny, reason: read only}
"""

PAGES = (
    *("/", "/overview?span=1h", "/overview", "/overview?span=7d", "/overview?span=30d"),
    "/overview?span=30d&server=mail",
    *("/traffic", "/calls", "/calls?since=1h", "/calls?since=30d", "/calls?server=mail"),
    *("/calls?tool=delete_*", "/calls?decision=BLOCK", "/calls?status=ERROR&decision=ALLOW"),
    "/calls?server=mail&decision=BLOCK&status=ERROR",
    "/calls?server=mail&decision=THROTTLE&status=TIMEOUT",
    "/calls?server=mail&principal=nobody",
    "/calls?approved_by=terminal:ann",
    "/calls?rule=rules[3]&tool=read_file_1",
    "/calls?rule=absent",
    *("/calls?text=item+777", "/calls?text=project", "/calls?text=%2F%2F", "/calls?text=*"),
    "/calls?text=item&server=mail&status=TIMEOUT",
    *("/policy", "/policy/explain?server=mail&name=delete_file", "/policy/learn"),
    *("/servers", "/servers/server?name=mail", "/servers/changes", "/people", "/gates"),
    *("/settings", "/stop"),
)

_COLUMNS = (
    *("call_id", "writer", "run_id", "session", "server", "kind", "tool", "method", "principal"),
    *("preview", "started_at", "decision", "gate", "rule", "reason", "policy", "status"),
    *("latency_ms", "ended_at", "asked_at", "approval_at", "approval", "approved_by"),
)
_KINDS = ("ALLOW", "ALLOW", "ALLOW", "ALLOW", "ALLOW", "ALLOW", "ALLOW", "ALLOW", "HOLD", "BLOCK")


def _rows(count: int, until: float) -> Iterator[tuple[Any, ...]]:
    """Yield calls spread evenly over the last days; a hundredth of them failed."""
    for number in range(count):
        at = until - DAYS * 86_400 * (count - number) / count
        decision = _KINDS[number * 7 % 10]
        held, failed = decision == "HOLD", number % 100 == 3 or decision == "BLOCK"
        preview = f'{{"path":"/srv/project/src/module_{number % 977}.py","query":"item {number}"}}'
        yield (
            *(f"run.{number}", f"gate{number % 3}", f"run-{number // 5000}", "1"),
            *(SERVERS[number % 3], "tool", f"{TOOLS[number % 6]}_{number % 5}", "tools/call"),
            *(
                "local",
                preview,
                at,
                decision,
                "rules",
                f"rules[{number % 6}]",
                "a rule says so",
                f"v{number // 200_000}",
            ),
            *("ERROR" if failed else "OK", number % 300, at + 0.1),
            *(
                (at, at + 20, "approved", f"terminal:{('ann', 'bob')[number % 2]}")
                if held
                else (None,) * 4
            ),
        )


def _fill_sqlite(record: Path, count: int) -> None:
    with contextlib.closing(Ledger(ledger_path(record))) as ledger:
        ledger.ingest(record)
        run = ledger.connection
        (head,) = run.execute("SELECT head FROM files").fetchone()
        run.execute("BEGIN")
        names = f"{', '.join(_COLUMNS)}, head"
        places = ", ".join("?" * (len(_COLUMNS) + 1))
        query = f"INSERT INTO calls ({names}) VALUES ({places})"
        run.executemany(query, ((*row, head) for row in _rows(count, time.time() - 60)))
        run.execute(
            "INSERT INTO words (rowid, text) SELECT id, tool || ' ' || preview || ' ' || reason "
            "FROM calls WHERE indexed = 0"
        )
        run.execute("UPDATE calls SET indexed = 1 WHERE indexed = 0")
        run.execute("COMMIT")
        run.executescript("PRAGMA analysis_limit = 400; PRAGMA optimize;")


def _fill_postgres(conninfo: str, count: int) -> None:
    with psycopg.connect(conninfo) as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY calls ({', '.join(_COLUMNS)}, file) FROM STDIN") as copy:
            for row in _rows(count, time.time() - 60):
                copy.write_row((*row, 1))
        cursor.execute(
            "INSERT INTO call_words SELECT id, to_tsvector('simple', "
            "regexp_replace(tool || ' ' || preview || ' ' || reason, '[^a-zA-Z0-9]+', ' ', 'g')) "
            "FROM calls"
        )
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _pages(client: Client, engine: str, rows: int, rounds: int) -> Iterator[Figure]:
    for path in PAGES:
        took = []
        for _ in range(rounds):
            begun = time.perf_counter()
            page = client.get(path)
            took.append((time.perf_counter() - begun) * 1000)
            if page.status != http.HTTPStatus.OK:
                raise RuntimeError(f"{path}: {page.status}")
        yield Figure(f"{engine}, {rows:,} calls: {path}", statistics.median(took), "ms", PAGE_MS)
    call = client.get("/calls").text.partition('data-call="')[2].partition('"')[0]
    begun = time.perf_counter()
    client.get(f"/calls/{call}")
    once = (time.perf_counter() - begun) * 1000
    yield Figure(f"{engine}, {rows:,} calls: one call", once, "ms", PAGE_MS)


@contextlib.contextmanager
def _shipped(location: StoreLocation) -> Iterator[None]:
    """Copy the record to the shared ledger, as a gate does."""
    shipper = RecordShipper(location.directory / "audit.jsonl", location, "gate0")
    shipper.start()
    try:
        yield
    finally:
        shipper.close()


WATCH = """() => {
  window.shown = {};
  const look = () => document.querySelectorAll("a[href]").forEach((one) => {
    window.shown[one.getAttribute("href")] ??= Date.now();
  });
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true});
}"""
"""Notes in the page when each link appears; Playwright itself looks only now and then."""


def _live(
    console: LocalConsole, browser: Browser, location: StoreLocation, rounds: int
) -> Iterator[Figure]:
    """Measure the time until an open page shows a call or an approval request."""
    engine = "PostgreSQL" if location.is_shared else "SQLite"
    store = a_store(location)
    queue = a_desk(store, {"default": WorkflowSettings("default")})
    numbers = itertools.count(ROWS + 1)

    def record_call() -> str:
        number = next(numbers)
        write_events(console.state, *(e._replace(at=time.time()) for e in one_call(number)))
        return f"/calls/run.{number}"

    def hold_call() -> str:
        call_id, now = f"run.{next(numbers)}", time.time()
        for one in store.listed(PENDING):  # they are limited
            store.vote(one.id, [Vote("terminal:ann", approve=False, at=now)], now)
        queue.ask(call_id, OpenCall(CALL, HELD, now), "default", now)
        return f"/approvals/{queue.facts(call_id)['approval_id']}"

    pages = (("/traffic", record_call), ("/calls", record_call), ("/", hold_call))
    page = browser.new_page()
    page.goto(console.console.new_link())
    page.wait_for_selector("text=Waiting for you")
    for path, act in pages:
        page.goto(console.base + path)
        page.wait_for_selector("[data-dot].on" if path != "/" else "main", state="attached")
        page.evaluate(WATCH)
        took = [_time_to_show(page, act, number) for number in range(rounds)]
        name = f"{engine}, live: recorded to shown on {path}"
        yield Figure(f"{name}, p50", statistics.median(took), "ms")
        yield Figure(f"{name}, p99", percentile(took, 0.99), "ms", LIVE_MS)
    page.close()
    store.close()


def _time_to_show(page: Page, act: Callable[[], str], number: int) -> float:
    """Return the milliseconds until the link that ``act`` returns is on the page."""
    time.sleep(0.037 * (number % 11))  # so that writes fall anywhere between two looks
    begun = time.time()
    link = act()
    page.wait_for_selector(f"a[href='{link}']", state="attached", timeout=LIVE_MS * 20)
    return float(page.evaluate("link => window.shown[link]", link)) - begun * 1000


def measure(*, quick: bool) -> Iterable[Figure]:
    """Request every page and typical filters, on SQLite and on PostgreSQL."""
    rows, rounds = (ROWS // 5, 3) if quick else (ROWS, 5)
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        record = write_events(state, *(one._replace(at=time.time()) for one in one_call(ROWS)))
        _fill_sqlite(record, rows)
        with LocalConsole(state, CONFIG) as console, chromium() as browser:
            location = StoreLocation(state)
            yield from _live(console, browser, location, 10 if quick else 100)
            yield from _pages(console.client(), "SQLite", rows, rounds)
    server = PostgresServer("shared_buffers=256MB")
    with tempfile.TemporaryDirectory() as folder:
        try:
            server.start()
            location = StoreLocation(Path(folder), server.url("million"))
            open_shared_ledger(location).close()
            _fill_postgres(location.url, rows)
            with LocalConsole(Path(folder), f"{CONFIG}store: {location.url}\n") as console:
                with _shipped(location), chromium() as browser:
                    yield from _live(console, browser, location, 10 if quick else 100)
                yield from _pages(console.client(), "PostgreSQL", rows, rounds)
        finally:
            server.remove()
