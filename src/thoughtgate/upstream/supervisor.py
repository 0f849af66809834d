"""Looks after one server: starts it when it is needed, restarts it, stops it, knows its lists.

The states and what may follow them are ``core.server_lifecycle``'s; here they are carried out.
One process or connection serves all calls. Whatever happens to this server stays here.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.catalogue import MAX_ENTRIES, NOTHING, Offer, check_offer
from thoughtgate.core.server_lifecycle import (
    BROKE,
    CAME_UP,
    DISABLED,
    ENDED,
    FAILED,
    HALTED,
    RUNNING,
    TOLD_TO_START,
    TOLD_TO_STOP,
    UNUSED,
    WAITING,
    WANTED,
    Supervision,
    advance,
)
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.clock import monotonic
from thoughtgate.upstream.client import Carrier, Upstream, wanted_changes
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.wire.message import Fault, Message
from thoughtgate.wire.methods import LISTINGS
from thoughtgate.wire.revisions import with_traceparent

MAX_PAGES: Final = 1000
"""Pages of one list; a server whose list never ends is cut off."""

WORTH_WAITING_S: Final = 2.5
"""A call waits for a restart that is this near; for a later one it is refused at once."""

IDLE_LOOK_S: Final = 1.0

MAX_NOISE: Final = 5000
NOISE_S: Final = 10.0
"""A server with so many unreadable lines in so short a time is given up: each costs a record."""

LISTED_BY: Final[dict[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
}
"""The capability without which a list is not asked for."""

_log: Final = logging.getLogger("thoughtgate.serve")


class Owner(Protocol):
    """The hub, as a supervisor sees it."""

    def server_asked(self, supervisor: "Supervisor", message: Message) -> None:
        """The server asks something of a client."""

    def server_said(self, supervisor: "Supervisor", message: Message) -> None:
        """The server sent a notification."""

    def server_refused(self, supervisor: "Supervisor", fault: Fault, size: int) -> None:
        """A frame of the server was dropped."""

    def server_changed(self, supervisor: "Supervisor", event: str) -> None:
        """The server came into another state."""

    def lists_changed(self, supervisor: "Supervisor", capability: str) -> None:
        """What the server offers is not what it was."""


class Supervisor:
    """One server."""

    def __init__(
        self, settings: ServerSettings, carry: Callable[[ServerLog], Carrier], owner: Owner
    ) -> None:
        self.settings = settings
        self.log = ServerLog()
        self.standing = Supervision(state=DISABLED) if not settings.enabled else Supervision()
        self.declared: dict[str, Any] = {}
        """Client capabilities to tell a legacy server when it is started."""
        self.subscribed: dict[str, int] = {}
        """Resources that clients follow, with how many do."""
        self.warnings: dict[str, tuple[str, ...]] = {}
        self.capabilities: dict[str, Any] | None = None
        """What the server could do when it was last up; None before."""
        self.used_at = monotonic()
        self.calls = 0
        self.was_listed = settings.enabled
        self._carry = carry
        self._owner = owner
        self._upstream: Upstream | None = None
        self._start: asyncio.Task[Upstream] | None = None
        self._again: asyncio.Task[None] | None = None
        self._idle: asyncio.Task[None] | None = None
        self._offers: dict[str, Offer] = {}
        self._stale: set[str] = set()
        self._listing: dict[str, asyncio.Task[Offer]] = {}
        self._noise = 0
        self._noisy_since = 0.0

    @property
    def id(self) -> str:
        """The server's id."""
        return self.settings.id

    @property
    def upstream(self) -> Upstream | None:
        """The connection, when there is one."""
        return self._upstream

    def known(self, method: str) -> Offer | None:
        """Return a list as it was last seen; None when it never was."""
        return self._offers.get(method)

    def is_fresh(self, method: str) -> bool:
        """Tell whether a list is in memory and good."""
        return method in self._offers and method not in self._stale

    @property
    def is_listed(self) -> bool:
        """Whether clients see what it offers: it is up, or will come up when it is called."""
        return self.standing.state not in {HALTED, DISABLED, FAILED}

    def declare(self, capabilities: dict[str, Any]) -> None:
        """Say what clients can be asked; a running server has been told already."""
        if not self.standing.is_up:
            self.declared = capabilities

    # Up.

    async def ready(self, *, by_hand: bool = False) -> Upstream:
        """Return the connection, starting the server when it is not up.

        Raises:
            PeerError: it cannot be used now, and why.
        """
        self.used_at = monotonic()
        upstream = self._upstream
        if upstream is not None and upstream.is_open:
            return upstream
        while self._start is None:
            await self._may_start(by_hand=by_hand)
            if self._start is None and not self._begin(TOLD_TO_START if by_hand else WANTED):
                await asyncio.sleep(0.02)
        return await asyncio.shield(self._start)

    async def _may_start(self, *, by_hand: bool) -> None:
        """Wait for a near restart; refuse when there is none."""
        standing = self.standing
        if standing.state == DISABLED:
            raise PeerError("server_not_running", "the server is disabled in the config")
        if by_hand:
            return
        if standing.state == HALTED:
            raise PeerError("server_not_running", "the server was stopped by hand")
        if standing.state in {WAITING, FAILED}:
            left = standing.retry_at - monotonic()
            if left > WORTH_WAITING_S:
                reason = f"{standing.reason}; the next try is in {left:.0f} s"
                raise PeerError("server_start_failed", reason)
            if left > 0:
                await asyncio.sleep(left)

    def _begin(self, event: str) -> bool:
        if not self._move(event):
            return False
        self._start = asyncio.ensure_future(self._come_up())
        self._start.add_done_callback(self._start_ended)
        return True

    async def _come_up(self) -> Upstream:
        settings = self.settings
        upstream = Upstream(self._carry(self.log), _Ear(self))
        self._upstream = upstream
        self._noise = 0
        try:
            async with asyncio.timeout(settings.start_timeout_s):
                await upstream.open(self.declared)
        except TimeoutError:
            reason = f"the server was not ready within {settings.start_timeout_s:g} s"
        except (PeerGone, PeerError) as error:
            reason = str(error)
        else:
            self._came_up(upstream)
            return upstream
        self._upstream = None
        self.log.add(f"[thoughtgate] {reason}")
        if self._move(BROKE, reason):
            self._plan_restart()
        raise PeerError("server_start_failed", reason)

    def _start_ended(self, task: asyncio.Task[Upstream]) -> None:
        self._start = None
        if not task.cancelled():
            task.exception()  # Whoever waited has it; an unattended restart has the log.

    def _came_up(self, upstream: Upstream) -> None:
        self.capabilities = upstream.capabilities
        self.used_at = monotonic()  # whoever waited for the start has not called yet
        self._move(CAME_UP)
        self._stale |= set(self._offers)
        self._hear_changes(upstream)
        if self.settings.idle_s and (self._idle is None or self._idle.done()):
            self._idle = spawn(self._watch_idleness())
        for method in list(self._offers):
            self._refresh(method)

    def _hear_changes(self, upstream: Upstream) -> None:
        if upstream.modern:
            wanted = wanted_changes(upstream.capabilities, sorted(self.subscribed))
            if wanted:
                upstream.listen(wanted)
            return
        for uri in self.subscribed:
            spawn(self._ask_quietly("resources/subscribe", {"uri": uri}))

    # Down.

    async def stop(self, *, by_hand: bool = True) -> None:
        """Stop the server; by hand it stays down until it is started by hand."""
        await finish(self._again, self._start)
        if not self._move(TOLD_TO_STOP if by_hand else UNUSED):
            return
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            await upstream.close()
        self._move(ENDED)

    async def restart(self) -> Upstream:
        """Stop the server if it is up, and start it."""
        await self.stop()
        return await self.ready(by_hand=True)

    async def dispose(self) -> None:
        """Leave nothing behind: the hub ends, or the server is no longer in the config."""
        await finish(self._again, self._start, self._idle, *self._listing.values())
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            await upstream.close()

    def lost(self, reason: str) -> None:
        """The server ended by itself."""
        if self.standing.state != RUNNING:
            return  # A start that is under way reports it itself.
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            spawn(upstream.close())
        self.log.add(f"[thoughtgate] {reason}")
        if self._move(BROKE, reason):
            self._plan_restart()

    def _plan_restart(self) -> None:
        if self.standing.state == WAITING:
            self._again = spawn(self._restart_later(self.standing.retry_at))

    async def _restart_later(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - monotonic()))
        if self.standing.state == WAITING and self._start is None:
            self._begin(WANTED)

    async def _watch_idleness(self) -> None:
        while self.standing.state == RUNNING:
            upstream = self._upstream
            busy = upstream is not None and upstream.open_requests > 0
            idle = monotonic() - self.used_at
            if not busy and not self.subscribed and idle >= self.settings.idle_s:
                await self.stop(by_hand=False)
                return
            await asyncio.sleep(min(IDLE_LOOK_S, max(0.05, self.settings.idle_s - idle)))

    def _move(self, event: str, reason: str = "") -> bool:
        moved = advance(self.standing, event, monotonic(), reason)
        if moved is None:
            return False
        self.standing = moved
        level = logging.WARNING if event == BROKE else logging.INFO
        facts = {"server": self.id, "reason": moved.reason or None}
        _log.log(level, "server %s", moved.state, extra=facts)
        self._owner.server_changed(self, event)
        return True

    # Lists.

    async def offer(self, method: str) -> Offer:
        """Return a list of the server, from memory while that is good.

        Raises:
            PeerError: the server cannot be started or does not answer.
        """
        known = self._offers.get(method)
        if known is not None and method not in self._stale:
            return known
        listing = self._listing.get(method)
        if listing is None:
            listing = asyncio.ensure_future(self._list(method))
            self._listing[method] = listing
            listing.add_done_callback(lambda task: self._listed(method, task))
        return await asyncio.shield(listing)

    def mark_stale(self, capability: str) -> None:
        """The server says that a list has changed: fetch again what was fetched before."""
        for method, needed in LISTED_BY.items():
            if needed == capability:
                self._stale.add(method)
                if method in self._offers:
                    self._refresh(method)
        self._owner.lists_changed(self, capability)

    def _refresh(self, method: str) -> None:
        spawn(self._refresh_quietly(method))

    async def _refresh_quietly(self, method: str) -> None:
        before = self._offers.get(method)
        try:
            after = await self.offer(method)
        except (PeerError, PeerGone, TimeoutError):
            return
        if before is not None and after.entries != before.entries:
            self._owner.lists_changed(self, LISTED_BY[method])

    def _listed(self, method: str, task: asyncio.Task[Offer]) -> None:
        self._listing.pop(method, None)
        if not task.cancelled():
            task.exception()

    async def _list(self, method: str) -> Offer:
        upstream = await self.ready()
        self._stale.discard(method)
        if LISTED_BY[method] not in upstream.capabilities:
            self._offers[method] = NOTHING
            return NOTHING
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                listed = await self._pages(upstream, method)
        except TimeoutError:
            raise PeerError("upstream_timeout", f"{method} was not answered in time") from None
        except PeerGone as gone:
            raise PeerError("upstream_connection_failed", str(gone)) from None
        offer = check_offer(method, listed)
        self._offers[method] = offer
        self.warnings[method] = offer.warnings
        return offer

    async def _pages(self, upstream: Upstream, method: str) -> list[Any]:
        member = LISTINGS[method].member
        listed: list[Any] = []
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            reply = await upstream.ask(method, params)
            result = reply.body.get("result")
            if type(result) is not dict or type(result.get(member)) is not list:
                raise PeerError("upstream_connection_failed", f"{method} was answered with no list")
            listed += result[member]
            cursor = result.get("nextCursor")
            if type(cursor) is not str or len(listed) > MAX_ENTRIES:
                break
            params = {"cursor": cursor}
        return listed

    # Resources that clients follow.

    async def follow(self, uri: str, trace: str = "") -> Message | None:
        """Hear of changes of a resource; return the server's refusal, if it has one.

        ``trace`` is the W3C trace context of the request; a modern server has none to tell it
        with, for one listen stands for all who follow.
        """
        first = uri not in self.subscribed
        upstream = await self.ready()
        if first and not upstream.modern:
            reply = await upstream.ask("resources/subscribe", _about(uri, trace))
            if "error" in reply.body:
                return reply
        self.subscribed[uri] = self.subscribed.get(uri, 0) + 1
        if first and upstream.modern:
            self._hear_changes(upstream)
        return None

    def unfollow(self, uri: str, trace: str = "") -> None:
        """One client less follows a resource."""
        left = self.subscribed.get(uri, 0) - 1
        if left > 0:
            self.subscribed[uri] = left
            return
        if self.subscribed.pop(uri, None) is None:
            return
        upstream = self._upstream
        if upstream is None or not upstream.is_open:
            return
        if upstream.modern:
            self._hear_changes(upstream)
        else:
            spawn(self._ask_quietly("resources/unsubscribe", _about(uri, trace)))

    async def _ask_quietly(self, method: str, params: dict[str, Any]) -> None:
        """Ask something whose answer nobody waits for."""
        upstream = self._upstream
        if upstream is None:
            return
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                await upstream.ask(method, params)
        except (TimeoutError, PeerError, PeerGone):
            return

    def set_log_level(self, level: str) -> None:
        """Tell a running legacy server how much to log."""
        upstream = self._upstream
        if upstream is None or not upstream.is_open or upstream.modern:
            return
        if "logging" in upstream.capabilities:
            spawn(self._ask_quietly("logging/setLevel", {"level": level}))

    # What the connection says.

    def heard(self, message: Message) -> None:
        """The server sent a notification."""
        method = message.method
        if method.endswith("/list_changed"):
            capability = method.removeprefix("notifications/").removesuffix("/list_changed")
            if capability in LISTED_BY.values():
                self.mark_stale(capability)
            return
        self._owner.server_said(self, message)

    def asked(self, message: Message) -> None:
        """The server asks something."""
        self._owner.server_asked(self, message)

    def refused(self, fault: Fault, size: int) -> None:
        """A frame of the server was dropped; one that sends little else is given up."""
        moment = monotonic()
        if moment - self._noisy_since > NOISE_S:
            self._noisy_since, self._noise = moment, 0
        self._noise += 1
        if self._noise <= MAX_NOISE:
            self._owner.server_refused(self, fault, size)
        else:  # Each time anew: one that is still starting cannot be lost yet.
            self.lost("the server floods its output with lines that are no messages")


def _about(uri: str, trace: str) -> dict[str, Any]:
    """Return the params of a request about a resource, with its trace context if it has one."""
    params: dict[str, Any] = {"uri": uri}
    return with_traceparent({"params": params}, trace)["params"] if trace else params


class _Ear:
    """What a connection tells its supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def server_asked(self, message: Message) -> None:
        self._supervisor.asked(message)

    def server_said(self, message: Message) -> None:
        self._supervisor.heard(message)

    def server_lost(self, reason: str) -> None:
        self._supervisor.lost(reason)

    def server_refused(self, fault: Fault, size: int) -> None:
        self._supervisor.refused(fault, size)
