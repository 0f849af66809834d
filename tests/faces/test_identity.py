"""Who an agent is: on every event of its session, and on every call."""

from typing import Any

import pytest
from tests.faces.face import Gate
from tests.faces.record_view import calls_on_record


def session_events(gate: Gate, mark: str) -> list[dict[str, Any]]:
    """Return the events of a call, and those of its session that follow its start."""
    (call,) = calls_on_record(gate, mark)
    start = call[0]
    following = gate.records()
    at = next(
        number
        for number, one in enumerate(following)
        if one["type"] == start["type"] and one["call"]["call_id"] == start["call"]["call_id"]
    )
    return [one for one in following[at:] if one["session_id"] == start["session_id"]]


def test_every_event_of_a_session_says_who_its_agent_is(gate: Gate) -> None:
    agent = gate.agent()
    agent.call("echo", {"mark": "identity-session"})
    agent.ask("ping")
    wanted = {"tool_call_start", "tool_call_end", "message"}

    def found() -> list[dict[str, Any]]:
        events = session_events(gate, "identity-session")
        return events if {one["type"] for one in events} >= wanted else []

    events = gate.wait(found, "the events of the session")
    for event in events:
        assert event["peer"]["client"] == "faces 1"
        assert event["peer"]["principal"] == events[0]["call"]["principal"]
        assert event["peer"].get("address", "") == (
            "127.0.0.1" if gate.face.agent == "http" else ""
        )


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
def test_a_call_says_where_it_comes_from(gate: Gate, *, modern: bool) -> None:
    mark = f"identity-call-{modern}"
    gate.agent().call("echo", {"mark": mark}, modern=modern)
    (call,) = calls_on_record(gate, mark)
    said = call[0]["call"]
    assert said.get("address", "") == ("127.0.0.1" if gate.face.agent == "http" else "")
    if modern:
        assert said["client"] == "faces 1"
