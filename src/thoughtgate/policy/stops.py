"""Stop orders: an operator has stopped a server, a principal or everything, until it is resumed.

Pure: the orders come from a store. A stop order is not part of the policy: it is enforced in the
development profile too, and before every other gate.
"""

from typing import Final, NamedTuple

from thoughtgate.policy.call import DENY, Call, Verdict

STOP: Final = "stop"
"""The gate that refuses calls because of a stop order."""

ALL: Final = "all"
SERVER: Final = "server"
PRINCIPAL: Final = "principal"

SCOPES: Final = (ALL, SERVER, PRINCIPAL)
"""What an order can stop."""


class StopOrder(NamedTuple):
    """One stop order."""

    scope: str
    """``all``, ``server`` or ``principal``."""
    name: str
    """The id of the server or the name of the principal, compared exactly; empty for ``all``."""
    reason: str = ""
    """The reason that the operator gave."""
    by: str = ""
    """Who gave the order, as ``channel:name``."""
    at: float = 0.0
    """When it was given."""

    @property
    def target(self) -> str:
        """What is stopped, for people."""
        return "all calls" if self.scope == ALL else f"{self.scope} {self.name}"


class Stops:
    """The stop orders in force."""

    __slots__ = ("_by_target", "is_unreadable", "orders")

    def __init__(self, orders: tuple[StopOrder, ...] = (), *, is_unreadable: bool = False) -> None:
        """Refuse the calls that ``orders`` stop; all of them if some orders cannot be read."""
        self.orders = orders
        self.is_unreadable = is_unreadable
        self._by_target = {(one.scope, one.name): one for one in orders}

    def __bool__(self) -> bool:
        """Whether any call may have to be refused."""
        return bool(self.orders) or self.is_unreadable

    def find(self, server: str, principal: str) -> StopOrder | None:
        """Return the order that stops a server's calls by a principal."""
        for target in ((ALL, ""), (SERVER, server), (PRINCIPAL, principal)):
            if target in self._by_target:
                return self._by_target[target]
        return None

    def refuse(self, call: Call) -> Verdict | None:
        """Return the refusal of a call that is stopped; None if it is not."""
        order = self.find(call.server, call.principal)
        if order is not None:
            reason = f"stopped: {order.reason}" if order.reason else "stopped"
            return Verdict(DENY, STOP, "governance_denied", reason, f"stop:{order.target}")
        if self.is_unreadable:
            return Verdict(
                DENY, STOP, "service_unavailable", "the stop orders cannot be read", "stop"
            )
        return None
