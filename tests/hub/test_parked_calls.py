"""Calls that wait for their client to come back."""

import asyncio
from typing import Any

import pytest
from tests.support.waiting import run_async

from thoughtgate.errors import PeerError
from thoughtgate.hub import parked_calls as hub_parking
from thoughtgate.hub.parked_calls import Inflight, Parking, binding


class Asker:
    """Takes the refusals that a server gets."""

    def __init__(self) -> None:
        self.refused: list[Any] = []

    def refuse(self, ident: Any, kind: str, text: str) -> None:
        self.refused.append((ident, kind, bool(text)))


def inflight(bound: str = "b") -> Inflight:
    return Inflight(None, None, 1, bound=bound)


def test_a_parked_call_is_taken_up_once_by_whom_it_belongs_to() -> None:
    async def main() -> None:
        parking = Parking()
        one = inflight()
        state = parking.park(one)
        with pytest.raises(PeerError):
            parking.take(state, "other")
        assert parking.take(state, "b") is one
        with pytest.raises(PeerError):
            parking.take(state, "b")
        assert len(parking) == 0

    run_async(main())


def test_a_state_of_a_server_is_not_ours() -> None:
    async def main() -> None:
        parking = Parking()
        assert parking.take("opaque", "b") is None
        assert parking.take(None, "b") is None

    run_async(main())


def test_only_so_many_are_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_parking, "MAX_PARKED", 2)

    async def main() -> None:
        parking = Parking()
        parking.park(inflight())
        parking.park(inflight())
        with pytest.raises(PeerError, match="too many"):
            parking.park(inflight())
        parking.close()

    run_async(main())


def test_a_call_that_nobody_comes_back_for_is_given_up() -> None:
    async def main() -> tuple[list[Any], bool]:
        parking = Parking()
        asker: Any = Asker()
        one = inflight()
        one.reply = asyncio.get_running_loop().create_future()
        one.asked["q"] = (asker, type("Message", (), {"id": 7})())
        parking.park(one)
        parking.close()
        return asker.refused, one.reply.cancelled()

    assert run_async(main()) == ([(7, "upstream_timeout", True)], True)


def test_a_binding_is_for_one_principal_server_and_call() -> None:
    params = {"name": "x", "arguments": {"a": 1}, "_meta": {"progressToken": 1}}
    same = binding("p", "s", "tools/call", {**params, "requestState": "z", "_meta": {}})

    assert binding("p", "s", "tools/call", params) == same
    assert binding("q", "s", "tools/call", params) != same
    assert binding("p", "t", "tools/call", params) != same
    assert binding("p", "s", "tools/call", {**params, "arguments": {"a": 2}}) != same


@pytest.mark.promise("params-are-bound")
def test_a_retry_is_bound_to_everything_but_answers_and_bookkeeping() -> None:
    call = {"name": "x", "arguments": {"force": 1}, "cwd": "/tmp", "_meta": {"a": 1}}
    bound = binding("me", "srv", "tools/call", call)
    answers = {"requestState": "s", "inputResponses": {"q": {"action": "accept"}}}
    meta = {"a": 1, "progressToken": 7}
    assert binding("me", "srv", "tools/call", {**call, **answers, "_meta": meta}) == bound
    for changed in ({"cwd": "/etc"}, {"arguments": {"force": True}}, {"_meta": {"a": 2}}):
        assert binding("me", "srv", "tools/call", {**call, **changed}) != bound
