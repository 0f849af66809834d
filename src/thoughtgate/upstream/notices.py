"""Requests to an HTTP server whose responses nobody waits for: notifications, replies, refusals.

A server could leave every one of them unanswered, and cause further ones, such as the refusals of
its own requests. So only a limited number of them stays open.
"""

from collections import deque
from typing import Final, Protocol

MAX_NOTICES: Final = 256
"""Maximum number of open ones per server; each keeps a connection."""


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
        """Add a notice that was just sent; above the limit, the oldest is given up.

        The server has had the most time to read it.
        """
        self._open.append(notice)
        if len(self._open) <= self._limit:
            return
        self._open = deque(one for one in self._open if not one.is_over)
        if len(self._open) > self._limit:
            self._open.popleft().abort()
