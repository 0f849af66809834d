"""What is sent once the record is written: nothing reaches a server unrecorded.

Synchronous, and shared by both drivers. The event loop flushes once for everything that
one of its turns brought; the shim's poll loop flushes at the end of each turn by itself.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from thoughtgate.core.events import NotSent
from thoughtgate.gate.clock import now

if TYPE_CHECKING:
    from thoughtgate.core.commands import ToServer
    from thoughtgate.gate.session_driver import SessionDriver, Sink

_FRAME: Final = 3
"""Members of a waiting frame (sink, frame, driver); everything else that waits has two."""

Schedule = Callable[[Callable[[], None]], object]
"""Has a function called soon; ``asyncio``'s ``call_soon``, or nothing for a loop that flushes."""


class Outbox:
    """Frames and actions that wait for the record."""

    def __init__(self, write_record: Callable[[], bool], schedule: Schedule) -> None:
        """Write the record with ``write_record``, which tells whether it could be written."""
        self._write_record = write_record
        self._call_soon = schedule
        self._waiting: list[Any] = []
        """Frames for the server (sink, frame, driver), and actions (function, arguments)."""
        self._scheduled = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def send(self, driver: "SessionDriver", sink: "Sink", frame: "ToServer") -> None:
        """Send a frame to the server, unless the record cannot be written."""
        self._waiting.append((sink, frame, driver))
        if not self._scheduled:
            self.schedule()

    def later(self, function: Callable[..., None], *arguments: Any) -> None:
        """Do something towards the agent, after everything that was to be done before it."""
        self._waiting.append((function, arguments))
        if not self._scheduled:
            self.schedule()

    def carries(self, sink: "Sink") -> bool:
        """Tell whether a frame from this sink is on its way to the server."""
        return any(len(item) == _FRAME and item[0] is sink for item in self._waiting)

    def schedule(self) -> None:
        """Write the record at the end of this turn, even with nothing to send."""
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self.flush)

    def flush(self) -> None:
        """Write the record, then send."""
        self._scheduled = False
        waiting, self._waiting = self._waiting, []
        if not self._write_record():
            waiting = self._without_frames(waiting)
        done = 0
        try:
            for item in waiting:
                done += 1
                if len(item) == _FRAME:
                    item[0].forward(item[1])
                else:
                    item[0](*item[1])
        finally:
            if done < len(waiting):
                # One failed; what the others wait for is not lost with it.
                self._waiting = waiting[done:] + self._waiting
                self.schedule()

    def _without_frames(self, waiting: list[Any]) -> list[Any]:
        """The record is not written: nothing may reach a server, and each caller is told why."""
        at = now()
        kept = []
        for item in waiting:
            if len(item) != _FRAME:
                kept.append(item)
                continue
            sink, frame, driver = item
            if frame.key is not None:
                driver.feed(NotSent(frame.key, "service_unavailable", at), sink)
        return kept
