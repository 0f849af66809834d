"""Stop orders and facts have the same effect through every face."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from tests.faces.agents import Agent
from tests.faces.conftest import Start
from tests.faces.face import SERVER, Gate, Setup
from tests.faces.outcomes import text_of
from tests.faces.people import decide, vote, wait_until_asked
from tests.faces.record_view import calls_on_record

from thoughtgate.core.approval import Refusal
from thoughtgate.policy.stops import ALL
from thoughtgate.policy.stops import SERVER as ONE_SERVER
from thoughtgate.status.stop_actions import StopActions, read_facts
from thoughtgate.stores.facts import FactStore
from thoughtgate.stores.open_database import StoreLocation, open_database

STOPPED = "stopped by an operator; the call was not made"

OPEN: dict[str, Any] = {
    "default": "forward",
    "rules": [{"id": "people", "tool": "asked", "action": "approve"}],
}


def actions(gate: Gate) -> StopActions:
    return StopActions(StoreLocation(gate.state))


def until(gate: Gate, agent: Agent, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Call until the answer is as wanted: an order applies within a second, not at once."""

    def answered() -> dict[str, Any] | None:
        answer = agent.call("echo", {"mark": "again"})
        return answer if wanted(answer) else None

    found: dict[str, Any] = gate.wait(answered, "an order that applies")
    return found


def is_stopped(answer: dict[str, Any]) -> bool:
    return "error" in answer and answer["error"]["data"].get("gate") == "stop"


@pytest.mark.promise("stop-works")
@pytest.mark.parametrize("profile", ["production", "development"])
def test_a_stop_order_refuses_calls_until_it_is_resumed(start: Start, profile: str) -> None:
    gate = start(Setup({**OPEN, "profile": profile}))
    agent = gate.agent()
    assert text_of(agent.call("echo", {"mark": "before"})) == "done"
    scope, name = (ONE_SERVER, SERVER) if profile == "production" else (ALL, "")
    actions(gate).stop(scope, name, reason="incident 12", by="terminal:ann")
    error = until(gate, agent, is_stopped)["error"]
    assert (error["data"]["kind"], error["message"]) == ("governance_denied", STOPPED)
    assert "incident" not in str(error)
    assert is_stopped(agent.call("echo", {"mark": "while-stopped"}))
    assert gate.received("while-stopped") == []
    actions(gate).resume(scope, name)
    until(gate, agent, lambda answer: "result" in answer)
    (events,) = calls_on_record(gate, "while-stopped")
    (decision,) = [one["decision"] for one in events if one["type"] == "tool_call_decision"]
    assert (decision["gate"], decision["action"]) == ("stop", "BLOCK")
    assert decision["enforced"] is True
    gate.wait(lambda: len(changes(gate)) == 2, "both changes on the record")
    assert [change["change"] for change in changes(gate)] == ["stopped", "resumed"]
    assert changes(gate)[0]["reason"] == "incident 12"


def changes(gate: Gate) -> list[dict[str, Any]]:
    return [one["stop"] for one in gate.records() if one["type"] == "stop_changed"]


def test_a_held_call_that_is_stopped_cannot_be_approved(start: Start) -> None:
    gate = start(Setup(OPEN))
    agent = gate.agent()
    held = agent.start_call("asked", {"mark": "held"})
    asked = wait_until_asked(gate, "held")
    actions(gate).stop(ONE_SERVER, SERVER, reason="incident 12", by="terminal:ann")
    refused = vote(gate, asked, approve=True)
    assert isinstance(refused, Refusal)
    assert refused.kind == "stopped"
    assert gate.received("held") == []
    actions(gate).resume(ONE_SERVER, SERVER)
    decide(gate, "held", approve=True)
    assert text_of(agent.inbox.answer(held)) == "done"


FLOWS: dict[str, Any] = {
    "default": "forward",
    "rules": [
        {"id": "trifecta", "when_facts": ["untrusted", "private", "outbound"], "action": "deny"}
    ],
}


def test_what_a_server_provides_is_a_fact_from_the_next_call_on(start: Start) -> None:
    entry = {"provides": ["untrusted", "private"], "outbound": ["extra"]}
    gate = start(Setup(FLOWS, entry))
    agent = gate.agent()
    assert text_of(agent.call("extra", {"mark": "first"})) == "done"
    refused = agent.call("extra", {"mark": "second"})
    assert refused["error"]["data"]["kind"] == "governance_denied"
    assert gate.received("second") == []
    assert text_of(agent.call("echo", {"mark": "not-outbound"})) == "done"
    assert {one["fact"] for one in read_facts(StoreLocation(gate.state))} == {
        "untrusted",
        "private",
    }
    (events,) = calls_on_record(gate, "second")
    (decision,) = [one["decision"] for one in events if one["type"] == "tool_call_decision"]
    assert decision["facts"] == ["private", "untrusted"]


@pytest.mark.promise("facts-outlast-results")
def test_a_result_that_comes_late_establishes_what_it_brings(start: Start) -> None:
    gate = start(Setup(FLOWS, {"provides": ["untrusted", "private"], "outbound": ["extra"]}))
    agent = gate.agent()
    until = gate.root / "until"
    late = agent.start_call("echo", {"do": "wait", "until": str(until), "mark": "late"})
    gate.wait(lambda: gate.received("late"), "the call at the server")
    # As if the window had passed meanwhile.
    place = StoreLocation(gate.state)
    with closing(open_database(gate.state)) as database:
        for fact in read_facts(place):
            FactStore(database).clear(fact["principal"], [fact["fact"]], time.time())
    assert read_facts(place) == []
    until.touch()
    assert text_of(agent.inbox.answer(late)) == "done"
    gate.wait(lambda: len(read_facts(place)) == 2, "the facts of the result")
    assert "error" in agent.call("extra", {"mark": "after"})


def test_facts_from_another_gate_count_and_can_be_cleared(start: Start) -> None:
    gate = start(Setup(FLOWS))
    agent = gate.agent()
    assert text_of(agent.call("echo", {"mark": "before"})) == "done"
    principal = next(
        one["call"]["principal"] for one in gate.records() if one["type"] == "tool_call_start"
    )
    with closing(open_database(gate.state)) as database:
        store = FactStore(database)

        store.establish(
            principal, ["untrusted", "private"], time.time(), window_s=600, cause="elsewhere"
        )
        assert "error" in agent.call("echo", {"mark": "after"})
        assert store.clear(principal, ["private"], time.time()) == 1
    assert text_of(agent.call("echo", {"mark": "cleared"})) == "done"
