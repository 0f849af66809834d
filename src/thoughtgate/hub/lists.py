"""Lists put together from many servers: discovered with bounds, screened, named, cut into pages.

A server that is slow, broken or floods only loses its own entries; when a slow one comes
after all, the clients are told that the list has changed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from thoughtgate.core.catalogue import Offer, exposed_entry, name_warnings
from thoughtgate.core.list_pages import Page, page_of
from thoughtgate.core.routing import compose
from thoughtgate.core.task_codec import advertise_tool
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.gate.background import spawn
from thoughtgate.hub.client import Client
from thoughtgate.hub.engine import HubEngine
from thoughtgate.upstream.supervisor import LISTED_BY, Supervisor
from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import LISTINGS
from thoughtgate.wire.replies import render

AT_ONCE: Final = 4
"""Servers that are discovered at the same time."""

DISCOVERY_S: Final = 5.0
"""How long a list waits for one server; its start goes on in the background."""

LIST_S: Final = 25.0
"""How long a list waits for all servers: under the half minute after which clients give up."""

_log: Final = logging.getLogger("thoughtgate.serve")


class Shown(NamedTuple):
    """An entry as clients see it, rendered once for all of them."""

    name: str
    """As the server names it."""
    exposed: str
    data: bytes


class Own(NamedTuple):
    """Entries of the hub itself."""

    server: str
    entries: tuple[dict[str, Json], ...]


class HubLists:
    """Makes the hub's lists."""

    def __init__(self, gate: HubEngine, changed: Callable[[Supervisor, str], None]) -> None:
        self.generation = 0
        """Grows whenever a list may have changed; cursors bind to it."""
        self._gate = gate
        self._changed = changed
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._rendered: dict[tuple[str, str, bool], tuple[Offer, str, list[Shown]]] = {}
        self._late: set[tuple[Supervisor, str]] = set()

    def forget(self) -> None:
        """Something changed: cursors that were given out no longer hold."""
        self.generation += 1

    async def collect(self, method: str, supervisors: Iterable[Supervisor]) -> None:
        """Have every server's list in memory, as far as the servers answer in time."""
        missing = [one for one in supervisors if self._is_missing(method, one)]
        if not missing:
            return
        tasks = [
            asyncio.ensure_future(self._discover(method, supervisor)) for supervisor in missing
        ]
        await asyncio.wait(tasks, timeout=LIST_S)

    def _is_missing(self, method: str, supervisor: Supervisor) -> bool:
        return supervisor.settings.enabled and not supervisor.is_fresh(method)

    async def _discover(self, method: str, supervisor: Supervisor) -> None:
        if supervisor.standing.failures:
            # It has kept everybody waiting before: who is told later loses less.
            self._await_late(method, supervisor)
            return
        patience = min(DISCOVERY_S, supervisor.settings.start_timeout_s)
        async with self._slots:
            try:
                async with asyncio.timeout(patience):
                    await supervisor.offer(method)
            except TimeoutError:
                self._await_late(method, supervisor)
            except (PeerError, PeerGone) as error:
                _log.warning("no list: %s", error, extra={"server": supervisor.id})

    def _await_late(self, method: str, supervisor: Supervisor) -> None:
        key = (supervisor, method)
        if key not in self._late:
            self._late.add(key)
            spawn(self._take_late(method, supervisor))

    async def _take_late(self, method: str, supervisor: Supervisor) -> None:
        try:
            await supervisor.offer(method)
        except (PeerError, PeerGone):
            return
        finally:
            self._late.discard((supervisor, method))
        self._changed(supervisor, LISTED_BY[method])

    def show(
        self,
        client: Client,
        method: str,
        supervisors: Iterable[Supervisor],
        separator: str,
        own: Own | None = None,
    ) -> list[bytes]:
        """Return the entries that a client may see, rendered, each name once."""
        shown: dict[str, bytes] = {}
        for supervisor in supervisors:
            offer = supervisor.known(method)
            if offer is None or not supervisor.is_listed:
                continue
            hidden = self._gate.screen(supervisor.id, client.id, method, offer.entries)
            for entry in self._entries(
                method, supervisor, offer, separator, modern=client.is_modern
            ):
                if entry.name not in hidden and entry.exposed not in shown:
                    shown[entry.exposed] = entry.data
        if own is not None:
            hidden = self._gate.screen(own.server, client.id, method, own.entries)
            for tool in own.entries:
                if tool["name"] not in hidden:
                    exposed = compose(own.server, tool["name"], separator)
                    named = {**tool, "name": exposed}
                    shown[exposed] = render(named if client.is_modern else advertise_tool(named))
        return list(shown.values())

    def page(self, entries: list[bytes], cursor: str | None) -> Page | None:
        """Return the part of a list that a cursor stands for; None for a foreign cursor."""
        return page_of([len(entry) for entry in entries], str(self.generation), cursor)

    def _entries(
        self, method: str, supervisor: Supervisor, offer: Offer, separator: str, *, modern: bool
    ) -> list[Shown]:
        key = (supervisor.id, method, modern)
        title = supervisor.settings.name or supervisor.id
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
