"""The chain of gates: who decides, what is said, and that a failing gate denies."""

import re
from dataclasses import replace
from typing import Any

import pytest

from thoughtgate.errors import KINDS
from thoughtgate.policy import policy as policy_module
from thoughtgate.policy.call import MAX_KEPT, Call, Condition, Verdict
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.cedar_text import CedarSource
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.evaluation import evaluate, explain
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.rules import MAX_REMEMBERED, Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import ALLOW, BLOCK, Exposure, Visibility

CALL = Call("bank", "tool", "transfer", {"amount": 5})


def policy(*rules: Rule, **fields: Any) -> Policy:
    return Policy(rules=RuleSet(rules), **fields)


def rule(action: str, **fields: Any) -> Rule:
    return Rule("r", action, Selector(names=compile_globs(["transfer"])), **fields)


def cedar(text: str) -> CedarEngine:
    return CedarEngine([CedarSource("p.cedar", text)])


def judged(judge_by: Policy, call: Call = CALL) -> tuple[str, str, str]:
    verdict = evaluate(call, judge_by, 0.0)
    return verdict.action, verdict.gate, verdict.kind


def test_what_is_hidden_is_denied_before_any_rule_is_asked() -> None:
    hidden = Visibility({"bank": Exposure.of(ALLOW, ["balance"])})
    assert judged(policy(rule("forward"), visibility=hidden)) == (
        "deny",
        "visibility",
        "not_exposed",
    )


def test_a_rule_forwards_denies_or_asks() -> None:
    assert judged(policy(rule("forward"))) == ("forward", "rules", "")
    assert judged(policy(rule("deny"))) == ("deny", "rules", "governance_denied")
    assert judged(policy(rule("approve"))) == ("approve", "rules", "")


def test_without_a_match_the_default_decides() -> None:
    assert judged(policy()) == ("deny", "default", "governance_denied")
    assert judged(policy(default="forward")) == ("forward", "default", "")
    assert evaluate(CALL, policy(default="approve"), 0.0).workflow == "default"


def test_a_verdict_names_rule_reason_workflow_and_redaction() -> None:
    workflows = frozenset({"ops"})
    asking = rule("approve", workflow="ops", reason="large", redact=True)
    verdict = evaluate(CALL, policy(asking, workflows=workflows), 0.0)
    assert verdict == Verdict("approve", "rules", "", "large", "r", "ops", redact=True)


def test_a_workflow_that_does_not_exist_denies() -> None:
    verdict = evaluate(CALL, policy(rule("approve", workflow="gone")), 0.0)
    assert (verdict.action, verdict.kind) == ("deny", "internal_error")


def test_policy_without_cedar_denies() -> None:
    assert judged(policy(rule("policy"))) == ("deny", "cedar", "policy_denied")


def test_cedar_permits_asks_and_forbids() -> None:
    text = """
    @id("small") permit(principal, action, resource) when { context.arguments.amount < 100 };
    @id("large") @approval("ops")
    permit(principal, action, resource) when { context.arguments.amount >= 100 };
    @id("never") forbid(principal, action, resource) when { context.arguments.amount > 1000 };
    """
    judge_by = policy(rule("policy"), cedar=cedar(text), workflows=frozenset({"ops"}))
    small, large, huge = (
        evaluate(CALL._replace(arguments={"amount": amount}), judge_by, 0.0)
        for amount in (5, 500, 5000)
    )
    assert (small.action, small.gate, small.rule) == ("forward", "cedar", "small")
    assert (large.action, large.workflow, large.rule) == ("approve", "ops", "large")
    assert (huge.action, huge.kind, huge.rule) == ("deny", "policy_denied", "never")


@pytest.mark.promise("gates-fail-closed")
@pytest.mark.requirement("NFR-R3")
def test_a_gate_that_raises_denies() -> None:
    judge_by = policy(Rule("r", "forward", conditions=(Condition(("a",), "no such operator", 1),)))
    assert judged(judge_by) == ("deny", "internal", "internal_error")
    [*_, last] = explain(CALL, judge_by, 0.0)
    assert last.looked_at == "the gate failed"
    assert last.verdict is not None
    assert "rules gate" in last.verdict.reason


def test_a_call_that_no_gate_decides_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_module, "GATES", (policy_module.visibility_gate,))
    assert judged(policy(rule("forward"))) == ("deny", "internal", "internal_error")
    assert len(explain(CALL, policy(), 0.0)) == 1


def test_every_kind_that_a_gate_gives_is_in_the_registry() -> None:
    assert {"not_exposed", "governance_denied", "policy_denied", "internal_error"} <= set(KINDS)


def test_a_verdict_that_depends_on_names_alone_is_found_once() -> None:
    by = policy(rule("deny"), default="forward")
    verdict = evaluate(CALL, by, 0.0)

    assert evaluate(CALL._replace(arguments={"amount": 9}, principal="eve"), by, 1.0) is verdict
    # Neither another server, nor another kind, nor another name has it.
    assert judged(by, CALL._replace(name="balance"))[0] == "forward"
    assert judged(by, CALL._replace(kind="prompt"))[0] == "deny"
    assert set(by.known) == {
        ("bank", "tool", "transfer"),
        ("bank", "tool", "balance"),
        ("bank", "prompt", "transfer"),
    }


@pytest.mark.parametrize(
    ("by", "other", "action"),
    [
        (
            policy(rule("forward", conditions=parse_conditions({"amount": {"lt": 9}}))),
            CALL._replace(arguments={"amount": 9}),
            "deny",
        ),
        (
            policy(rule("approve", annotations=parse_conditions({"destructiveHint": True}))),
            CALL._replace(annotations={"destructiveHint": True}),
            "approve",
        ),
        (
            policy(rule("forward", scopes=("pay",))),
            CALL._replace(claims={"scope": "pay"}),
            "forward",
        ),
        (
            policy(
                rule("policy"),
                cedar=cedar(
                    "permit(principal, action, resource) when { context.arguments.amount < 9 };"
                ),
            ),
            CALL._replace(arguments={"amount": 9}),
            "deny",
        ),
        (
            policy(
                default="policy",
                cedar=cedar(
                    "permit(principal, action, resource) when { context.arguments.amount < 9 };"
                ),
            ),
            CALL._replace(arguments={"amount": 9}),
            "deny",
        ),
    ],
    ids=["arguments", "annotations", "scopes", "cedar", "cedar by default"],
)
def test_a_verdict_that_depends_on_more_is_found_for_each_call(
    by: Policy, other: Call, action: str
) -> None:
    before = judged(by)[0]

    assert judged(by, other)[0] == action != before
    assert judged(by)[0] == before
    assert not by.known


def test_verdicts_are_not_remembered_without_end() -> None:
    by = policy(default="forward")
    for number in range(MAX_REMEMBERED + 10):
        judged(by, CALL._replace(name=f"tool_{number}"))
    judged(by, CALL._replace(name="x" * (MAX_KEPT + 1)))

    assert 0 < len(by.known) <= MAX_REMEMBERED
    assert all(len(name) <= MAX_KEPT for _, _, name in by.known)


def test_explaining_says_what_each_gate_looked_at() -> None:
    conditional = Rule("c", "deny", conditions=parse_conditions({"amount": {"gt": 100}}))
    judge_by = policy(
        conditional,
        rule("forward"),
        visibility=Visibility({"bank": Exposure.of(ALLOW, ["transfer", "b*"])}),
    )
    steps = explain(CALL, judge_by, 0.0)
    assert [(step.gate, step.verdict and step.verdict.action) for step in steps] == [
        ("visibility", None),
        ("rules", "forward"),
    ]
    assert steps[0].looked_at == "server 'bank' exposes only transfer, b*"
    assert steps[1].looked_at == "2 of 2 rules name it: c fails on its conditions, r matches"
    assert steps[-1].verdict == evaluate(CALL, judge_by, 0.0)


@pytest.mark.parametrize(
    ("exposure", "told"),
    [
        (Exposure.of(BLOCK, ["move_file"]), "exposes all but move_file"),
        (Exposure.of(ALLOW), "exposes nothing"),
        (Exposure(), "exposes all"),
    ],
)
def test_explaining_says_what_a_server_exposes(exposure: Exposure, told: str) -> None:
    judge_by = policy(rule("forward"), visibility=Visibility({"bank": exposure}))
    assert explain(CALL, judge_by, 0.0)[0].looked_at == f"server 'bank' {told}"


def test_explaining_reaches_cedar_and_names_the_default() -> None:
    texts = [step.looked_at for step in explain(CALL, policy(default="policy"), 0.0)]
    assert texts[1:] == ["0 of 0 rules name it: default policy", "no policies"]
    engine = cedar("permit(principal, action, resource);")
    assert explain(CALL, policy(default="policy", cedar=engine), 0.0)[2].looked_at == "1 policies"


def test_explaining_tells_of_a_disabled_server() -> None:
    off = Visibility({"bank": Exposure.of("all", enabled=False)})
    assert re.search("is disabled", explain(CALL, policy(visibility=off), 0.0)[0].looked_at)


def test_a_policy_knows_whether_it_looks_at_annotations_or_masks_results() -> None:
    asked = "permit(principal, action, resource) when { context.annotations has readOnlyHint };"
    assert not policy(rule("forward")).looks_at_annotations()
    assert policy(cedar=cedar(asked)).looks_at_annotations()
    assert not policy(rule("forward")).masks_results()
    masking = policy(rule("forward", redact=True))
    assert policy(layers=(Layer("organisation", masking),)).masks_results()


def test_what_a_server_asks_is_hidden_from_nobody() -> None:
    hidden = Visibility({"bank": Exposure.of(ALLOW, ["balance"])})
    asked = Call("bank", "sampling", "sampling/createMessage", {})
    assert judged(policy(visibility=hidden), asked)[1] != "visibility"


def test_annotations_that_nobody_has_listed_deny() -> None:
    asked = "forbid(principal, action, resource) when { context.annotations has readOnlyHint };"
    unlisted = CALL._replace(is_listed=False)
    found = policy(rule("policy"), cedar=cedar(asked), default="forward")
    assert judged(found, unlisted)[0] == "deny"


@pytest.mark.parametrize(
    ("judge_by", "asks"),
    [
        (Policy(default="forward"), False),
        (Policy(default="approve"), True),
        (policy(rule("forward")), False),
        (policy(rule("approve")), True),
        (Policy(cedar=cedar("permit(principal, action, resource);")), False),
        (Policy(cedar=cedar("@approval permit(principal, action, resource);")), True),
        (Policy(layers=(Layer("team", Policy(default="approve")),)), True),
    ],
)
def test_a_policy_knows_whether_it_asks_people(judge_by: Policy, *, asks: bool) -> None:
    assert judge_by.asks_people() == asks
    assert judge_by.offers_tasks() == asks
    assert not replace(judge_by, profile="development").offers_tasks()
