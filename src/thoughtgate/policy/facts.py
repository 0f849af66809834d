"""Facts: what is known about the data that a principal has seen, and where a call sends data.

``untrusted`` and ``private`` are facts of a principal. They hold from the moment a call that
establishes them is forwarded, or a result that was found to contain such data is passed on, until
a window has passed. ``outbound`` is a fact of one call: it goes to a tool that sends data out.
Rules (``when_facts``) and Cedar policies (``context.facts``) can ask for all of them.

This module is pure; ``SharedFacts`` describes what a store must offer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from thoughtgate.policy.globs import Glob, any_matches
from thoughtgate.policy.visibility import ANY_SERVER

UNTRUSTED: Final = "untrusted"
"""The principal has seen data that anybody may have written."""
PRIVATE: Final = "private"
"""The principal has seen data that must not leave the organisation."""
OUTBOUND: Final = "outbound"
"""The call goes to a tool that sends data out."""

ESTABLISHED: Final = (UNTRUSTED, PRIVATE)
"""The facts that a server's results establish."""
FACTS: Final = (*ESTABLISHED, OUTBOUND)
"""All facts, as rules name them."""

NO_FACTS: Final[frozenset[str]] = frozenset()

EVERYONE: Final = ""
"""The principal of facts that hold for every principal."""

WINDOW_S: Final = 3600.0
"""How long a fact holds by default."""

_BY_CLASS: Final = {"instructions": UNTRUSTED, "secret": PRIVATE, "personal": PRIVATE}
"""The fact that a finding in a result establishes, by the first word of its check."""


def facts_of_checks(checks: Iterable[str]) -> frozenset[str]:
    """Return the facts that findings in a result establish, from the ids of their checks."""
    found = (_BY_CLASS.get(check.partition("-")[0]) for check in checks)
    return frozenset(fact for fact in found if fact is not None)


class SharedFacts(Protocol):
    """The facts of all principals, as the gates that share a store know them."""

    def of(self, principal: str, at: float) -> frozenset[str] | None:
        """Return the facts that hold for a principal; None if the store cannot be read."""

    def establish(
        self, principal: str, facts: Iterable[str], at: float, *, window_s: float, cause: str
    ) -> None:
        """Let facts hold for a principal for at least a window, at every gate.

        Raises:
            StoreError: the store cannot be written; the facts then hold in this process only.
        """


class LocalFacts:
    """Facts in the memory of one process, for a judge without a store."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], float] = {}

    def of(self, principal: str, at: float) -> frozenset[str]:
        """Return the facts that hold for a principal."""
        return frozenset(
            fact for fact in ESTABLISHED if self._ends.get((principal, fact), 0.0) > at
        )

    def establish(
        self, principal: str, facts: Iterable[str], at: float, *, window_s: float, cause: str
    ) -> None:
        """Let facts hold for a principal for a window."""
        del cause
        for fact in facts:
            self._ends[(principal, fact)] = at + window_s


@dataclass(frozen=True, slots=True)
class ServerFlows:
    """What a server's results establish, and which of its tools send data out."""

    provides: frozenset[str] = frozenset()
    """The facts that every result of the server establishes."""
    outbound: tuple[Glob, ...] | None = None
    """Patterns of the names that send data out; None if nothing says so, and all of them count."""


_UNKNOWN: Final = ServerFlows()


@dataclass(frozen=True, slots=True)
class Flows:
    """Where data comes from and goes to, for every server of a policy."""

    servers: Mapping[str, ServerFlows] = field(default_factory=dict)
    """By server id; the key ``*`` is for all others."""
    window_s: float = WINDOW_S
    """How long a fact holds."""
    asked: bool = False
    """Whether a rule or a Cedar policy asks for facts."""

    def of(self, server: str) -> ServerFlows:
        """Return what is known about a server."""
        own = self.servers.get(server)
        return own if own is not None else self.servers.get(ANY_SERVER, _UNKNOWN)

    def is_outbound(self, server: str, name: str) -> bool:
        """Tell whether a call sends data out; without a list, every call of the server does."""
        # Fail closed: an unknown tool may send its arguments to anybody, and its annotations prove
        # nothing, because the server writes them itself.
        patterns = self.of(server).outbound
        return patterns is None or any_matches(patterns, name)

    def facts_of(
        self, server: str, name: str, known: frozenset[str] | None
    ) -> frozenset[str] | None:
        """Return the facts of one call: those of its principal, and ``outbound`` if it is."""
        if known is None:
            return None
        # A layer gets the call with the facts of the outer policy, and decides by its own lists.
        return known | {OUTBOUND} if self.is_outbound(server, name) else known - {OUTBOUND}
