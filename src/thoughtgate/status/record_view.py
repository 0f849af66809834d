"""Views of the record for the console: live traffic, calls, servers, statistics.

Slow queries use the ledger, which is updated first; the newest events are read from the record
itself. Everything here may block and must run in a thread.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from thoughtgate.core.record_events import (
    ABOUT_SERVERS,
    MESSAGE,
    SERVER_EVENTS,
    SERVER_RECOVERED,
    SERVER_STARTED,
    TOOLS_LIST,
)
from thoughtgate.errors import StoreError
from thoughtgate.record.call_lines import find_call_lines
from thoughtgate.record.call_rows import event_time, member, text
from thoughtgate.record.call_search import search_calls
from thoughtgate.record.call_totals import count_rules, read_totals
from thoughtgate.record.follower import RecordFollower
from thoughtgate.record.ledger import Ledger, ledger_path
from thoughtgate.record.ledger_queries import (
    CallFilter,
    Connection,
    find_call,
    find_decisions,
    latencies_by,
    page_end,
    policy_changes,
)
from thoughtgate.record.reader import read_entry
from thoughtgate.status.call_statistics import overview_statistics
from thoughtgate.status.server_status import CallTotals, total_calls
from thoughtgate.status.server_view import ServerSummaries

Answer = TypeVar("Answer")

TAIL_BYTES: Final = 2 * 1024 * 1024
"""How far back the traffic page reads: a few thousand events, read in milliseconds."""

MAX_CALL_EVENTS: Final = 200
"""Events shown per call; a long call with progress may have more."""

STEPS_S: Final = (60, 300, 900, 3600, 21_600, 86_400)
"""Widths of a chart bar; the first that needs at most ``MAX_BARS`` bars is used."""
MAX_BARS: Final = 72

DAY_S: Final = 86_400

SERVER_BYTES: Final = 16 * 1024 * 1024
"""How much of the record is read at once to learn what servers offer; takes a tenth of a second."""

_NO_CALLS: Final[list[dict[str, Any]]] = []


class ConsoleRecord:
    """One record, as the console reads it."""

    def __init__(self, record: Path | None) -> None:
        """Read the record at a path; None if the record cannot be read back, such as on stderr."""
        self.path = record
        self._servers = ServerSummaries()
        self._lock = threading.Lock()
        self._is_reading = False
        self._follower = RecordFollower(record, rotated=True) if record is not None else None

    def recent(self, count: int, *, every: bool = False) -> list[dict[str, Any]]:
        """Return the newest events, newest first; without ``every``, only judged calls."""
        if self.path is None:
            return []
        newest: deque[dict[str, Any]] = deque(maxlen=count)
        for event in RecordFollower(self.path, tail_bytes=TAIL_BYTES).read():
            if every or event["type"] != MESSAGE:
                newest.append(event)
        return list(newest)[::-1]

    def follow(self) -> Callable[[], list[dict[str, Any]]]:
        """Return a function that returns the events since its last call."""
        if self.path is None:
            return list
        # Nothing but new events: the first read skips the line in which its single byte is.
        follower = RecordFollower(self.path, tail_bytes=1)
        follower.read()
        return follower.read

    def calls(
        self, limit: int, since: float = 0.0, until: float = 0.0, **wanted: Any
    ) -> list[dict[str, Any]]:
        """Return calls, newest first; ``wanted`` are fields of a ``CallFilter``."""
        chosen = CallFilter(since=since, until=until, limit=limit, **wanted)
        return self._ask(lambda connection: search_calls(connection, chosen), _NO_CALLS)

    def page_end(self, call: dict[str, Any]) -> tuple[float, int] | None:
        """Return the position after a listed call, for ``before`` of the next page."""
        return self._ask(lambda connection: page_end(connection, call), None)

    def rule_hits(self, policy: str) -> dict[tuple[str, str], int]:
        """Count the calls of a policy's version by rule and decision."""
        return self._ask(lambda connection: count_rules(connection, policy), {})

    def policy_changes(self, limit: int) -> list[tuple[float, dict[str, Any]]]:
        """Return the newest recorded changes of the policy."""
        return self._ask(lambda connection: policy_changes(connection, limit), [])

    def call(self, call_id: str) -> dict[str, Any] | None:
        """Return one call by its whole id."""
        found = self._ask(lambda connection: find_call(connection, call_id), _NO_CALLS)
        return next((call for call in found if call["call_id"] == call_id), None)

    def call_events(self, call_id: str) -> list[dict[str, Any]]:
        """Return the events of one call, in order."""
        if self.path is None:
            return []
        call = self.call(call_id)
        if call is None:
            return []
        with suppress(StoreError):
            found = find_call_lines(self.path, call, MAX_CALL_EVENTS)
            return [entry.event for entry in found]
        return []

    def servers(self) -> ServerSummaries:
        """Return the servers and what they offer.

        A long record is read to its end in the background; later pages know more.
        """
        with self._lock:
            is_behind = self._read_on()
            if is_behind and not self._is_reading:
                self._is_reading = True
                threading.Thread(target=self._read_all, daemon=True, name="servers").start()
            return self._servers

    def _read_on(self) -> bool:
        """Read more of the record; return whether there is still more."""
        size = 0
        for line in self._follower.lines() if self._follower is not None else ():
            if any(mark in line.data for mark in ABOUT_SERVERS):
                self._learn(read_entry(line).event)
            size += line.size
            if size > SERVER_BYTES:
                return True
        return False

    def _read_all(self) -> None:
        while self._is_reading:
            with self._lock:
                # ``close`` may have ended the reading in the meantime.
                self._is_reading = self._read_on() and self._is_reading

    def stats(self, since: float, until: float, server: str = "") -> dict[str, Any]:
        """Return the statistics for the charts, of all servers or of one.

        The period begins at a whole step, so that every bar is complete; ``since`` is its start.
        """
        step = next((step for step in STEPS_S if (until - since) / step <= MAX_BARS), STEPS_S[-1])
        wanted = CallFilter(since=since // step * step, server=server)
        nothing: dict[str, Any] = {}
        stats = self._ask(lambda ledger: overview_statistics(ledger, wanted, step), nothing)
        return {**stats, "since": wanted.since} if stats else {}

    def whole_days(self, now: float, days: int) -> float:
        """Return the start of the last days that ``totals`` counts, including today."""
        return (now // DAY_S - days + 1) * DAY_S

    def totals(self, column: str, since: float, server: str = "") -> dict[str, CallTotals]:
        """Return calls, failures and latencies since a time by server or tool, most calls first."""
        wanted = CallFilter(since=since // DAY_S * DAY_S, server=server)

        def question(ledger: Connection) -> dict[str, CallTotals]:
            found = read_totals(ledger, wanted, DAY_S) or ()
            return total_calls(found, column, latencies_by(ledger, column, wanted))

        return self._ask(question, {})

    def decisions(self, since: float, limit: int) -> list[tuple[str, str, float, float]]:
        """Return who decided about held calls, the outcome, and when it was requested and given."""
        return self._ask(lambda ledger: find_decisions(ledger, since, limit), [])

    def state(self) -> tuple[int, ...]:
        """Return a value that differs after events were recorded; very cheap."""
        try:
            status = self.path.stat() if self.path is not None else None
        except OSError:
            return ()
        return (status.st_ino, status.st_size) if status is not None else ()

    def close(self) -> None:
        """Stop reading; a record on this machine keeps nothing open."""
        self._is_reading = False

    def _ask(self, question: Callable[[Connection], Answer], nothing: Answer) -> Answer:
        if self.path is None or not self.path.is_file():
            return nothing
        try:
            with closing(Ledger(ledger_path(self.path))) as ledger:
                ledger.ingest(self.path)
                return question(ledger.connection)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: the ledger cannot be read: {error}") from error

    def _learn(self, event: dict[str, Any]) -> None:
        server, at = text(event, "server_name") or "", event_time(event)
        kind = event.get("type")
        if kind == TOOLS_LIST:
            listed = member(event, "list")
            self._servers.listed(
                server,
                text(listed, "method") or "",
                entries=dict(_strings(member(listed, "entries"))),
                hidden=frozenset(
                    name for name in _items(listed.get("hidden")) if isinstance(name, str)
                ),
                at=at,
            )
        elif kind in SERVER_EVENTS:
            is_degraded = text(member(event, "server"), "state") == "degraded"
            is_up = kind in {SERVER_STARTED, SERVER_RECOVERED} or is_degraded
            self._servers.moved(server, running=is_up, at=at)


def _strings(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in found.items() if isinstance(value, str))


def _items(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []
