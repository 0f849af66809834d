"""Connects the engine to an asyncio event loop: the outbox and the poll timer for held calls."""

import asyncio
from typing import Final

from thoughtgate.gate.clock import now
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox

POLL_EVERY_S: Final = 0.1
"""Poll interval for decisions while calls are held."""


class HeldCallTimer:
    """Polls for decisions while calls are held; no timer runs otherwise."""

    def __init__(self, authority: LocalAuthority) -> None:
        self._held = authority.held
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._held.on_held = self._start

    def close(self) -> None:
        """Stop polling."""
        # Calls may still be held after this; they must not start the timer again.
        self._held.on_held = lambda: None
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(POLL_EVERY_S, self._look)

    def _look(self) -> None:
        self._timer = None
        self._held.poll(now())
        if len(self._held):
            self._start()


def open_outbox(authority: LocalAuthority) -> Outbox:
    """Return an outbox that is flushed at most once per iteration of the running event loop."""
    return Outbox(authority.flush, asyncio.get_running_loop().call_soon)
