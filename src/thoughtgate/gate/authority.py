"""The interface of an authority for a poll loop, and what all authorities share.

``gate.local_authority`` judges in this process; ``shim.service_authority`` asks the governance
service of a ``wrap`` run. ``gate.session_driver`` defines the interface that a session needs of
both; this module adds what a poll loop needs.
"""

import os
from typing import Protocol

from thoughtgate.core.commands import AskPeople
from thoughtgate.core.elicitation import ID_PREFIX, HoldNotice
from thoughtgate.core.events import Event, PersonAsked
from thoughtgate.gate.session_driver import Authority
from thoughtgate.wire.message import Fault, Message


class PolledAuthority(Authority, Protocol):
    """An authority for a poll loop."""

    stop_reason: str
    """Why the loop must stop; empty while it need not stop."""

    def read(self, line: bytes) -> Message | Fault:
        """Parse a frame with the fastest reader that is loaded anyway."""

    def rest(self) -> None:
        """Do deferred work, after everything that could be sent has been sent."""

    def descriptors(self) -> dict[int, int]:
        """Return the descriptors to poll, with their masks."""

    def ready(self, descriptor: int, mask: int, at: float) -> list[Event]:
        """Handle a ready descriptor."""

    def tick(self, at: float) -> list[Event]:
        """Do periodic work; called at least every ``interval_s`` seconds."""

    @property
    def interval_s(self) -> float:
        """How long the loop may wait before the next tick."""

    @property
    def is_behind(self) -> bool:
        """Whether nothing more is to be read until events were recorded."""

    def finish(self, status: str, at: float) -> None:
        """Finish at the end of the session."""


def prompts(command: AskPeople, notice: HoldNotice, *, can_show: bool = True) -> list[Event]:
    """Return the event that tells the agent's program about a held call; none without a text.

    A caller that accepts a task gets no prompt: its request has its reply before a person answers.
    ``can_show`` is False for a caller that cannot be sent a prompt, only progress.
    """
    text = notice.prompt if can_show else ""
    if not (text or notice.waits) or command.params is not None:
        return []
    ident = f"{ID_PREFIX}{os.urandom(16).hex()}" if can_show else ""
    told = (notice.waits, notice.page, notice.definition)
    return [PersonAsked(command.key, ident, text, command.at, *told)]
