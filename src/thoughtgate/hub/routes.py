"""From the name a client uses to the server it means, with what must be known before judging.

A gate judges with what a server says of its tools, so a server's list is fetched before
the first call to it; but never for something that is hidden, which must start nothing.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from thoughtgate.core.catalogue import Offer
from thoughtgate.core.routing import Route, find_owner, split
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.hub.engine import HubEngine
from thoughtgate.hub.lists import HubLists
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.upstream.supervisor import Supervisor
from thoughtgate.wire.methods import COMPLETE, Named

RESOURCES: Final = "resources/list"
TEMPLATES: Final = "resources/templates/list"
LIST_OF: Final = {"tool": "tools/list", "prompt": "prompts/list"}


class Target(NamedTuple):
    """What a request is about, as its server knows it."""

    server: str
    """Empty when no server is meant."""
    kind: str
    name: str
    params: dict[str, Any]


class HubRoutes:
    """Finds servers."""

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
        """Return where a tool, a prompt or a completion of a prompt belongs."""
        kind = named.kind
        route = split(named.name, separator, servers) or Route("", named.name)
        if method == COMPLETE:
            return Target(
                route.server,
                kind,
                route.name,
                {**params, "ref": {**params["ref"], "name": route.name}},
            )
        return Target(route.server, kind, route.name, {**params, "name": route.name})

    def owned(self, uri: str, params: dict[str, Any], supervisors: list[Supervisor]) -> Target:
        """Return where a resource belongs, as far as the lists in memory tell."""
        listed: dict[str, str] = {}
        templates: list[tuple[str, str]] = []
        for supervisor in supervisors:
            offer, made = supervisor.known(RESOURCES), supervisor.known(TEMPLATES)
            for entry in offer.entries if offer is not None else ():
                listed.setdefault(entry["uri"], supervisor.id)
            patterns = made.entries if made is not None else ()
            templates += [(entry["uriTemplate"], supervisor.id) for entry in patterns]
        capable = [one.id for one in supervisors if "resources" in (one.capabilities or {})]
        owner = find_owner(uri, listed, templates, capable)
        return Target(owner or "", "resource", uri, params)

    def is_visible(self, target: Target) -> bool:
        """Tell whether a client may know of something at all."""
        visibility = self._gate.governor.policy.visibility
        return visibility.allows(target.server, target.kind, target.name)

    def _may_pass(self, target: Target) -> bool:
        """Tell whether a request may get to its server: hidden or not, where hiding is observed."""
        observes = self._gate.governor.policy.profile != PRODUCTION
        return observes or self.is_visible(target)

    def unless_unknown(
        self, target: Target, exposed: str, params: dict[str, Any], offer: Offer | None
    ) -> Target:
        """Return where a request goes: nowhere when its server does not offer what it names.

        ``exposed`` and ``params`` are the client's own; without an offer nothing is unknown.
        """
        if offer is None or target.name in offer.names or not self._may_pass(target):
            return target
        return Target("", target.kind, exposed, params)

    def needs_list(self, target: Target, supervisor: Supervisor) -> bool:
        """Tell whether the server must be asked what it offers before the call is judged."""
        method = LIST_OF.get(target.kind)
        return method is not None and not supervisor.is_fresh(method) and self._may_pass(target)

    async def learn(self, target: Target, supervisor: Supervisor) -> None:
        """Fetch a server's list for the judge; a server that cannot tell is judged without."""
        method = LIST_OF[target.kind]
        try:
            await supervisor.offer(method)
        except (PeerError, PeerGone):
            return
        self.teach(supervisor)

    def teach(self, supervisor: Supervisor) -> None:
        """Let the judge see what a server says of its tools, once for each list."""
        offer = supervisor.known("tools/list")
        if offer is not None and self._learned.get(supervisor.id) is not offer:
            self._learned[supervisor.id] = offer
            self._gate.learn(supervisor.id, offer.entries)

    async def collect_resources(self, supervisors: list[Supervisor]) -> None:
        """Have the lists in memory by which a resource's owner is found."""
        await self._lists.collect(RESOURCES, supervisors)
        await self._lists.collect(TEMPLATES, supervisors)
