"""Stop orders in the shared store: what an operator has stopped, for every gate that shares it."""

from typing import Final

from thoughtgate.core.approval import POLICY_KIND, Approval, Refusal
from thoughtgate.policy.stops import ALL, PRINCIPAL, SERVER, StopOrder
from thoughtgate.stores.database import Store, Transaction, next_rev

MAX_ORDERS: Final = 1000
"""Maximum number of orders; an operator who needs more stops everything instead."""

_SELECT: Final = "SELECT scope, name, reason, ordered_by, ordered_at FROM stop_orders"


class StopStore(Store):
    """The stop orders of all gates that share the store."""

    def listed(self) -> tuple[StopOrder, ...]:
        """Return the orders in force, oldest first, with times of this machine's clock.

        Raises:
            StoreError: the store cannot be read.
        """
        ahead_s = self._database.time(0.0)
        rows = self._database.read(f"{_SELECT} ORDER BY ordered_at, scope, name")
        return tuple(
            StopOrder(scope, name, reason, by, at - ahead_s) for scope, name, reason, by, at in rows
        )

    def stop(self, order: StopOrder) -> bool:
        """Add an order; False if there are too many. An order for the same target is replaced.

        Raises:
            StoreError: the store cannot be written, so nothing is stopped.
        """
        with self._database.write(through_power_loss=True) as transaction:
            next_rev(transaction)  # tells every gate
            at = self._database.time(order.at)
            count = transaction.execute("SELECT count(*) FROM stop_orders").fetchone()[0]
            # Everything can be stopped at any time, however many orders an agent has given.
            if count >= MAX_ORDERS and order.scope != ALL:
                known = "SELECT 1 FROM stop_orders WHERE scope = ? AND name = ?"
                if transaction.execute(known, order[:2]).fetchone() is None:
                    return False
            transaction.execute(
                "INSERT INTO stop_orders (scope, name, reason, ordered_by, ordered_at) "
                "VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope, name) DO UPDATE SET "
                "reason = excluded.reason, ordered_by = excluded.ordered_by, "
                "ordered_at = excluded.ordered_at",
                (*order[:4], at),
            )
            return True

    def resume(self, scope: str, name: str) -> bool:
        """Remove an order; return whether there was one.

        Raises:
            StoreError: the store cannot be written, so everything stays stopped.
        """
        with self._database.write(through_power_loss=True) as transaction:
            next_rev(transaction)
            removed = transaction.execute(
                "DELETE FROM stop_orders WHERE scope = ? AND name = ?", (scope, name)
            )
            return bool(removed.rowcount)


def refuse_stopped(transaction: Transaction, asked: Approval) -> Refusal | None:
    """Return why a held call cannot be approved: it is stopped. None if it is not."""
    if asked.kind == POLICY_KIND:
        return None
    row = transaction.execute(
        f"{_SELECT} WHERE scope = ? OR (scope = ? AND name = ?) OR (scope = ? AND name = ?) "
        "ORDER BY scope LIMIT 1",
        (ALL, SERVER, asked.server, PRINCIPAL, asked.principal),
    ).fetchone()
    if row is None:
        return None
    order = StopOrder(*row)
    text = f"{order.target} is stopped ({order.reason})" if order.reason else "the call is stopped"
    return Refusal("stopped", f"{text}; it cannot be approved before: thoughtgate resume")
