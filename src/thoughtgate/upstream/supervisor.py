"""One server of the hub: negotiated, shared by all calls, with its lists cached.

``upstream.server_runner`` starts, restarts and stops it. A failure of this server does not
affect other servers.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.catalogue import MAX_ENTRIES, NOTHING, Offer, check_offer
from thoughtgate.core.record_events import Record
from thoughtgate.core.server_lifecycle import CAME_UP, DISABLED, FAILED, HALTED, RUNNING
from thoughtgate.errors import PeerError, PeerGone, upstream_error
from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.clock import monotonic
from thoughtgate.upstream.client import Carrier, ServerConnection, wanted_changes
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.server_runner import ServerRunner
from thoughtgate.wire.message import NOTIFICATION, Fault, Message
from thoughtgate.wire.methods import LISTINGS
from thoughtgate.wire.revisions import with_traceparent

MAX_PAGES: Final = 1000
"""Maximum number of pages per list; a server may send an endless list."""

IDLE_LOOK_S: Final = 1.0

LIST_AGAIN_S: Final = 5.0
"""How long after a failure a list is not fetched again for calls that wait for it."""

LISTED_BY: Final[dict[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
}
"""The capability that a server must declare before a list is requested."""


class Owner(Protocol):
    """The part of the hub that a supervisor needs.

    ``server`` is typed with ``Any`` because the hub gets back its own subclass of ``Supervisor``.
    """

    def note(self, record: Record) -> None:
        """Put an event on the record."""

    def server_sent(self, server: Any, message: Message) -> None:
        """Handle a request or a notification of the server."""

    def server_refused(self, server: Any, fault: Fault, line: bytes) -> None:
        """Handle a server frame that was dropped."""

    def server_changed(self, server: Any, event: str) -> None:
        """Handle a change of the server's state."""

    def lists_changed(self, server: Any, capability: str) -> None:
        """Handle a change of one of the server's lists."""


class Supervisor(ServerRunner):
    """Runs one server of the hub and caches its lists."""

    log: ServerLog

    def __init__(
        self, settings: ServerSettings, carry: Callable[[ServerLog], Carrier], owner: Owner
    ) -> None:
        super().__init__(settings, owner.note, ServerLog())
        self.declared: dict[str, Any] = {}
        """Client capabilities to declare when a legacy server is started."""
        self.subscribed: dict[str, int] = {}
        """Number of followers per resource."""
        self.warnings: dict[str, tuple[str, ...]] = {}
        self.capabilities: dict[str, Any] | None = None
        """The server's capabilities when it was last up; None before its first start."""
        self.instructions = ""
        """The server's own instructions when it was last up."""
        self.used_at = monotonic()
        self.calls = 0
        self.was_listed = settings.enabled
        self._carry = carry
        self._owner = owner
        self._idle: asyncio.Task[None] | None = None
        self._offers: dict[str, Offer] = {}
        self._stale: set[str] = set()
        self._listing: dict[str, asyncio.Task[Offer]] = {}
        self._failed_at: dict[str, float] = {}
        """When the last fetch of a list failed, for the lists of which it did."""
        self._list_errors: dict[str, BaseException] = {}
        """Why each list last failed."""

    def known(self, method: str) -> Offer | None:
        """Return the last known version of a list; None if it was never fetched."""
        return self._offers.get(method)

    def is_fresh(self, method: str) -> bool:
        """Return whether a list is cached and up to date."""
        return method in self._offers and method not in self._stale

    def has_just_failed(self, method: str) -> bool:
        """Return whether a list could not be fetched a moment ago."""
        failed_at = self._failed_at.get(method)
        return failed_at is not None and monotonic() - failed_at < LIST_AGAIN_S

    def list_error(self, method: str) -> PeerError:
        """Return the error for a call that cannot be made because a list is not known."""
        kind, reason = "service_unavailable", f"the server has not answered {method}"
        error = self._list_errors.get(method)
        if not isinstance(error, PeerError):
            return PeerError(kind, reason)
        reason = f"{reason}: {error}" if error.status else reason
        return PeerError(kind, reason, error.cause, status=error.status)

    @property
    def is_listed(self) -> bool:
        """Whether clients see its entries: it is up, or will be started when it is called."""
        return self.standing.state not in {HALTED, DISABLED, FAILED}

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for an answer or follows a resource."""
        upstream = self.upstream
        is_busy = upstream is not None and upstream.open_requests > 0
        return not is_busy and not self.subscribed and self._start is None

    def declare(self, capabilities: dict[str, Any]) -> None:
        """Set the client capabilities for the next start; a running server keeps its own."""
        if not self.standing.is_up:
            self.declared = capabilities

    # Start and stop.

    async def ready(self, *, by_hand: bool = False) -> ServerConnection:
        """Return the connection; start the server if it is not up.

        Raises:
            PeerError: the server cannot be used now; the error says why.
        """
        self.used_at = monotonic()
        return await super().ready(by_hand=by_hand)

    async def dispose(self) -> None:
        """Stop the server for good: the hub stops, or the server was removed from the config."""
        await super().dispose()
        await finish(self._idle, *self._listing.values())

    def _connect(self) -> ServerConnection:
        return ServerConnection(self._carry(self.log), self)

    async def _open(self, connection: ServerConnection) -> None:
        await connection.open(self.declared)

    def _came_up(self, connection: ServerConnection) -> None:
        # A slow start must not count as idle time: its callers have not called yet.
        self.used_at = monotonic()
        self._learn_anew(connection)
        if self.settings.idle_s and (self._idle is None or self._idle.done()):
            self._idle = spawn(self._watch_idleness())

    def _learn_anew(self, connection: ServerConnection) -> None:
        """Fetch the lists and subscribe again: the process or the session is a new one."""
        self.capabilities = connection.capabilities
        self.instructions = connection.instructions
        self._stale |= set(self._offers)
        self._hear_changes(connection)
        for method in list(self._offers):
            self._refresh(method)

    def _changed(self, event: str) -> None:
        self._owner.server_changed(self, event)

    def _hear_changes(self, upstream: ServerConnection) -> None:
        if upstream.modern:
            wanted = wanted_changes(upstream.capabilities, sorted(self.subscribed))
            if wanted:
                upstream.listen(wanted)
            return
        for uri in self.subscribed:
            spawn(self._ask_quietly("resources/subscribe", {"uri": uri}))

    async def _watch_idleness(self) -> None:
        while self.standing.state == RUNNING:
            idle_s = monotonic() - self.used_at
            if self.is_idle and idle_s >= self.settings.idle_s:
                await self.stop(by_hand=False)
                return
            await asyncio.sleep(min(IDLE_LOOK_S, max(0.05, self.settings.idle_s - idle_s)))

    # Lists.

    async def offer(self, method: str) -> Offer:
        """Return a list of the server, from the cache if it is up to date.

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
        """Refetch the cached lists of a capability, because the server says they have changed."""
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
        self._failed_at.pop(method, None)
        failure = asyncio.CancelledError() if task.cancelled() else task.exception()
        if failure is not None:
            # What is cached, if anything, is from before the change.
            self._stale.add(method)
            self._failed_at[method] = monotonic()
            self._list_errors[method] = failure

    async def _list(self, method: str) -> Offer:
        upstream = await self.ready()
        # Before the request, so that a change that is announced meanwhile marks the list again.
        self._stale.discard(method)
        if LISTED_BY[method] not in upstream.capabilities:
            self._offers[method] = NOTHING
            return NOTHING
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                listed = await self._pages(upstream, method)
        except TimeoutError:
            reason = f"{method} was not answered in time"
            raise upstream_error("answer_timeout", reason) from None
        except PeerGone as gone:
            raise PeerError(gone.kind, str(gone), gone.cause) from None
        offer = check_offer(method, listed)
        self._offers[method] = offer
        self.warnings[method] = offer.warnings
        return offer

    async def _pages(self, upstream: ServerConnection, method: str) -> list[Any]:
        member = LISTINGS[method].member
        listed: list[Any] = []
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            reply = await upstream.ask(method, params)
            result = reply.body.get("result")
            if type(result) is not dict or type(result.get(member)) is not list:
                reason = f"{method} was answered with no list"
                raise upstream_error("no_answer", reason)
            listed += result[member]
            cursor = result.get("nextCursor")
            if type(cursor) is not str or len(listed) > MAX_ENTRIES:
                break
            params = {"cursor": cursor}
        return listed

    # Resource subscriptions.

    async def follow(self, uri: str, trace: str = "") -> Message | None:
        """Subscribe to a resource for one more client; return the server's refusal, if any.

        ``trace`` is the W3C trace context of the request. It is not passed to a modern server,
        because one listen request covers all followers.
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
        """Note that one client no longer follows a resource; the last one ends the subscription."""
        left = self.subscribed.get(uri, 0) - 1
        if left > 0:
            self.subscribed[uri] = left
            return
        if self.subscribed.pop(uri, None) is None:
            return
        upstream = self.upstream
        if upstream is None or not upstream.is_open:
            return
        if upstream.modern:
            self._hear_changes(upstream)
        else:
            spawn(self._ask_quietly("resources/unsubscribe", _about(uri, trace)))

    async def _ask_quietly(self, method: str, params: dict[str, Any]) -> None:
        """Send a request whose response nobody waits for."""
        upstream = self.upstream
        if upstream is None:
            return
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                await upstream.ask(method, params)
        except (TimeoutError, PeerError, PeerGone):
            return

    def set_log_level(self, level: str) -> None:
        """Set the log level of a running legacy server."""
        upstream = self.upstream
        if upstream is None or not upstream.is_open or upstream.modern:
            return
        if "logging" in upstream.capabilities:
            spawn(self._ask_quietly("logging/setLevel", {"level": level}))

    # Callbacks of the connection; see ``client.Audience``.

    def server_sent(self, message: Message) -> None:
        """Handle a change of a list here, and pass any other message on."""
        method = message.method
        if message.shape == NOTIFICATION and method.endswith("/list_changed"):
            capability = method.removeprefix("notifications/").removesuffix("/list_changed")
            if capability in LISTED_BY.values():
                self.mark_stale(capability)
            return
        self._owner.server_sent(self, message)

    def server_lost(self, gone: PeerGone) -> None:
        """Handle the loss of the connection."""
        self.lost(gone)

    def server_reopened(self, connection: ServerConnection) -> None:
        """Handle a new session in place of one that the server has forgotten."""
        if connection is self.upstream:
            self._learn_anew(connection)
            self._owner.server_changed(self, CAME_UP)

    def server_refused(self, fault: Fault, line: bytes) -> None:
        """Record a server frame that was dropped, unless there are too many."""
        if self.check_noise():
            self._owner.server_refused(self, fault, line)


def _about(uri: str, trace: str) -> dict[str, Any]:
    """Return the params of a request about a resource, with the trace context if there is one."""
    params: dict[str, Any] = {"uri": uri}
    return with_traceparent({"params": params}, trace)["params"] if trace else params
