"""Drivers that are used again: never by somebody else, never too many of them."""

from typing import cast

from thoughtgate.front.spare_drivers import MAX_SPARE, SpareDrivers
from thoughtgate.gate.session_driver import SessionDriver


class _Driver:
    """As much of a driver as the pool looks at."""

    def __init__(self, principal: str, *, is_modern: bool = False) -> None:
        self.principal = principal
        self.is_modern = is_modern


def _driver(principal: str, *, is_modern: bool = False) -> SessionDriver:
    return cast("SessionDriver", _Driver(principal, is_modern=is_modern))


def test_a_driver_serves_the_same_principal_in_the_same_era_again() -> None:
    spares = SpareDrivers()
    driver = _driver("alice")
    spares.give(driver)

    assert spares.take("bob", is_modern=False) is None
    assert spares.take("alice", is_modern=True) is None
    assert spares.take("alice", is_modern=False) is driver
    assert spares.take("alice", is_modern=False) is None


def test_the_pool_never_grows_beyond_its_bound() -> None:
    spares = SpareDrivers()
    for number in range(MAX_SPARE + 1):
        spares.give(_driver(f"agent {number}"))

    kept = [spares.take(f"agent {number}", is_modern=False) for number in range(MAX_SPARE + 1)]
    assert sum(one is not None for one in kept) <= MAX_SPARE
    assert kept[-1] is not None
