"""Outbox: holds frames back until the record is written, so no unrecorded call reaches a server.

This module is synchronous and used by both loops. The asyncio event loop flushes once per
iteration, for everything that arrived in it; the shim's poll loop calls ``flush`` itself at
the end of each iteration.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.core.events import Event, NotSent
from thoughtgate.gate.clock import now

_FRAME: Final = 3
"""Length of the tuple of a waiting frame (sink, frame, driver); an action's tuple has two."""

Schedule = Callable[[Callable[[], None]], object]
"""Schedules a function: ``asyncio``'s ``call_soon``, or a no-op for a loop that calls ``flush``."""


class Sink(Protocol):
    """Writes frames to the agent and sends frames to the server."""

    def take(self, frame: ToAgent) -> None:
        """Write a frame to the agent."""

    def forward(self, frame: ToServer) -> None:
        """Send a frame to the server; called only after its record has been written."""


class Sender(Protocol):
    """The session that a frame belongs to."""

    def feed(self, event: Event, sink: Sink | None) -> int:
        """Feed an event to the session."""


class Outbox:
    """Queues frames and actions until the record is written."""

    def __init__(self, write_record: Callable[[], bool], schedule: Schedule) -> None:
        """Write the record with ``write_record``, which returns False if the write failed."""
        self._write_record = write_record
        self._call_soon = schedule
        self._waiting: list[Any] = []
        """Frames for the server (sink, frame, driver), and actions (function, arguments)."""
        self.is_scheduled = False
        """Whether a flush is due in this iteration of the loop."""

    @property
    def is_empty(self) -> bool:
        """Whether the queue is empty."""
        return not self._waiting

    def send(self, driver: Sender, sink: Sink, frame: ToServer) -> None:
        """Queue a frame for the server; it is sent only if the record can be written."""
        self._waiting.append((sink, frame, driver))
        if not self.is_scheduled:
            self.schedule()

    def later(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function after everything queued before it, even if the record cannot be written.

        For actions that do not make a call, such as a reply to the agent or a cancellation.
        """
        self._waiting.append((function, arguments))
        if not self.is_scheduled:
            self.schedule()

    def carries(self, sink: Sink) -> bool:
        """Tell whether a frame from this sink is queued for the server."""
        return any(len(item) == _FRAME and item[0] is sink for item in self._waiting)

    def schedule(self) -> None:
        """Schedule a flush for this iteration of the loop, even with nothing to send."""
        if not self.is_scheduled:
            self.is_scheduled = True
            self._call_soon(self.flush)

    def flush(self) -> None:
        """Write the record, then send the queued frames and run the queued actions."""
        # Taken out first: a frame that is sent can queue further frames, which need a new flush.
        self.is_scheduled = False
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
                # One item raised an exception: keep the items behind it for the next flush.
                self._waiting = waiting[done:] + self._waiting
                self.schedule()

    def _without_frames(self, waiting: list[Any]) -> list[Any]:
        """After a failed write, drop the frames for servers and answer their callers."""
        at = now()
        kept = []
        for item in waiting:
            if len(item) != _FRAME:
                kept.append(item)
                continue
            sink, frame, driver = item
            # A notification has no key and no caller to answer.
            if frame.key is not None:
                driver.feed(NotSent(frame.key, "service_unavailable", at), sink)
        return kept
