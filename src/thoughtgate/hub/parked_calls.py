"""Calls that wait at a legacy server while a modern client fetches an answer for it.

A legacy server asks in the middle of a call; a modern client is answered
``input_required`` and comes back with a new request. In between the call is parked here
under a name that nobody can guess, for the client, the server and the exact call it
belongs to.
"""

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from thoughtgate.errors import PeerError
from thoughtgate.upstream.client import ServerConnection
from thoughtgate.wire.canonical import canonical_json
from thoughtgate.wire.message import Message

PREFIX: Final = "thoughtgate:"
"""Tells our own states from those of servers."""

PARKED_S: Final = 600.0
"""How long a client may take to come back with the answers."""

MAX_PARKED: Final = 1000


@dataclass(slots=True, eq=False)
class Inflight:
    """A request under way at a server."""

    client: Any
    session: Any
    key: Any
    inbox: asyncio.Queue[tuple[ServerConnection, Message]] | None = None
    """Takes what a legacy server asks, when its client is modern."""
    reply: "asyncio.Future[Message] | None" = None
    asked: dict[str, tuple[ServerConnection, Message]] = field(default_factory=dict)
    """Questions that the client has been told of and not answered."""
    declared: dict[str, Any] = field(default_factory=dict)
    """What the client can be asked."""
    log_level: str = ""
    """Which logs a modern request wants; empty for none."""
    bound: str = ""
    """What the parked call may be taken up by."""
    count: int = 0


class Parking:
    """All parked calls."""

    def __init__(self) -> None:
        self._parked: dict[str, tuple[Inflight, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, inflight: Inflight) -> str:
        """Keep a call and return the state to take it up with.

        Raises:
            PeerError: too many are parked.
        """
        if len(self._parked) >= MAX_PARKED:
            raise PeerError("service_unavailable", "too many calls wait for answers")
        state = PREFIX + secrets.token_urlsafe(32)
        timer = asyncio.get_running_loop().call_later(PARKED_S, self._expire, state)
        self._parked[state] = (inflight, timer)
        return state

    def take(self, state: Any, bound: str) -> Inflight | None:
        """Return the call that a state stands for, once, to whom it belongs.

        Raises:
            PeerError: the state is ours, but for nothing that can be taken up with it.
        """
        if type(state) is not str or not state.startswith(PREFIX):
            return None
        found = self._parked.get(state)
        if found is None or found[0].bound != bound:
            raise PeerError("invalid_params", "requestState is unknown, used or for another call")
        inflight, timer = self._parked.pop(state)
        timer.cancel()
        return inflight

    def _expire(self, state: str) -> None:
        inflight, _ = self._parked.pop(state)
        for upstream, message in inflight.asked.values():
            upstream.refuse(message.id, "upstream_timeout", "the client did not answer in time")
        if inflight.reply is not None:
            inflight.reply.cancel()

    def close(self) -> None:
        """Nobody comes back any more."""
        for state in list(self._parked):
            self._parked[state][1].cancel()
            self._expire(state)


def binding(principal: str, server: str, method: str, params: dict[str, Any]) -> str:
    """Return what ties a retry to the call it continues."""
    named = {key: params.get(key) for key in ("name", "uri", "arguments")}
    try:
        return canonical_json([principal, server, method, named])
    except ValueError:
        raise PeerError("invalid_params", "the arguments have no canonical form") from None
