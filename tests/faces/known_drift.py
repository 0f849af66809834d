"""Where faces are known to differ today: each row is a strict expected failure.

A change that makes a face behave as wanted removes its name here; a row without cases goes.
``test_known_drift`` fails when a row names a scenario or a face that does not exist.
"""

from typing import Final, NamedTuple

from tests.faces.face import FACES, NAMES


class Drift(NamedTuple):
    """One difference, and the (scenario, faces) pairs that show it."""

    row: str
    wanted: str
    cases: dict[str, tuple[str, ...]]


PROXIES: Final = tuple(face.name for face in FACES if face.product == "proxy")

KNOWN_DRIFT: Final = (
    Drift(
        "a tool result with isError",
        "recorded, queried and counted as ERROR",
        {"failed_tool_is_an_error_on_record": NAMES},
    ),
    Drift(
        "WOULD_BLOCK of the development profile is not told to the operator by proxy",
        "a line on standard error, as from shim and serve",
        {"development_profile_tells_the_operator": PROXIES},
    ),
)


def drift_of(scenario: str, face: str) -> Drift | None:
    """Return the row that explains why a scenario fails through a face."""
    return next((one for one in KNOWN_DRIFT if face in one.cases.get(scenario, ())), None)
