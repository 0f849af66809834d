"""What the gate knows about the definitions of servers, for the judge.

The gate compares what servers list with the pins and reports the outcome here. A call then costs
only a dictionary lookup, and nothing at all if no server's definitions are pinned.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from thoughtgate.policy.call import APPROVE, DENY, PROMPT, RESOURCE, TOOL, Call, Verdict
from thoughtgate.policy.definitions import PIN, DefinitionPolicy
from thoughtgate.wire.methods import Named

DEFINITION_HELD: Final = "definition_held"

_LISTED: Final = frozenset({TOOL, PROMPT})
"""Kinds that a server must list before they can be called; a resource may come from a template."""

_UNREAD: Final = "the pinned definitions cannot be read"
_NO_LIST: Final = "the server's definitions could not be listed"
_UNLISTED: Final = "the server does not list it"

Key = tuple[str, str]
"""Kind and name."""


class Doubt(NamedTuple):
    """Why a definition is not accepted."""

    status: str
    """``held`` or ``refused``."""
    note: str
    """For reviewers and the record: what changed, or what was found."""


class KnownDefinitions:
    """Which definitions are accepted, as the gate last compared them."""

    def __init__(self, policy: DefinitionPolicy) -> None:
        self.is_watched = False
        """Whether the gate compares definitions; without that, none is enforced."""
        self.unread: set[str] = set()
        """Servers whose pins could not be read: everything counts as changed."""
        self._known: dict[str, dict[Key, Doubt | None]] = {}
        self._current: set[Key] = set()
        """Servers and kinds whose list was seen whole, and has not changed since."""
        self._modes: dict[str, str] = {}
        self._policy = policy
        self.enforces = False
        """Whether any call can be refused because of a definition."""
        self.is_relevant = False
        """Whether a verdict can depend on definitions at all."""
        self.use(policy)

    def use(self, policy: DefinitionPolicy) -> None:
        """Judge by another policy from now on."""
        self._policy = policy
        self._modes.clear()
        self.enforces = self.is_watched and policy.pins()
        self._look_at_doubts()

    def watch(self) -> None:
        """Enforce what the policy says: from now on the gate compares what servers list."""
        self.is_watched = True
        self.use(self._policy)

    def mode(self, server: str) -> str:
        """Return what happens to changed definitions of a server."""
        found = self._modes.get(server)
        if found is None:
            found = self._modes[server] = self._policy.mode(server)
        return found

    def replace(self, server: str, known: dict[Key, Doubt | None]) -> None:
        """Take over the outcome of a comparison: a definition without a doubt is accepted."""
        self._known[server] = known
        self._look_at_doubts()

    def listed(self, server: str, kind: str) -> None:
        """Note that a list was seen whole."""
        self._current.add((server, kind))

    def forget(self, server: str) -> None:
        """Note that a server's lists may have changed, so that they are fetched again."""
        self._current -= {one for one in self._current if one[0] == server}

    def doubt(self, server: str, kind: str, name: str) -> Doubt | None:
        """Return why a definition is not accepted; None if nothing is known against it."""
        return self._known.get(server, {}).get((kind, name))

    def hidden(self, server: str, kind: str, names: Iterable[str]) -> frozenset[str]:
        """Return the names in a list that the agent must not see."""
        if not self.enforces or self.mode(server) != PIN:
            return frozenset()
        if server in self.unread:
            return frozenset(names)
        known = self._known.get(server, {})
        # A name that was not compared yet is hidden, too.
        return frozenset(name for name in names if known.get((kind, name), _UNLISTED) is not None)

    def must_list(self, server: str, named: Iterable[Named], listed: str) -> bool:
        """Tell whether a list must be fetched before a request is judged."""
        return (
            not listed
            and self.mode(server) == PIN
            and any(
                one.kind in _LISTED and (server, one.kind) not in self._current for one in named
            )
        )

    def review(self, call: Call, verdict: Verdict) -> Verdict:
        """Refuse a call whose definition nobody has accepted, or tell the reviewer about it."""
        if verdict.action == DENY:
            return verdict
        if self.enforces and (refusal := self.objection(call)) is not None:
            return refusal
        doubt = self.doubt(call.server, call.kind, call.name)
        if verdict.action != APPROVE or doubt is None:
            return verdict
        reasons = [verdict.reason, doubt.note] if verdict.reason else [doubt.note]
        return verdict._replace(reason="; ".join(reasons))

    def objection(self, call: Call) -> Verdict | None:
        """Return the refusal of a call whose definition nobody has accepted."""
        server, kind, name = call.server, call.kind, call.name
        if kind not in _KINDS or self.mode(server) != PIN:
            return None
        if server in self.unread:
            return _held(_UNREAD)
        known = self._known.get(server, {})
        doubt = known.get((kind, name))
        if doubt is not None:
            return _held(doubt.note)
        if kind == RESOURCE:
            return None  # it need not be listed
        if (server, kind) not in self._current:
            return _held(_NO_LIST)
        return None if (kind, name) in known else _held(_UNLISTED)

    def _look_at_doubts(self) -> None:
        doubts = (doubt for known in self._known.values() for doubt in known.values())
        self.is_relevant = self.enforces or any(doubt is not None for doubt in doubts)


_KINDS: Final = frozenset({TOOL, PROMPT, RESOURCE})


def _held(reason: str) -> Verdict:
    return Verdict(DENY, "definitions", DEFINITION_HELD, reason)
