"""A clock for tests, which advances only when a test says so."""

from typing import Final

START: Final = 1_700_000_000.0
"""A moment in November 2023: far from 0, so that a missing time is noticed."""


class FakeClock:
    """A clock for tests of code that takes the time as an argument."""

    def __init__(self, start: float = START) -> None:
        self.now = start

    def __call__(self) -> float:
        """Return the time, as ``time.time`` would."""
        return self.now

    def advance(self, seconds: float) -> float:
        """Let time pass and return the new time; it never goes back.

        Raises:
            ValueError: the step is negative.
        """
        if seconds < 0:
            raise ValueError("time does not go back")
        self.now += seconds
        return self.now
