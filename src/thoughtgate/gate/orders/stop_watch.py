"""Applies stop orders to a gate: reads them from the store, records changes, tells the judge.

The judge refuses by the orders in its memory. With SQLite they are read on the path of a call, a
few times per second and only after something in the store has changed. With PostgreSQL a thread
reads them, so that no call waits for the database; while it is away, the orders last read apply.
"""

from collections.abc import Callable
from typing import Any, Final

from thoughtgate.core.record_events import MAX_NAME, STOP_CHANGED, Record
from thoughtgate.errors import StoreError
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.stops import SERVER, StopOrder, Stops
from thoughtgate.stores.database import Database
from thoughtgate.stores.stop_orders import StopStore

LOOK_S: Final = 0.25
"""How often a gate looks for changed orders while calls arrive: orders apply within a second."""


class StopWatch:
    """Follows the stop orders in a store."""

    def __init__(self, database: Database, say: Callable[[str], None] = lambda _: None) -> None:
        """Read the orders; ``say`` tells the operator when they can no longer be read.

        Raises:
            StoreError: they cannot be read.
        """
        self._say = say
        self._database = database
        self._store = StopStore(database)
        self._state: Any = database.state()
        self._latest = Stops(self._store.listed())
        self._applied = Stops()

    def look(
        self, at: float, apply: Callable[[Stops], None], note: Callable[[Record], None]
    ) -> None:
        """Apply the orders that have changed since the last look, and record the changes."""
        if not self._database.is_shared:
            self.refresh()
        latest, before = self._latest, self._applied
        if latest is before:
            return
        self._applied = latest
        apply(latest)
        if latest.is_unreadable:
            # Which orders there are is unknown, so nothing is recorded as resumed.
            self._applied = Stops(before.orders, is_unreadable=True)
            return
        # Scope and name identify an order; a changed reason is a new order, another time is not.
        for order in before.orders:
            if not any(order[:2] == one[:2] for one in latest.orders):
                note(_changed(at, order, stopped=False))
        for order in latest.orders:
            if not any(order[:-1] == one[:-1] for one in before.orders):
                note(_changed(at, order, stopped=True))

    def refresh(self) -> None:
        """Read the orders if anything in the store has changed; a thread may call this."""
        try:
            if not self._database.is_current():
                # This gate still has the old file open, and would miss an order in the new one.
                self._lose("another file is in the place of the state database; restart this gate")
                return
            state = self._database.state()
            if state == self._state and not self._latest.is_unreadable:
                return
            orders = self._store.listed()
        except StoreError as error:
            # A database that is away must not stop every gate: nobody can add an order to it.
            if not self._database.is_shared:
                self._lose(str(error))
            return
        self._state = state
        if orders != self._latest.orders or self._latest.is_unreadable:
            self._latest = Stops(orders)

    def _lose(self, why: str) -> None:
        """Refuse every call: the file may have an order that cannot be read."""
        if not self._latest.is_unreadable:
            self._say(f"the stop orders cannot be read, so calls are refused: {why}")
            self._latest = Stops(self._latest.orders, is_unreadable=True)


def _changed(at: float, order: StopOrder, *, stopped: bool) -> Record:
    """Return the event of a gate that noticed an order, or that one is gone."""
    stop: dict[str, Any] = {
        "change": "stopped" if stopped else "resumed",
        "scope": order.scope,
        "name": order.name[:MAX_NAME],
        "reason": Redactor().mask_text(order.reason),
        "ordered_by": order.by,
    }
    server = order.name if order.scope == SERVER else ""
    return Record(STOP_CHANGED, at, server, "0", {"stop": stop})
