"""The interface of every approval channel.

A channel is notified of approval requests and of their outcomes. Decisions arrive through the
store, never as a return value, so a slow, restarted or missing channel cannot block a gate.
"""

from typing import Protocol, runtime_checkable

from thoughtgate.core.approval import Approval


class Channel(Protocol):
    """Shows approval requests to people. Both methods must return immediately.

    A channel that uses the network does so in its own thread or task.
    """

    name: str
    """``terminal``, ``console``, ``slack``, ``webhook`` or the name that a package gives: the first
    part of an identity."""

    def show_request(self, approval: Approval) -> None:
        """Show a new approval request, if its workflow uses this channel."""

    def show_outcome(self, approval: Approval) -> None:
        """Show that a request was decided, has expired or was withdrawn."""


@runtime_checkable
class Stoppable(Protocol):
    """A channel with a thread that the gate stops when it stops itself."""

    def stop(self) -> None:
        """Try briefly to show the remaining outcomes, then stop."""
