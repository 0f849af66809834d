"""Routing: finds the server for a composed name or URI, and fetches what judging needs.

Policies can match on a server's tool annotations, so a server's list is fetched before the
first call to it. It is not fetched for a hidden target: a call to one must start nothing.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from thoughtgate.core.catalogue import Offer
from thoughtgate.core.routing import Route, find_owner, split
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.hub.engine import HubEngine
from thoughtgate.hub.lists import HubLists
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.policy.evaluation import is_visible
from thoughtgate.wire.methods import COMPLETE, Named

RESOURCES: Final = "resources/list"
TEMPLATES: Final = "resources/templates/list"
LIST_OF: Final = {"tool": "tools/list", "prompt": "prompts/list"}


class Target(NamedTuple):
    """The target of a request, in the server's own terms."""

    server: str
    """Empty if no server matches."""
    kind: str
    name: str
    params: dict[str, Any]


class HubRoutes:
    """Finds the servers of requests."""

    def __init__(self, gate: HubEngine, lists: HubLists) -> None:
        self._gate = gate
        self._lists = lists
        self._learned: dict[str, Any] = {}

    def named(
        self,
        method: str,
        named: Named,
        params: dict[str, Any],
        servers: Iterable[str],
        separator: str,
    ) -> Target:
        """Return the target of a tool call, a prompt or the completion of a prompt."""
        server, own = split(named.name, separator, servers) or Route("", named.name)
        renamed = {"ref": {**params["ref"], "name": own}} if method == COMPLETE else {"name": own}
        return Target(server, named.kind, own, {**params, **renamed})

    def owned(self, uri: str, params: dict[str, Any], supervisors: list[ServerRelay]) -> Target:
        """Return the target of a resource request, as far as the lists in memory tell."""
        listed: dict[str, str] = {}
        templates: list[tuple[str, str]] = []
        for supervisor in supervisors:
            offer, made = supervisor.known(RESOURCES), supervisor.known(TEMPLATES)
            for entry in offer.entries if offer is not None else ():
                # If two servers list the same URI, the first one in the namespace wins.
                listed.setdefault(entry["uri"], supervisor.id)
            patterns = made.entries if made is not None else ()
            templates += [(entry["uriTemplate"], supervisor.id) for entry in patterns]
        capable = [one.id for one in supervisors if "resources" in (one.capabilities or {})]
        owner = find_owner(uri, listed, templates, capable)
        return Target(owner or "", "resource", uri, params)

    def _may_pass(self, target: Target) -> bool:
        """Return whether a request may reach its server; outside production, hidden targets may."""
        policy = self._gate.governor.policy
        shown = is_visible(policy.visibility, target.server, target.kind, target.name)
        return shown or policy.profile != PRODUCTION

    def unless_unknown(
        self, target: Target, exposed: str, params: dict[str, Any], offer: Offer | None
    ) -> Target:
        """Return the target, or a target without a server if its server does not offer it.

        ``exposed`` and ``params`` are the client's own. Without an offer the target is kept, so that
        the call is judged and recorded; the relay then refuses to carry it.
        """
        if offer is None or target.name in offer.names or not self._may_pass(target):
            return target
        return Target("", target.kind, exposed, params)

    def needs_list(self, target: Target, supervisor: ServerRelay) -> bool:
        """Return whether the server's list must be fetched before the call is judged."""
        method = LIST_OF.get(target.kind)
        if method is None or supervisor.is_fresh(method):
            return False
        if supervisor.known(method) is not None and supervisor.has_just_failed(method):
            # The old list serves until the next attempt: not every call must wait for a failure.
            return False
        return self._may_pass(target)

    async def learn(self, target: Target, supervisor: ServerRelay) -> None:
        """Fetch a server's list for the judge; if that fails, calls are judged but not carried."""
        method = LIST_OF[target.kind]
        try:
            await supervisor.offer(method)
        except (PeerError, PeerGone):
            return
        self.teach(supervisor)

    def teach(self, supervisor: ServerRelay) -> None:
        """Give the judge a server's description of its tools, once per list."""
        offer = supervisor.known("tools/list")
        if offer is not None and self._learned.get(supervisor.id) is not offer:
            self._learned[supervisor.id] = offer
            self._gate.learn(supervisor.id, offer.entries)

    async def collect_resources(self, supervisors: list[ServerRelay]) -> None:
        """Fetch the lists that are needed to find the server of a resource."""
        await self._lists.collect(RESOURCES, supervisors)
        await self._lists.collect(TEMPLATES, supervisors)
