"""Calls that no agent waits for on a line: tasks that run once their approval has landed.

Their answers go through the session like any other; the session knows that they belong
to a task and says so.
"""

from thoughtgate.core.events import NotSent
from thoughtgate.runtime.clock import now
from thoughtgate.runtime.gateway_flow import Flow
from thoughtgate.wire.message import RequestId


class Alone:
    """Owns the server's side of a call without a caller."""

    def __init__(self, flow: Flow, key: RequestId) -> None:
        self._flow = flow
        self._key = key

    def stream_started(self, status: int, headers: bytes) -> None:
        """Only the answer matters."""

    def stream_wrote(self, data: bytes) -> None:
        """As above."""

    def stream_ended(self) -> None:
        """As above."""

    def told(self, data: bytes) -> None:
        """As above."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """The session has taken the answer already."""

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Never: a call has a key."""

    def failed(self, kind: str, status: int = 200) -> None:
        """There is no answer."""
        del status
        self._flow.feed(NotSent(self._key, kind, now()), None)

    def session_named(self, upstream: str) -> str:
        """No session begins with a tool call."""
        del upstream
        return ""
