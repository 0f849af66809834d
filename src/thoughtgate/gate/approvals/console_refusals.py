"""Requests that a console refused, on the record of the gate that serves it.

A console may run in a thread of its own, but the record is written on the gate's event loop.
"""

import asyncio
import sys
from typing import Final

from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, Record
from thoughtgate.gate.clock import now
from thoughtgate.gate.governor import Governor

MAX_PATH: Final = 100
"""Maximum characters of a path in the record; the client chooses the path."""


class ConsoleRefusals:
    """Reports refused requests to a governor, or on stderr while there is none."""

    def __init__(self) -> None:
        self._target: tuple[asyncio.AbstractEventLoop, Governor] | None = None
        self._url = ""

    def record_with(self, governor: Governor) -> None:
        """From now on, record with a governor that the running event loop drives."""
        self._target = asyncio.get_running_loop(), governor
        self._tell_url()

    def console_opened(self, url: str) -> None:
        """Let the gate tell people where its console is; from any thread."""
        self._url = url
        self._tell_url()

    def _tell_url(self) -> None:
        target = self._target
        if target is not None and self._url:
            target[1].answer_places.console_url = self._url

    def end(self) -> None:
        """Stop recording, because the record ends."""
        self._target = None

    def __call__(self, reason: str, path: str) -> None:
        """Report a request with its reason and path; from any thread."""
        target = self._target
        if target is None:
            sys.stderr.write(
                f"thoughtgate: console refused a request: {reason} at {path[:MAX_PATH]!a}\n"
            )
            return
        target[0].call_soon_threadsafe(self._note, reason, path)

    def _note(self, reason: str, path: str) -> None:
        # The run may have ended since the other thread called.
        if self._target is None:
            return
        governor = self._target[1]
        facts = {"method": "console", "reason": f"{reason} at {path[:MAX_PATH]}"}
        governor.note(Record(AGENT_AUTH_REJECTED, now(), "", "0", {"agent": facts}))
        governor.flush_quietly()
