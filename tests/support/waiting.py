"""Waiting for something observable, with a deadline."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

Answer = TypeVar("Answer")

PATIENCE_S: Final = 10.0
"""Long enough for a loaded machine; a test that needs it all has failed."""

_STEP_S: Final = 0.005


def wait_for(
    condition: Callable[[], Answer | None],
    timeout: float = PATIENCE_S,
    *,
    what: str = "the condition",
) -> Answer:
    """Ask until the answer is truthy and return it; fail the test when the time is up."""
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout} s; last: {answer!r}")
        time.sleep(_STEP_S)
    return answer
