"""A pool of session drivers for requests without a session.

Most calls arrive without a session, and creating a session with its tables costs more than
the bookkeeping of the call itself.
"""

from typing import Final

from thoughtgate.gate.session_driver import SessionDriver

MAX_SPARE: Final = 256
"""Number of drivers kept for reuse; each takes a few KiB."""


class SpareDrivers:
    """A pool of drivers that are indistinguishable from new ones."""

    def __init__(self) -> None:
        self._spare: dict[tuple[str, bool], list[SessionDriver]] = {}
        self._count = 0

    def take(self, principal: str, *, is_modern: bool) -> SessionDriver | None:
        """Return a spare driver for this principal and era, if there is one."""
        spare = self._spare.get((principal, is_modern))
        if not spare:
            return None
        self._count -= 1
        return spare.pop()

    def give(self, driver: SessionDriver) -> None:
        """Keep a driver whose only request is over."""
        if self._count >= MAX_SPARE:
            # Start over rather than refuse: otherwise principals that have left would keep the
            # pool full.
            self._spare.clear()
            self._count = 0
        self._spare.setdefault((driver.principal, driver.is_modern), []).append(driver)
        self._count += 1
