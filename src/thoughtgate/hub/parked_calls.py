"""Calls that stay open at a legacy server while a modern client obtains its input.

A legacy server sends a request in the middle of a call; a modern client gets an
``input_required`` result and retries with a new request. In between, the call is parked
here under an unguessable state, bound to the client, the server and the exact call.
"""

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from thoughtgate.errors import PeerError
from thoughtgate.upstream.client import ServerConnection
from thoughtgate.wire.canonical import canonical_json
from thoughtgate.wire.extra_params import repeated_params
from thoughtgate.wire.message import Message

PREFIX: Final = "thoughtgate:"
"""Distinguishes the hub's own states from those of servers."""

PARKED_S: Final = 600.0
"""How long a client may take to retry with the answers."""

MAX_PARKED: Final = 1000


@dataclass(slots=True, eq=False)
class Inflight:
    """An open request at a server."""

    client: Any
    session: Any
    key: Any
    inbox: asyncio.Queue[tuple[ServerConnection, Message]] | None = None
    """Receives the requests of a legacy server whose client is modern."""
    reply: "asyncio.Future[Message] | None" = None
    asked: dict[str, tuple[ServerConnection, Message]] = field(default_factory=dict)
    """Server requests that the client has received and not answered."""
    declared: dict[str, Any] = field(default_factory=dict)
    """The capabilities that the client declared."""
    log_level: str = ""
    """The log level that a modern request asked for; empty for no logs."""
    bound: str = ""
    """The binding that a retry must match; see ``binding``."""
    count: int = 0


class Parking:
    """The table of parked calls."""

    def __init__(self) -> None:
        self._parked: dict[str, tuple[Inflight, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, inflight: Inflight) -> str:
        """Park a call and return the state with which it can be continued.

        Raises:
            PeerError: too many calls are parked.
        """
        if len(self._parked) >= MAX_PARKED:
            raise PeerError("service_unavailable", "too many calls wait for answers")
        state = PREFIX + secrets.token_urlsafe(32)
        timer = asyncio.get_running_loop().call_later(PARKED_S, self._expire, state)
        self._parked[state] = (inflight, timer)
        return state

    def take(self, state: Any, bound: str) -> Inflight | None:
        """Remove and return the parked call for a state; None if the state is not ours.

        Raises:
            PeerError: the state is unknown, already used, or bound to another call.
        """
        if type(state) is not str or not state.startswith(PREFIX):
            return None
        found = self._parked.get(state)
        if found is None or found[0].bound != bound:
            raise PeerError("invalid_params", "requestState is unknown, used or for another call")
        # Removed only now: a retry for another call must not end the one that is parked.
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
        """End all parked calls."""
        for state in list(self._parked):
            self._parked[state][1].cancel()
            self._expire(state)


def binding(principal: str, server: str, method: str, params: dict[str, Any]) -> str:
    """Return the text that binds a retry to the call it continues.

    Without it, a client could approve one call and continue another with the same state.
    """
    try:
        return canonical_json([principal, server, method, repeated_params(params)])
    except ValueError:
        raise PeerError("invalid_params", "the arguments have no canonical form") from None
