"""Stop orders: what they refuse."""

import pytest

from thoughtgate.policy.call import Call
from thoughtgate.policy.stops import ALL, PRINCIPAL, SERVER, StopOrder, Stops

CALL = Call("github", "tool", "x", {}, principal="ann")


@pytest.mark.parametrize(
    ("order", "is_refused"),
    [
        (StopOrder(ALL, ""), True),
        (StopOrder(SERVER, "github"), True),
        (StopOrder(SERVER, "GitHub"), False),
        (StopOrder(PRINCIPAL, "ann"), True),
        (StopOrder(PRINCIPAL, "github"), False),
    ],
)
def test_an_order_refuses_what_it_names(order: StopOrder, is_refused: bool) -> None:
    verdict = Stops((order._replace(reason="incident 12"),)).refuse(CALL)
    assert (verdict is not None) is is_refused
    if verdict is not None:
        assert (verdict.gate, verdict.kind) == ("stop", "governance_denied")
        assert verdict.reason == "stopped: incident 12"


def test_without_orders_nothing_is_refused() -> None:
    assert not Stops()
    assert Stops().refuse(CALL) is None


def test_orders_that_cannot_be_read_refuse_every_call() -> None:
    stops = Stops(is_unreadable=True)
    verdict = stops.refuse(CALL)
    assert stops
    assert verdict is not None
    assert verdict.kind == "service_unavailable"


def test_a_target_is_named_for_people() -> None:
    assert StopOrder(ALL, "").target == "all calls"
    assert StopOrder(SERVER, "git").target == "server git"
