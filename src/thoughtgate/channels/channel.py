"""What every way of asking a person has in common.

A channel is told of questions and of their ends. It answers through the store, never
by a return value, so a slow, restarted or absent channel can hold up nobody.
"""

from typing import Protocol, runtime_checkable

from thoughtgate.core.approval import Approval


class Channel(Protocol):
    """Somewhere people are asked. Both methods must return at once.

    A channel that talks to the network does so in a thread or a task of its own.
    """

    name: str
    """``terminal``, ``console``, ``slack``, ``webhook``: the first part of an identity."""

    def asked(self, approval: Approval) -> None:
        """A question was put; ask, if the workflow's channel is this one."""

    def settled(self, approval: Approval) -> None:
        """The question has its answer, or is no longer one: update what was shown."""


@runtime_checkable
class Stoppable(Protocol):
    """A channel with a thread, which the gate ends when it stops itself."""

    def stop(self) -> None:
        """Show what is still to be shown, for a moment, and end."""
