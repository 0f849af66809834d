"""Sessions of older revisions at several gates or workers that share a store.

The sealed id is enough to continue a session; this module adds what the id cannot say. A session
that was ended at one gate has ended at all of them. An agent's answer to a server, or its
cancellation, goes through the store to the gate that has the request. A gate looks for such
messages only while it has open requests or streams: that costs a comparison every few milliseconds,
and a query after a change.
"""

import asyncio
import contextlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from thoughtgate.core.events import AgentSent
from thoughtgate.errors import StoreError
from thoughtgate.front.sessions import HttpSession
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.sessions import SessionStore
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import RESPONSE, Message, RequestId
from thoughtgate.wire.methods import CANCELLED

LOOK_S: Final = 0.05
"""How often messages of other gates are looked for while a session is in use."""

TAKEN_WITHIN_S: Final = 2.0
"""How long an agent's answer may wait until the gate that asked has taken it."""

MAX_SENT: Final = 100
"""Maximum number of answers that wait to be taken. An agent could send any number that nobody asked
for; further ones are refused by this gate."""


class SharingEndpoint(Protocol):
    """An endpoint whose sessions other gates may continue."""

    @property
    def is_in_use(self) -> bool:
        """Whether any request or stream is open."""

    @property
    def sessions_by_name(self) -> dict[str, HttpSession]:
        """The sessions that this process knows, by their names in the store."""

    def session_ended(self, entry: HttpSession) -> None:
        """Close a session that was ended at another gate."""


class SharedSessions:
    """The sessions of all endpoints of a listener that other processes may continue."""

    def __init__(self, store: SessionStore, *, is_alone: bool = False) -> None:
        """Share through ``store``; ``is_alone`` says that no other process uses it now.

        Then nothing is carried, but the next run still has to know which sessions have ended.

        Raises:
            StoreError: the store cannot be read.
        """
        self._store = store
        self._is_alone = is_alone
        self.is_watching = is_alone
        """Whether messages of other gates are looked for; always, if there can be none."""
        self._endpoints: list[SharingEndpoint] = []
        self._seen: tuple[int, int] | None = None
        self._ended = store.latest_end()
        self._unsaid: dict[str, float] = {}
        """Sessions that ended here while the store could not be written."""
        self._sent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, endpoint: SharingEndpoint) -> None:
        """Share the sessions of an endpoint."""
        self._endpoints.append(endpoint)

    def remove(self, endpoint: SharingEndpoint) -> None:
        """Stop sharing the sessions of an endpoint that is no longer used."""
        if endpoint in self._endpoints:
            self._endpoints.remove(endpoint)

    def close(self) -> None:
        """Stop looking, and close the store."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        self._store.close()

    # Sessions that have ended.

    def is_ended(self, name: str) -> bool:
        """Tell whether a session has ended at any gate.

        Raises:
            StoreError: the store cannot be read, so the session must not be continued.
        """
        return name in self._unsaid or self._store.is_ended(name)

    def end(self, entry: HttpSession) -> None:
        """Tell all gates that a session has ended; as soon as the store can be written."""
        self._unsaid[entry.name] = entry.ends_at
        self._say_ended()

    def _say_ended(self) -> None:
        for name, until in list(self._unsaid.items()):
            try:
                self._store.end(name, until, now())
            except StoreError:
                return
            del self._unsaid[name]

    def tick(self) -> None:
        """Close the sessions that were ended at other gates; called about once a second."""
        self._say_ended()
        try:
            self._look()
        except StoreError:
            self._seen = None

    # Messages for requests that another gate has.

    def watch(self) -> None:
        """Look for messages of other gates, as long as a request or a stream is open here."""
        self.is_watching = True
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._watch)

    def _watch(self) -> None:
        self.is_watching = False
        try:
            self._look()
        except StoreError:
            self._seen = None
        if any(endpoint.is_in_use for endpoint in self._endpoints):
            self.watch()

    def _look(self) -> None:
        state = self._store.state()
        if state == self._seen:
            return
        names, rev = self._store.ended_since(self._ended)
        sessions: dict[str, tuple[SharingEndpoint, HttpSession]] = {
            name: (endpoint, entry)
            for endpoint in self._endpoints
            for name, entry in endpoint.sessions_by_name.items()
        }
        for name in names:
            if name in sessions:
                endpoint, entry = sessions.pop(name)
                endpoint.session_ended(entry)
        if not self._is_alone and sessions:
            for carried in self._store.waiting(sessions.keys()):
                _, entry = sessions[carried.session]
                self._receive(entry, carried.number, carried.body)
        # Only now: after an error, all of this is looked at again.
        self._seen, self._ended = state, rev

    def _receive(self, entry: HttpSession, number: int, body: bytes) -> None:
        message = read_frame(body)
        if not isinstance(message, Message) or not _is_wanted(entry, message):
            return
        if self._store.take(number):
            entry.peer.feed(AgentSent(message.raw, now(), message), None)
            entry.peer.outbox.schedule()

    def cancelled(self, entry: HttpSession, message: Message) -> None:
        """Tell the others of a cancellation, unless the cancelled request is open here."""
        is_elsewhere = _cancelled_id(message) is not None and not _is_wanted(entry, message)
        if self._is_alone or not is_elsewhere:
            return
        # A cancellation may be lost: the caller of the request can still disconnect.
        with contextlib.suppress(StoreError):
            self._store.send(entry.name, message.raw, now())

    def answered(self, entry: HttpSession, message: Message, done: Callable[[int], None]) -> bool:
        """Send an agent's answer to the gate that asked; False if that is this one.

        ``done`` is called once, with the HTTP status for the agent: 202 if a gate has taken the
        answer, 400 if none wants it, 503 if the store cannot be reached.
        """
        if self._is_alone or self._sent >= MAX_SENT or _is_wanted(entry, message):
            return False
        task = asyncio.get_running_loop().create_task(self._deliver(entry, message, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _deliver(
        self, entry: HttpSession, message: Message, done: Callable[[int], None]
    ) -> None:
        self._sent += 1
        status = HTTPStatus.SERVICE_UNAVAILABLE
        try:
            taken = await self._is_taken(self._store.send(entry.name, message.raw, now()))
            status = HTTPStatus.ACCEPTED if taken else HTTPStatus.BAD_REQUEST
        except StoreError:
            status = HTTPStatus.SERVICE_UNAVAILABLE
        finally:
            self._sent -= 1
            done(status)

    async def _is_taken(self, number: int) -> bool:
        deadline = monotonic() + TAKEN_WITHIN_S
        seen: tuple[int, int] | None = None
        while monotonic() < deadline:
            await asyncio.sleep(LOOK_S / 2)
            state = self._store.state()
            if state != seen and not self._store.is_waiting(number):
                return True
            seen = state
        # Taken back, so that it cannot be used after the agent was told that it was not.
        return not self._store.take(number)


def open_shared_sessions(location: StoreLocation, *, is_alone: bool) -> SharedSessions:
    """Open the part of a store in which its processes exchange messages about sessions.

    ``is_alone`` says that no other process accepts the sessions of this one.

    Raises:
        StoreError: the store cannot be used.
    """
    store = SessionStore(open_database(location))
    return SharedSessions(store, is_alone=is_alone and not location.is_shared)


def _is_wanted(entry: HttpSession, message: Message) -> bool:
    """Tell whether the request that an agent's answer or cancellation is for is open here."""
    if message.shape == RESPONSE:
        return entry.peer.is_asked(message.id)
    ident = _cancelled_id(message)
    return ident is not None and entry.peer.is_open(ident)


def _cancelled_id(message: Message) -> RequestId | None:
    params = message.body.get("params")
    if message.method != CANCELLED or type(params) is not dict:
        return None
    ident = params.get("requestId")
    return ident if isinstance(ident, str | int) else None
