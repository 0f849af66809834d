"""The hub's lists, merged from many servers: fetched with limits, screened, named and paged.

A server that is slow, broken or sends too much loses only its own entries. When a slow
server answers later, the clients are told that the list has changed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from weakref import WeakSet

from thoughtgate.core.answers import introduction
from thoughtgate.core.catalogue import Offer, exposed_entry, name_warnings
from thoughtgate.core.negotiation import NAME
from thoughtgate.core.routing import compose
from thoughtgate.core.task import advertise_tool
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.gate.background import spawn
from thoughtgate.hub.client import Client
from thoughtgate.hub.engine import HubEngine
from thoughtgate.hub.list_pages import Page, page_of
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.upstream.supervisor import LISTED_BY
from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import LISTINGS
from thoughtgate.wire.replies import render

AT_ONCE: Final = 4
"""Maximum number of servers that are queried at the same time."""

DISCOVERY_S: Final = 5.0
"""How long a list waits for one server; the server keeps starting in the background."""

LIST_S: Final = 25.0
"""How long a list waits for all servers; clients commonly give up after 30 seconds."""

_log: Final = logging.getLogger("thoughtgate.serve")


class Shown(NamedTuple):
    """A list entry as clients see it, rendered once for all clients."""

    name: str
    """The server's name for it."""
    exposed: str
    data: bytes


class HubLists:
    """Builds the hub's lists."""

    def __init__(self, gate: HubEngine, changed: Callable[[ServerRelay, str], None]) -> None:
        self.generation = 0
        """Incremented whenever a list may have changed; cursors are bound to it."""
        self._gate = gate
        self._changed = changed
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._rendered: dict[tuple[str, str, bool], tuple[Offer, str, list[Shown]]] = {}
        self._late: set[tuple[ServerRelay, str]] = set()
        self._slow: WeakSet[ServerRelay] = WeakSet()
        """Servers that did not answer in time; no list waits for them until they do."""

    def forget(self) -> None:
        """Invalidate all cursors, because a list has changed."""
        self.generation += 1

    async def collect(self, method: str, supervisors: Iterable[ServerRelay]) -> None:
        """Fetch the lists that are missing, from the servers that answer in time."""
        missing = [one for one in supervisors if self._is_missing(method, one)]
        if not missing:
            return
        tasks = [
            asyncio.ensure_future(self._discover(method, supervisor)) for supervisor in missing
        ]
        await asyncio.wait(tasks, timeout=LIST_S)

    def _is_missing(self, method: str, supervisor: ServerRelay) -> bool:
        if supervisor.is_fresh(method):
            self._slow.discard(supervisor)
            return False
        return supervisor.settings.enabled

    async def _discover(self, method: str, supervisor: ServerRelay) -> None:
        if supervisor.standing.failures or supervisor in self._slow:
            # This server has failed before, or did not answer. Do not make every list wait for it
            # again: clients are notified if it answers later.
            self._await_late(method, supervisor)
            return
        patience = min(DISCOVERY_S, supervisor.settings.start_timeout_s)
        async with self._slots:
            try:
                async with asyncio.timeout(patience):
                    await supervisor.offer(method)
            except TimeoutError:
                self._slow.add(supervisor)
                self._await_late(method, supervisor)
            except (PeerError, PeerGone) as error:
                if error.kind == "upstream_timeout":
                    self._slow.add(supervisor)
                # A failed start was already reported.
                level = logging.DEBUG if supervisor.standing.reason else logging.WARNING
                _log.log(level, "no list: %s", error, extra={"server": supervisor.id})

    def _await_late(self, method: str, supervisor: ServerRelay) -> None:
        key = (supervisor, method)
        if key not in self._late:
            self._late.add(key)
            spawn(self._take_late(method, supervisor))

    async def _take_late(self, method: str, supervisor: ServerRelay) -> None:
        try:
            await supervisor.offer(method)
        except (PeerError, PeerGone):
            return
        finally:
            self._late.discard((supervisor, method))
        self._slow.discard(supervisor)
        self._changed(supervisor, LISTED_BY[method])

    def show(
        self,
        client: Client,
        method: str,
        supervisors: Iterable[ServerRelay],
        separator: str,
        own: tuple[dict[str, Json], ...] = (),
    ) -> list[bytes]:
        """Return the rendered entries that a client may see, without duplicate names.

        ``own`` are the entries of the hub itself.
        """
        shown: dict[str, bytes] = {}
        for supervisor in supervisors:
            offer = supervisor.known(method)
            if offer is None or not supervisor.is_listed:
                continue
            # Compared with every list: a client may have connected before the server was up.
            said = introduction(supervisor.instructions)
            self._gate.screen(supervisor.id, client.id, "initialize", (said,))
            hidden = self._gate.screen(supervisor.id, client.id, method, offer.entries)
            for entry in self._entries(
                method, supervisor, offer, separator, modern=client.is_modern
            ):
                if entry.name not in hidden and entry.exposed not in shown:
                    shown[entry.exposed] = entry.data
        hidden = self._gate.screen(NAME, client.id, method, own) if own else frozenset()
        for tool in own:
            if tool["name"] not in hidden:
                exposed = compose(NAME, tool["name"], separator)
                named = {**tool, "name": exposed}
                shown[exposed] = render(named if client.is_modern else advertise_tool(named))
        return list(shown.values())

    def page(self, entries: list[bytes], cursor: str | None) -> Page | None:
        """Return the page of a list that a cursor refers to; None for an invalid cursor."""
        return page_of([len(entry) for entry in entries], str(self.generation), cursor)

    def _entries(
        self, method: str, supervisor: ServerRelay, offer: Offer, separator: str, *, modern: bool
    ) -> list[Shown]:
        key = (supervisor.id, method, modern)
        title = supervisor.settings.name or supervisor.id
        # Rendering is the expensive part of a list, and the entries rarely change.
        kept = self._rendered.get(key)
        if kept is not None and kept[0] is offer and kept[1] == title + separator:
            return kept[2]
        made = []
        name_key = LISTINGS[method].key
        for entry in offer.entries:
            exposed = exposed_entry(method, entry, supervisor.id, title, separator)
            if exposed is not None:
                if method == "tools/list" and not modern:
                    exposed = advertise_tool(exposed)
                made.append(Shown(entry[name_key], exposed[name_key], render(exposed)))
        supervisor.warnings[method] = (
            *offer.warnings,
            *name_warnings(method, offer, supervisor.id, separator),
        )
        self._rendered[key] = (offer, title + separator, made)
        return made
