"""Stop orders and facts in the store that gates share: listing, stopping, resuming and clearing."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any, Final

from thoughtgate.core.envelope import render_time
from thoughtgate.errors import StoreError, UsageError
from thoughtgate.gate.clock import now
from thoughtgate.policy.facts import ESTABLISHED
from thoughtgate.policy.stops import ALL, StopOrder
from thoughtgate.stores.facts import FactStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.stop_orders import MAX_ORDERS, StopStore

MAX_REASON: Final = 500
"""Characters of a reason."""

MAX_TARGET: Final = 512
"""Characters of the name of a server or a principal."""


class StopActions:
    """Stop orders of one store. Operations are rare, so each of them opens the store."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def listed(self) -> tuple[StopOrder, ...]:
        """Return the orders in force, oldest first.

        Raises:
            StoreError: the store cannot be read.
        """
        with closing(open_database(self._location)) as database:
            return StopStore(database).listed()

    def stop(self, scope: str, name: str, *, reason: str, by: str) -> StopOrder:
        """Stop a server, a principal or everything.

        Raises:
            StoreError: the store cannot be written, so nothing is stopped.
            UsageError: the order is not acceptable.
        """
        if scope != ALL and not 0 < len(name) <= MAX_TARGET:
            raise UsageError(f"the name of the {scope} must have 1 to {MAX_TARGET} characters")
        if len(reason) > MAX_REASON:
            raise UsageError(f"the reason must have at most {MAX_REASON} characters")
        order = StopOrder(scope, name, reason, by, now())
        with closing(open_database(self._location)) as database:
            if not StopStore(database).stop(order):
                raise UsageError(f"there are {MAX_ORDERS} stop orders already; stop --all instead")
        return order

    def resume(self, scope: str, name: str) -> bool:
        """Remove the stop order of a server, a principal or everything; return whether there was one.

        Raises:
            StoreError: the store cannot be written, so everything stays stopped.
        """
        with closing(open_database(self._location)) as database:
            return StopStore(database).resume(scope, name)


def order_object(order: StopOrder) -> dict[str, Any]:
    """Return an order in JSON form."""
    return {
        "scope": order.scope,
        "name": order.name,
        "reason": order.reason,
        "by": order.by,
        "at": render_time(order.at),
    }


def read_facts(location: StoreLocation) -> list[dict[str, Any]]:
    """Return the facts that hold, by principal, in JSON form.

    Raises:
        StoreError: the store cannot be read.
    """
    with closing(open_database(location)) as database:
        return [
            {
                "principal": one.principal or "*",
                "fact": one.fact,
                "cause": one.cause,
                "established_at": render_time(one.established_at),
                "expires_at": render_time(one.expires_at),
            }
            for one in FactStore(database).listed(now())
        ]


def clear_facts(location: StoreLocation, principal: str, facts: Iterable[str] = ()) -> int:
    """End facts of a principal, by default all; return how many there were.

    Raises:
        StoreError: the store cannot be written, so they still hold.
    """
    holder = "" if principal == "*" else principal
    with closing(open_database(location)) as database:
        return FactStore(database).clear(holder, tuple(facts) or ESTABLISHED, now())


def shown_orders(location: StoreLocation) -> list[dict[str, Any]]:
    """Return the orders for an overview; none if there is no store or it cannot be read."""
    if not location.may_exist:
        return []
    try:
        return [order_object(order) for order in StopActions(location).listed()]
    except StoreError:
        return []


def shown_facts(location: StoreLocation) -> list[dict[str, Any]]:
    """Return the facts for an overview; none if there is no store or it cannot be read."""
    if not location.may_exist:
        return []
    try:
        return read_facts(location)
    except StoreError:
        return []
