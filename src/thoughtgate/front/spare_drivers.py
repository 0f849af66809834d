"""Session drivers whose one request is over, kept for the next request without a session.

Most calls come without a session; making a session and its tables costs more than the
call's own bookkeeping.
"""

from typing import Final

from thoughtgate.gate.session_driver import SessionDriver

MAX_SPARE: Final = 256
"""Drivers kept for the next request; a few KiB each."""


class SpareDrivers:
    """A pool of drivers that nothing distinguishes from new ones."""

    def __init__(self) -> None:
        self._spare: dict[tuple[str, bool], list[SessionDriver]] = {}
        self._count = 0

    def take(self, principal: str, *, is_modern: bool) -> SessionDriver | None:
        """Return a driver that nobody uses any more, if there is one of this kind."""
        spare = self._spare.get((principal, is_modern))
        if not spare:
            return None
        self._count -= 1
        return spare.pop()

    def give(self, driver: SessionDriver) -> None:
        """Keep a driver that is spent."""
        if self._count >= MAX_SPARE:
            self._spare.clear()
            self._count = 0
        self._spare.setdefault((driver.principal, driver.is_modern), []).append(driver)
        self._count += 1
