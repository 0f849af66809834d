"""Requests to an HTTP server whose responses nobody waits for: notifications, replies, refusals.

A server could leave all of them unanswered, and cause more of them, such as refusals of its own
requests. Therefore only a limited number stays open.
"""

from collections import deque
from typing import Final, Protocol

MAX_NOTICES: Final = 256
"""Maximum number of open notices per server; each occupies a connection."""


class Notice(Protocol):
    """One such request."""

    @property
    def is_over(self) -> bool:
        """Whether its response is complete, failed or given up."""

    def abort(self) -> None:
        """Close its connection."""


class Notices:
    """The open notices to one server, the oldest first."""

    def __init__(self, limit: int = MAX_NOTICES) -> None:
        self._limit = limit
        self._open: deque[Notice] = deque()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, notice: Notice) -> None:
        """Add a notice that was just sent; above the limit, give up the oldest.

        The oldest is the one that the server has had the most time to read.
        """
        self._open.append(notice)
        if len(self._open) <= self._limit:
            return
        self._open = deque(one for one in self._open if not one.is_over)
        if len(self._open) > self._limit:
            self._open.popleft().abort()
