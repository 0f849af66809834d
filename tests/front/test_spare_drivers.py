"""Drivers that are over serve the next request of the same kind, and no other."""

from tests.support.drivers import Workbench
from tests.support.shim_bench import Ledger, NobodyThere

from thoughtgate.core.envelope import Run
from thoughtgate.core.judge import Judge
from thoughtgate.front.spare_drivers import MAX_SPARE, SpareDrivers
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.policy.policy import Policy


def _driver(principal: str = "ann", *, is_modern: bool = False) -> SessionDriver:
    governor = Governor(Judge(Policy(), "run"), Ledger(), Run("run"), approvals=NobodyThere())
    return Workbench(LocalAuthority(governor)).driver(principal=principal, is_modern=is_modern)


def test_a_spare_driver_serves_one_request_at_a_time() -> None:
    spares, driver = SpareDrivers(), _driver()
    assert spares.take("ann", is_modern=False) is None
    spares.give(driver)
    assert spares.take("ann", is_modern=False) is driver
    assert spares.take("ann", is_modern=False) is None


def test_a_spare_driver_serves_neither_another_principal_nor_another_era() -> None:
    spares, driver = SpareDrivers(), _driver("ann", is_modern=True)
    spares.give(driver)

    assert spares.take("bob", is_modern=True) is None
    assert spares.take("ann", is_modern=False) is None
    assert spares.take("ann", is_modern=True) is driver


def test_a_flood_of_principals_is_bounded() -> None:
    spares = SpareDrivers()
    for number in range(MAX_SPARE):
        spares.give(_driver(f"p{number}"))
    assert spares.take("p0", is_modern=False) is not None
    spares.give(_driver("p0"))
    last = _driver("last")
    spares.give(last)

    assert spares.take("p1", is_modern=False) is None
    assert spares.take("last", is_modern=False) is last
