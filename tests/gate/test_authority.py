"""The seam between a shim's loop and whoever judges for it."""

import inspect

from thoughtgate.gate.authority import Authority
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.shim.service_authority import ServiceAuthority


def test_both_judges_of_a_shim_offer_the_whole_seam() -> None:
    wanted = {
        name
        for name, member in inspect.getmembers(Authority)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }

    assert {"judge", "screen", "ask", "withdraw", "record", "flush", "finish"} <= wanted
    for judge in (LocalAuthority, ServiceAuthority):
        assert wanted <= set(dir(judge)), judge


def test_both_take_the_same_arguments() -> None:
    for name in (
        "judge",
        "screen",
        "ask",
        "withdraw",
        "record",
        "flush",
        "ready",
        "tick",
        "finish",
    ):
        wanted = list(inspect.signature(getattr(Authority, name)).parameters)
        for judge in (LocalAuthority, ServiceAuthority):
            assert list(inspect.signature(getattr(judge, name)).parameters) == wanted, (judge, name)
