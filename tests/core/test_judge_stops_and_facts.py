"""The judge under stop orders, and the facts that calls establish."""

from collections.abc import Iterable
from typing import Any

import pytest

from thoughtgate.core.approval import Decision
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.core.record_events import CANCELLED, ERROR, OK, call_ended
from thoughtgate.errors import StoreError
from thoughtgate.policy.call import APPROVE, DENY, DEVELOPMENT, FORWARD, PRODUCTION, Call
from thoughtgate.policy.facts import OUTBOUND, PRIVATE, UNTRUSTED, Flows, LocalFacts, ServerFlows
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.stops import ALL, SERVER, StopOrder, Stops
from thoughtgate.wire.methods import Named

STOPPED = Stops((StopOrder(SERVER, "web", "incident"),))


def question(name: str = "read", server: str = "web", at: float = 1.0) -> CallRequest:
    named = (Named("tool", name, {}),)
    return CallRequest(server, "1", "agent", "tools/call", named, 50, "mcp_stdio", at)


def policy(profile: str = PRODUCTION, action: str = DENY) -> Policy:
    asked = Rule("people", APPROVE, Selector(names=compile_globs(["asked"])))
    leak = Rule("leak", action, facts=frozenset({UNTRUSTED, OUTBOUND}))
    flows = Flows({"web": ServerFlows(frozenset({UNTRUSTED}))}, asked=True)
    return Policy(
        version="v1", profile=profile, default=FORWARD, rules=RuleSet([asked, leak]), flows=flows
    )


@pytest.mark.parametrize("profile", [PRODUCTION, DEVELOPMENT])
def test_a_stop_order_is_enforced_in_every_profile(profile: str) -> None:
    judge = Judge(policy(profile), "run")
    judge.stops = STOPPED
    ruling = judge.judge(question())
    assert (ruling.verdict.action, ruling.verdict.gate) == (DENY, "stop")
    decision = ruling.records[1].body["decision"]
    assert (decision["action"], decision["enforced"]) == ("BLOCK", True)
    assert judge.judge(question(server="other")).verdict.action == FORWARD
    assert judge.predict(Call("web", "tool", "read", {}), 1.0).gate == "stop"


def test_an_approved_call_that_was_stopped_meanwhile_does_not_run() -> None:
    judge = Judge(policy(), "run")
    held = judge.judge(question("asked"))
    judge.stops = Stops((StopOrder(ALL, ""),))
    settled = judge.settle(held.call_id, Decision(approved=True, by="terminal:ann"), 2.0)
    assert settled.verdict.kind == "governance_denied"
    assert settled.records[0].body["approval"]["executes"] is False


def test_a_call_is_judged_by_the_facts_before_it() -> None:
    judge = Judge(policy(), "run")
    first = judge.judge(question())
    assert first.verdict.action == FORWARD
    assert first.records[1].body["decision"]["facts"] == []
    second = judge.judge(question(at=2.0))
    assert second.verdict.rule == "leak"
    assert second.records[1].body["decision"]["facts"] == [UNTRUSTED]
    assert judge.judge(question(at=4000.0)).verdict.action == FORWARD


@pytest.mark.promise("facts-outlast-results")
@pytest.mark.parametrize(
    ("end", "holds"),
    [
        ({"status": OK}, True),
        ({"status": ERROR, "error": {"class": "upstream_error"}}, True),
        ({"status": ERROR, "error": {"class": "policy_block"}}, False),
        ({"status": CANCELLED}, False),
    ],
)
def test_a_result_that_comes_after_the_window_is_seen_then(
    end: dict[str, Any], *, holds: bool
) -> None:
    judge = Judge(policy(), "run")
    ident = judge.judge(question()).call_id
    assert judge.facts.of("agent", 4000.0) == frozenset()
    ended = call_ended(4000.0, "web", "1", call_id=ident, tool="read", latency_ms=1, size=1, **end)
    judge.note(ended)
    assert judge.facts.of("agent", 7000.0) == (frozenset({UNTRUSTED}) if holds else frozenset())


def test_a_call_that_is_not_forwarded_establishes_nothing() -> None:
    judge = Judge(policy(), "run")
    held = judge.judge(question("asked"))
    assert judge.facts.of("agent", 1.0) == frozenset()
    judge.settle(held.call_id, Decision(approved=True), 2.0)
    assert judge.facts.of("agent", 2.0) == frozenset({UNTRUSTED})


def test_facts_that_came_while_a_call_was_held_count() -> None:
    first = Policy(
        version="v1",
        default=FORWARD,
        rules=RuleSet(
            [
                Rule(
                    "no", DENY, Selector(names=compile_globs(["asked"])), facts=frozenset({PRIVATE})
                ),
                Rule("people", APPROVE, Selector(names=compile_globs(["asked"]))),
            ]
        ),
        flows=Flows(asked=True),
    )
    judge = Judge(first, "run")
    held = judge.judge(question("asked"))
    assert held.verdict.action == APPROVE
    judge.facts.establish("agent", [PRIVATE], 1.5, window_s=60, cause="files")
    settled = judge.settle(held.call_id, Decision(approved=True), 2.0)
    assert settled.verdict.kind == "policy_drift"


class Away(LocalFacts):
    """Facts in a store that is away."""

    def establish(
        self, principal: str, facts: Iterable[str], at: float, *, window_s: float, cause: str
    ) -> None:
        del principal, facts, at, window_s, cause
        raise StoreError("away")


def test_a_fact_that_cannot_be_stored_refuses_the_call() -> None:
    ruling = Judge(policy(), "run", facts=Away()).judge(question())
    assert (ruling.verdict.gate, ruling.verdict.kind) == ("facts", "service_unavailable")
    assert ruling.verdict.retry_after_s > 0
    other = Judge(policy(), "run", facts=Away()).judge(question(server="other"))
    assert other.verdict.action == FORWARD


def test_without_rules_on_facts_nothing_is_said_of_them() -> None:
    ruling = Judge(Policy(default=FORWARD), "run").judge(question())
    assert "facts" not in ruling.records[1].body["decision"]
