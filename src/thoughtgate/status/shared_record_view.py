"""Views of the records of all gates that share a store, for the console.

Everything here may block and must run in a thread.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thoughtgate.core.record_events import ABOUT_SERVERS, MESSAGE
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.ledger_queries import Connection
from thoughtgate.record.reader import read_entry
from thoughtgate.record.shared_ledger import SharedLedger, open_shared_ledger
from thoughtgate.record.shared_reader import SharedFollower, call_events, newest_events
from thoughtgate.status.record_view import MAX_CALL_EVENTS, Answer, ConsoleRecord
from thoughtgate.status.server_view import ServerSummaries
from thoughtgate.stores.open_database import StoreLocation


class SharedConsoleRecord(ConsoleRecord):
    """The records of all gates, as the console reads them."""

    def __init__(self, record: Path | None, location: StoreLocation) -> None:
        """Read the ledger of a store; ``record`` is what the gate of this console writes."""
        super().__init__(record)
        self._location = location
        self._ledger: SharedLedger | None = None
        self._opening = threading.Lock()
        self._news: SharedFollower | None = None

    def recent(self, count: int, *, every: bool = False) -> list[dict[str, Any]]:
        """Return the newest events of all gates, newest first."""

        def accepts(event: dict[str, Any]) -> bool:
            return every or event["type"] != MESSAGE

        return newest_events(self._open(), accepts, count)[::-1]

    def follow(self) -> Callable[[], list[dict[str, Any]]]:
        """Return a function that returns the events since its last call."""
        return SharedFollower(self._open()).read

    def call_events(self, call_id: str) -> list[dict[str, Any]]:
        """Return the events of one call, in order."""
        ledger, call = self._open(), self.call(call_id)
        query = "SELECT file FROM calls WHERE call_id = ? ORDER BY id LIMIT 1"
        found = ledger.database.read(query, (call_id,))
        return call_events(ledger, call, found[0][0], MAX_CALL_EVENTS) if call and found else []

    def servers(self) -> ServerSummaries:
        """Return the servers of all gates and what they offer."""
        with self._lock:
            if self._news is None:
                self._news = SharedFollower(self._open(), from_start=True)
            for line in self._news.lines(with_lists=True):
                if any(mark in line.data for mark in ABOUT_SERVERS):
                    self._learn(read_entry(line).event)
            return self._servers

    def state(self) -> tuple[int, ...]:
        """Return a value that differs after any gate recorded something."""
        found = self._open().database.read("SELECT max(id) FROM calls")
        return tuple(row[0] or 0 for row in found)

    def close(self) -> None:
        """Close the connection to the store."""
        with self._opening:
            if self._ledger is not None:
                self._ledger.close()
                self._ledger = None

    def _ask(self, question: Callable[[Connection], Answer], nothing: Answer) -> Answer:
        del nothing
        ledger = self._open()
        index_ledger(ledger)
        return question(ledger.connection)

    def _open(self) -> SharedLedger:
        with self._opening:
            if self._ledger is None:
                self._ledger = open_shared_ledger(self._location)
            return self._ledger
