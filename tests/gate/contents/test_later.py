"""Messages that are inspected after they were passed on: recorded, told, counted if too many."""

from dataclasses import replace
from typing import Any

import pytest
from tests.gate.contents.test_inspection import answer, found
from tests.support.shim_bench import Ledger, NobodyThere

from thoughtgate.core.commands import InspectAnswer, InspectLater
from thoughtgate.core.envelope import Run
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest, Ruling
from thoughtgate.gate.contents import later
from thoughtgate.gate.contents.inspection import inspect_answer
from thoughtgate.gate.governor import Governor
from thoughtgate.policy.call import DEVELOPMENT, FORWARD, INSPECT_AFTER
from thoughtgate.policy.facts import ESTABLISHED, PRIVATE, Flows
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.inspection.content_policy import ContentPolicy, ServerContents
from thoughtgate.policy.policy import Policy
from thoughtgate.wire.methods import Named

TOKEN = "glpat-" + "x8Kd02LmQz7RtYw4VbN1"
HARD = compile_globs(["hard"])


def governor(policy: Policy | None = None, **more: Any) -> Governor:
    asked = ServerContents({"record": HARD}, recorded_arguments=HARD, **more)
    judged = replace(policy or Policy(default=FORWARD), contents=ContentPolicy({"srv": asked}))
    return Governor(Judge(judged, "run"), Ledger(), Run("run"), approvals=NobodyThere())


def call(gate: Governor, **arguments: Any) -> Ruling:
    named = (Named("tool", "t", arguments),)
    return gate.rule(CallRequest("srv", "1", "ann", "tools/call", named, 10, "mcp_stdio", 1.0))


def receive(gate: Governor, text: str, size: int = 100) -> None:
    ruling = call(gate)
    command = InspectLater(ruling.call_id, answer(text), size, 2.0)
    gate.later.put_message(command, "srv", "1", "ann")


def test_a_result_is_recorded_afterwards_and_the_operator_told_once() -> None:
    gate = governor()
    lines: list[str] = []
    gate.later.say = lines.append
    assert call(gate).verdict.inspect == INSPECT_AFTER
    receive(gate, f"the token is {TOKEN}")
    assert not found(gate)
    assert gate.later.run() is False
    (told,) = found(gate)
    assert told["action"] == "record"
    assert told["enforced"] is True
    assert told["findings"][0]["check"] == "secret-token"
    receive(gate, f"again {TOKEN}")
    receive(gate, "an ordinary text")
    gate.later.run()
    assert len(found(gate)) == 2
    (line,) = lines
    assert "secret-token" in line
    assert "srv, t" in line
    assert TOKEN not in line


def test_arguments_are_recorded_afterwards() -> None:
    gate = governor()
    assert call(gate, note=TOKEN).verdict.action == FORWARD
    gate.later.run()
    (told,) = found(gate)
    assert (told["direction"], told["action"]) == ("agent_to_server", "record")
    assert told["findings"][0]["where"].startswith("/note:")


def test_nothing_is_kept_where_nothing_is_configured() -> None:
    gate = Governor(
        Judge(Policy(default=FORWARD), "run"), Ledger(), Run("run"), approvals=NobodyThere()
    )
    assert not call(gate, note=TOKEN).verdict.inspect
    assert not gate.later.waiting


def test_the_development_profile_records_the_same() -> None:
    gate = governor(Policy(default=FORWARD, profile=DEVELOPMENT))
    receive(gate, f"the token is {TOKEN}")
    gate.later.run()
    (told,) = found(gate)
    assert told["enforced"] is True
    assert "outcome" not in told


def test_messages_that_do_not_fit_are_counted_in_the_record() -> None:
    gate = governor()
    calls = later.MAX_WAITING
    while len(gate.later.waiting) < calls:
        receive(gate, "ok")
    before = len(gate.later.waiting)
    command = InspectLater("", answer("ok"), 10, 2.0)
    for size in (10, later.MAX_ONE, -1):
        gate.later.put_message(command._replace(size=size), "srv", "1", "ann")
    assert len(gate.later.waiting) == before
    gate.later.run()
    found_now = found(gate)
    assert [one["skipped"] for one in found_now] == [3]
    assert all(one["findings"][0]["check"] == "unreadable" for one in found_now)


@pytest.mark.parametrize("is_stopping", [False, True])
def test_every_principal_with_a_result_that_does_not_fit_may_have_seen_anything(
    monkeypatch: pytest.MonkeyPatch, *, is_stopping: bool
) -> None:
    gate = governor(Policy(default=FORWARD, flows=Flows(asked=True)))
    monkeypatch.setattr(later, "FINISH_S", 0.0)
    monkeypatch.setattr(later, "MAX_WAITING", 3 if is_stopping else 0)
    # The first message that does not fit is a call, which no one has seen data by.
    call(gate, note="ok")
    for principal in ("ann", "bob"):
        gate.later.put_message(InspectLater("", answer("ok"), 10, 2.0), "srv", "1", principal)
    gate.later.finish() if is_stopping else gate.later.run()
    for principal in ("ann", "bob"):
        assert gate.judge.facts.of(principal, 3.0) == frozenset(ESTABLISHED)


def test_a_message_that_is_too_long_is_reported_as_unreadable() -> None:
    gate = governor()
    receive(gate, "ok", size=later.MAX_ONE + 1)
    (told,) = found(gate)
    assert told["findings"] == [{"check": "unreadable", "tier": "hard", "where": ""}]
    assert "skipped" not in told


@pytest.mark.promise("bounded-memory")
def test_a_long_message_about_a_task_does_not_wait_either() -> None:
    gate = governor()
    command = InspectAnswer(1, "", answer("x" * later.MAX_ONE), 2.0, of_task=True)
    assert inspect_answer(gate, "srv", "1", "ann", command).body is not None
    (told,) = found(gate)
    assert told["findings"][0]["check"] == "unreadable"
    assert not gate.later.waiting


def test_facts_hold_before_the_next_call_is_judged() -> None:
    gate = governor(Policy(default=FORWARD, flows=Flows(asked=True)))
    receive(gate, f"the token is {TOKEN}")
    call(gate)
    assert gate.judge.facts.of("ann", 3.0) == frozenset({PRIVATE})
    receive(gate, "ok", size=later.MAX_ONE + 1)
    assert gate.judge.facts.of("ann", 3.0) == frozenset(ESTABLISHED)


def test_a_gate_that_stops_inspects_what_waits() -> None:
    gate = governor()
    receive(gate, f"the token is {TOKEN}")
    gate.finish("OK", 5.0)
    assert [one["action"] for one in found(gate)] == ["record"]


def test_a_gate_that_stops_counts_what_it_has_no_time_for(monkeypatch: Any) -> None:
    monkeypatch.setattr(later, "FINISH_S", 0.0)
    gate = governor()
    for _ in range(3):
        receive(gate, "ok")
    gate.finish("OK", 5.0)
    assert sum(one.get("skipped", 0) for one in found(gate)) > 0
