"""Fetches what servers offer today from the servers themselves, without ever calling a tool."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.detection import agent_named
from thoughtgate.agents.discovery import discover
from thoughtgate.agents.expansion import expand
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.core.answers import introduction
from thoughtgate.core.definitions.pinned import Definition, define
from thoughtgate.core.record_events import Record
from thoughtgate.errors import PeerError, PeerGone, upstream_error
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.open_governor import identity_of, store_location
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.stores.pins import server_key
from thoughtgate.upstream.client import Carrier
from thoughtgate.upstream.connect import ServerSetup, config_directory, login_access
from thoughtgate.upstream.http_carrier import HttpCarrier
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.stdio_carrier import StdioCarrier
from thoughtgate.upstream.supervisor import LISTED_BY, Supervisor
from thoughtgate.wire.message import Fault, Message
from thoughtgate.wire.methods import INTRODUCTIONS, LISTINGS

TIMEOUT_S: Final = 30.0
"""How long one server may take for all of its lists."""

AT_ONCE: Final = 4
"""Maximum number of servers that are asked at the same time."""


_NOT_STARTED: Final = (
    "the config has neither its command nor its URL; "
    "to look at the servers of an agent, use: thoughtgate scan --agent NAME"
)


class Offered(NamedTuple):
    """One definition, and the list entry from which it was read."""

    definition: Definition
    entry: dict[str, Any]


class ServerOffer(NamedTuple):
    """What one server offers."""

    server: str
    key: str
    """The key of its pins."""
    found: tuple[Offered, ...] = ()
    failure: str = ""
    """Why it could not be asked; empty if it was."""


class _Ignored:
    """Receives what a server sends besides its lists, and ignores it."""

    def note(self, record: Record) -> None:
        """Ignore an event."""

    def server_sent(self, server: Any, message: Message) -> None:
        """Ignore a message."""

    def server_refused(self, server: Any, fault: Fault, line: bytes) -> None:
        """Ignore a frame that could not be read."""

    def server_changed(self, server: Any, event: str) -> None:
        """Ignore a change of state."""

    def lists_changed(self, server: Any, capability: str) -> None:
        """Ignore a changed list."""


def chosen_servers(settings: Settings) -> list[ServerSettings]:
    """Return the enabled servers of a config."""
    return [one for key, one in settings.servers.items() if key != "*" and one.enabled]


def servers_of_agent(agent: str) -> list[ServerSettings]:
    """Return the servers that an agent would start here.

    Raises:
        UsageError: there is no such agent.
    """
    search = Search(agent_named(agent), os.environ, Path.cwd(), Path.home(), platform=sys.platform)
    found: dict[str, ServerSettings] = {}
    plan = discover(search)

    def expanded(value: Any) -> str:
        return expand(str(value), plan.agent.syntax, os.environ)

    for entry in plan.entries:
        if not entry.enabled or not (entry.command or entry.url):
            continue
        found[entry.id] = ServerSettings(
            entry.id,
            command=expanded(entry.command),
            args=tuple(map(expanded, entry.args)),
            env={name: expanded(value) for name, value in entry.env.items()},
            cwd=expanded(entry.cwd),
            url=expanded(entry.url),
            headers={name: expanded(value) for name, value in entry.headers.items()},
        )
    return list(found.values())


def fetch_offers(
    servers: Iterable[ServerSettings], loaded: Loaded, tell: Callable[[str], None]
) -> list[ServerOffer]:
    """Ask servers for their lists; ``tell`` is called with the name of each that has answered."""
    return asyncio.run(_fetch_all(list(servers), loaded, tell))


async def _fetch_all(
    servers: list[ServerSettings], loaded: Loaded, tell: Callable[[str], None]
) -> list[ServerOffer]:
    slots = asyncio.Semaphore(AT_ONCE)
    location = store_location(loaded, state_directory(os.environ))
    around = ServerSetup(
        os.environ,
        config_directory(loaded.path),
        logins=login_access(loaded.settings, location, os.environ, loaded.path or ""),
        config=loaded.path or "",
        report=lambda _: None,
    )

    async def fetch(server: ServerSettings) -> ServerOffer:
        async with slots:
            made = await _fetch(server, loaded.settings, around)
        tell(made.server)
        return made

    try:
        return list(await asyncio.gather(*map(fetch, servers)))
    finally:
        await around.close()


async def _fetch(server: ServerSettings, settings: Settings, around: ServerSetup) -> ServerOffer:
    def carry(log: ServerLog) -> Carrier:
        if server.url:
            return HttpCarrier(around.open_pool(server))
        return StdioCarrier(server.id, around.command(server, settings), log, around.watcher)

    key = server_key(server.id, identity_of(server))
    if not server.url and not server.command:
        return ServerOffer(server.id, key, failure=_NOT_STARTED)
    supervisor = Supervisor(server, carry, _Ignored())
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return ServerOffer(server.id, key, tuple(await _lists(supervisor)))
    except TimeoutError:
        return ServerOffer(server.id, key, failure=f"no answer within {TIMEOUT_S:.0f} s")
    except (PeerError, PeerGone, OSError) as error:
        failure = str(error) or type(error).__name__
        # The message does not name the command, because agents get it too; people need it here.
        if getattr(error, "cause", "") == "start_failed":
            failure = f"{failure}: {server.command}"
        return ServerOffer(server.id, key, failure=failure)
    finally:
        await supervisor.dispose()


async def _lists(supervisor: Supervisor) -> list[Offered]:
    found: list[Offered] = []
    for method in LISTED_BY:
        kind, _, member = LISTINGS[method]
        offer = await supervisor.offer(method)
        if offer.left_out:
            # Nobody would look at those entries, and yet agents get them from a shim.
            raise upstream_error("no_answer", f"{method}: {offer.left_out}")
        found += [Offered(define(kind, entry[member], entry), entry) for entry in offer.entries]
    said = introduction(supervisor.instructions)
    kind = INTRODUCTIONS["initialize"].kind
    return [Offered(define(kind, said["name"], said), said), *found]
