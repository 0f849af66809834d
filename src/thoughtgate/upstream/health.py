"""Whether a server that is reached over HTTP can be used, and which changes of that are recorded.

The operator's log and ``status`` show the recorded changes. Repeated failures are not changes. A
server whose state changes all the time is reported a few times per minute, not with every call.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from thoughtgate.core.record_events import (
    Record,
    server_recovered,
    server_started,
    server_unreachable,
)
from thoughtgate.errors import PeerError
from thoughtgate.gate.clock import monotonic, now

UNKNOWN: Final = "unknown"
"""No connection has been tried yet."""
UP: Final = "up"
DOWN: Final = "down"
"""The server cannot be reached."""
DEGRADED: Final = "degraded"
"""The server can be reached, but its last response was not a usable answer."""

_DOWN: Final = frozenset({"upstream_connection_failed", "upstream_timeout", "upstream_tls_failed"})
_DEGRADED: Final = frozenset({"upstream_unauthorized", "upstream_bad_response"})
_DEGRADED_CAUSES: Final = frozenset({"connection_lost", "answer_timeout", "idle_timeout"})
"""Failures of one exchange with a server that accepted the connection."""
_IGNORED_CAUSES: Final = frozenset({"session_lost", "stream_ended", "stopped", "gate_closing"})
"""Not failures of the server: sessions and streams may end at any time."""

MAX_CHANGES: Final = 4
WINDOW_S: Final = 60.0
"""At most this many changes are reported in this time."""


class ServerHealth:
    """The state of one server."""

    def __init__(self, server: str, note: Callable[[Record], None]) -> None:
        """Prepare; ``note`` records changes."""
        self.server = server
        self.state = UNKNOWN
        self.failure: PeerError | None = None
        """The last failure, if the server has not answered since."""
        self.is_settled = False
        """Whether the server is up and was reported as up, so that another answer changes nothing."""
        self._note = note
        self._reported = (UNKNOWN, "")
        self._since = 0.0
        """When the failures began that were reported last."""
        self._changes: deque[float] = deque(maxlen=MAX_CHANGES)

    def failed(self, error: PeerError, *, is_call: bool = True) -> None:
        """Note that the server could not be reached or gave no usable answer.

        ``is_call`` is False for streams and notifications, which servers may refuse at will.
        """
        state = _state_after(error)
        if not state or (error.kind == "upstream_bad_response" and not is_call):
            return
        self.state, self.failure = state, error
        self._report()

    def answered(self) -> None:
        """Note an answer; callers skip this while ``is_settled``."""
        self.state, self.failure = UP, None
        self._report()

    def reachable(self) -> None:
        """Note that the server accepts connections, which says nothing about its answers."""
        if self.state != DEGRADED and not self.is_settled:
            self.answered()

    def disconnected(self) -> None:
        """Note that the gate itself ended the connection, so that the next one counts as a start."""
        self.state, self.failure = UNKNOWN, None
        self._reported, self.is_settled = (UNKNOWN, ""), False

    def describe(self) -> dict[str, Any]:
        """Return the state for ``status``."""
        error = self.failure
        return {"state": self.state} if error is None else failure_facts(self.state, error)

    def _report(self) -> None:
        error = self.failure
        current = (self.state, error.cause if error is not None else "")
        before, _ = self._reported
        self.is_settled = current == self._reported and self.state == UP
        if current == self._reported:
            return
        moment, at = monotonic(), now()
        if len(self._changes) == MAX_CHANGES and moment - self._changes[0] < WINDOW_S:
            return
        self._changes.append(moment)
        self._reported = current
        self.is_settled = error is None
        if error is not None:
            if before in {UP, UNKNOWN}:
                self._since = moment
            facts = failure_facts(self.state, error)
            self._note(server_unreachable(at, self.server, "0", facts))
        elif before == UNKNOWN:
            self._note(server_started(at, self.server, "0", 0))
        else:
            self._note(server_recovered(at, self.server, "0", moment - self._since))


def failure_facts(state: str, error: PeerError) -> dict[str, Any]:
    """Return what the record and ``status`` say about a server that cannot be used."""
    return {"state": state, "kind": error.kind, **error.facts}


def _state_after(error: PeerError) -> str:
    if error.cause in _IGNORED_CAUSES:
        return ""
    if error.kind in _DEGRADED or error.cause in _DEGRADED_CAUSES:
        return DEGRADED
    return DOWN if error.kind in _DOWN else ""
