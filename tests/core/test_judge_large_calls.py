"""Large calls that wait for a person: judged again from their frame, which alone is kept."""

import json
from dataclasses import replace
from typing import Any

import pytest

from thoughtgate.core.approval import Decision
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest, Ruling
from thoughtgate.policy.call import APPROVE, DENY, FORWARD
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.wire.methods import Named
from thoughtgate.wire.packed_message import MAX_PARSED


def _policy(**rules: str) -> Policy:
    made = (
        Rule(name, action, Selector(names=compile_globs([name]))) for name, action in rules.items()
    )
    return Policy(version="v1", default=FORWARD, rules=RuleSet(made))


def _question(name: str, *, arguments: dict[str, Any], size: int) -> CallRequest:
    named = (Named("tool", name, arguments),)
    return CallRequest("srv", "1", "agent", "tools/call", named, size, "mcp_stdio", 1.0)


def _held_large(judge: Judge, arguments: dict[str, Any], *, has_frame: bool) -> Ruling:
    params = {"name": "ask", "arguments": arguments}
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    question = _question("ask", arguments=arguments, size=len(frame))
    held = judge.judge(question._replace(frame=frame.encode() if has_frame else b""))
    judge.pack(held.call_id)
    return held


@pytest.mark.promise("held-calls-bounded")
@pytest.mark.parametrize("has_frame", [True, False])
def test_a_large_held_call_is_judged_again_with_its_arguments(*, has_frame: bool) -> None:
    judge = Judge(_policy(ask=APPROVE), "run")
    held = _held_large(judge, {"path": "/etc", "text": "x" * MAX_PARSED}, has_frame=has_frame)
    kept = judge.open_call(held.call_id)
    assert kept is not None
    assert [one.arguments for one in (kept.call, *kept.calls)] == [{}, {}]
    condition = parse_conditions({"path": {"eq": "/etc"}})
    rule = Rule("now", DENY, Selector(names=compile_globs(["ask"])), conditions=condition)
    judge.replace_policy(replace(_policy(), rules=RuleSet([rule])))

    settled = judge.settle(held.call_id, Decision(approved=True), 2.0)

    assert (settled.verdict.action, settled.verdict.kind) == (DENY, "policy_drift")


@pytest.mark.promise("held-calls-bounded")
def test_a_large_held_call_goes_on_once() -> None:
    judge = Judge(_policy(ask=APPROVE), "run")
    held = _held_large(judge, {"text": "x" * MAX_PARSED}, has_frame=True)

    first, again = (
        judge.settle(held.call_id, Decision(approved=True), at).verdict for at in (2.0, 3.0)
    )

    assert first.action == FORWARD
    assert (again.action, again.kind) == (DENY, "internal_error")


def test_small_held_calls_keep_their_arguments() -> None:
    judge = Judge(_policy(ask=APPROVE), "run")
    held = _held_large(judge, {"text": "x"}, has_frame=True)
    kept = judge.open_call(held.call_id)
    assert kept is not None
    assert kept.call.arguments == {"text": "x"}


@pytest.mark.promise("held-calls-bounded")
@pytest.mark.parametrize("has_frame", [True, False])
def test_a_held_request_that_names_several_things_keeps_only_its_frame(*, has_frame: bool) -> None:
    kinds = frozenset({"elicitation"})
    asks = replace(_policy(), rules=RuleSet([Rule("asks", APPROVE, Selector(kinds=kinds))]))
    judge = Judge(asks, "run")
    prompts = [{"mode": "form", "message": "x" * MAX_PARSED, "n": n} for n in range(2)]
    requests = {str(n): {"method": "elicitation/create", "params": prompts[n]} for n in range(2)}
    params = {"inputRequests": requests}
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "result": params}).encode()
    named = tuple(Named("elicitation", "form", one) for one in prompts)
    held = judge.judge(
        CallRequest(
            "srv", "1", "agent", "input_required", named, len(frame), "mcp_stdio", 1.0, params
        )._replace(frame=frame if has_frame else b"")
    )
    judge.pack(held.call_id)
    kept = judge.open_call(held.call_id)
    assert kept is not None
    assert kept.packed is not None
    assert (kept.packed.data == frame) is has_frame
    assert [one.arguments for one in (kept.call, *kept.calls)] == [{}, {}, {}]
    condition = parse_conditions({"n": {"eq": 1}})
    rule = Rule("now", DENY, Selector(kinds=kinds), conditions=condition)
    judge.replace_policy(replace(_policy(), rules=RuleSet([rule])))

    settled = judge.settle(held.call_id, Decision(approved=True), 2.0)

    assert (settled.verdict.action, settled.verdict.kind) == (DENY, "policy_drift")
