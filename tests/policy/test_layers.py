"""Layers: a further policy makes verdicts stricter and never looser."""

from dataclasses import replace
from typing import Any

import pytest

from thoughtgate.policy.call import (
    APPROVE,
    DENY,
    DEVELOPMENT,
    FORWARD,
    PRODUCTION,
    Call,
    strictness,
)
from thoughtgate.policy.evaluation import evaluate, explain
from thoughtgate.policy.facts import UNTRUSTED, Flows
from thoughtgate.policy.layers import ORGANISATION, PROJECT, with_layers, with_proposed
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.visibility import BLOCK, Exposure, Visibility

CALL = Call("bank", "tool", "transfer", {})
ACTIONS = (FORWARD, APPROVE, DENY)


def policy(action: str, **fields: Any) -> Policy:
    return Policy(rules=RuleSet([Rule("r", action)]), **fields)


@pytest.mark.parametrize("own", ACTIONS)
@pytest.mark.parametrize("layered", ACTIONS)
def test_the_stricter_verdict_counts(own: str, layered: str) -> None:
    both = with_layers(policy(own), Layer(PROJECT, policy(layered)))
    assert evaluate(CALL, both, 0.0).action == max(own, layered, key=ACTIONS.index)


def test_the_record_names_the_layer_that_decided() -> None:
    both = with_layers(policy(FORWARD), Layer(PROJECT, policy(DENY)))
    assert evaluate(CALL, both, 0.0).rule == "project:r"


def test_an_unknown_workflow_of_a_layer_is_the_default_one() -> None:
    asking = Policy(
        rules=RuleSet([Rule("r", APPROVE, workflow="anyone")]), workflows=frozenset({"anyone"})
    )
    both = with_layers(policy(FORWARD), Layer(PROJECT, asking))
    assert evaluate(CALL, both, 0.0).workflow == "default"


def test_the_organisations_approvers_are_asked_if_both_want_approval() -> None:
    floor = Layer(ORGANISATION, policy(APPROVE), {"default": "organisation/default"}, prevails=True)
    both = with_layers(policy(APPROVE), floor)
    assert evaluate(CALL, both, 0.0).workflow == "organisation/default"
    assert "organisation/default" in both.workflows


def test_a_project_cannot_choose_the_approvers_of_the_users_rule() -> None:
    both = with_layers(policy(APPROVE), Layer(PROJECT, policy(APPROVE), {"default": "other"}))
    assert evaluate(CALL, both, 0.0).workflow == "default"


def test_a_name_that_a_layer_hides_is_hidden() -> None:
    hides = Visibility({"bank": Exposure.of(BLOCK, ["transfer"])})
    both = with_layers(policy(FORWARD), Layer(PROJECT, policy(FORWARD, visibility=hides)))
    assert not both.visibility.allows("bank", "transfer")
    assert evaluate(CALL, both, 0.0).kind == "not_exposed"


def test_the_limits_of_a_layer_count() -> None:
    limited = policy(FORWARD, limits=(Limit("l", budget=1),))
    both = with_layers(policy(FORWARD, limits=(Limit("l", budget=9),)), Layer(PROJECT, limited))
    assert [(limit.id, limit.budget) for limit in both.limits] == [("l", 9), ("project:l", 1)]


def test_secrets_are_masked_in_the_result_if_any_layer_says_so() -> None:
    masking = Policy(rules=RuleSet([Rule("m", FORWARD, redact=True)]))
    assert evaluate(CALL, with_layers(policy(FORWARD), Layer(PROJECT, masking)), 0.0).redact
    assert evaluate(CALL, with_layers(masking, Layer(PROJECT, policy(DENY))), 0.0).redact


@pytest.mark.parametrize(
    ("prevails", "profile"), [(True, PRODUCTION), (False, DEVELOPMENT)], ids=["floor", "project"]
)
def test_only_the_organisation_turns_development_into_production(
    prevails: bool, profile: str
) -> None:
    own = policy(FORWARD, profile=DEVELOPMENT)
    assert with_layers(own, Layer("x", policy(DENY), prevails=prevails)).profile == profile


def test_the_version_changes_with_a_layer() -> None:
    own = policy(FORWARD, version="a")
    versions = {
        own.version,
        with_layers(own, Layer(PROJECT, policy(DENY, version="b"))).version,
        with_layers(own, Layer(PROJECT, policy(DENY, version="c"))).version,
    }
    assert len(versions) == 3
    assert with_layers(own) is own


def test_explain_shows_every_layer() -> None:
    both = with_layers(policy(FORWARD), Layer(PROJECT, policy(DENY)))
    assert [step.gate for step in explain(CALL, both, 0.0)] == [
        "visibility",
        "rules",
        "project visibility",
        "project rules",
    ]
    assert explain(CALL, replace(both, layers=()), 0.0)[-1].gate == "rules"


def test_denial_is_stricter_than_approval() -> None:
    verdicts = [evaluate(CALL, policy(action), 0.0) for action in ACTIONS]
    assert sorted(verdicts, key=strictness) == verdicts


@pytest.mark.parametrize("own", ACTIONS)
@pytest.mark.parametrize("proposed", ACTIONS)
def test_a_proposed_policy_only_makes_the_one_in_force_stricter(own: str, proposed: str) -> None:
    both = with_proposed(policy(own, profile=PRODUCTION), policy(proposed, profile=DEVELOPMENT))

    assert evaluate(CALL, both, 0.0).action == max(own, proposed, key=ACTIONS.index)
    assert both.profile == PRODUCTION


def test_a_proposed_policy_changes_neither_masking_nor_approvers() -> None:
    kept = policy(FORWARD, workflows=frozenset({"default", "ops"}))
    asking = Policy(
        rules=RuleSet([Rule("r", APPROVE, workflow="mine")]),
        workflows=frozenset({"default", "mine"}),
        redactor=Redactor(patterns=[".*"]),
    )

    both = with_proposed(kept, asking)

    assert evaluate(CALL, both, 0.0).workflow == "default"
    assert evaluate(CALL, both, 0.0).rule == "proposed:r"
    assert both.redactor is kept.redactor


def test_the_layers_of_a_proposed_policy_are_asked_as_well() -> None:
    strict = with_layers(policy(FORWARD), Layer(PROJECT, policy(DENY)))

    verdict = evaluate(CALL, with_proposed(policy(FORWARD), strict), 0.0)

    assert (verdict.action, verdict.rule) == (DENY, "proposed project:r")


@pytest.mark.parametrize("prevails", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_a_rule_on_facts_is_named_whichever_policy_has_it(own: bool, prevails: bool) -> None:
    asked = Rule("leak", APPROVE, facts=frozenset({UNTRUSTED}))
    flows = Policy(rules=RuleSet([asked]), flows=Flows(asked=True))
    plain = policy(APPROVE)
    first, second = (flows, plain) if own else (plain, flows)
    layered = with_layers(first, Layer(PROJECT, second, prevails=prevails))
    verdict = evaluate(CALL._replace(facts=frozenset({UNTRUSTED})), layered, 0.0)
    assert (verdict.action, verdict.on_facts) == (APPROVE, True)
    assert verdict.rule.endswith("leak")
