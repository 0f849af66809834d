from typing import Any

import pytest
from tests.support.records import T0

from thoughtgate.analysis.replay import (
    ALLOW_WORD,
    BLOCK_WORD,
    HOLD_WORD,
    THROTTLE_WORD,
    RecordedCall,
    flips_of,
    recorded_call,
    replay,
)
from thoughtgate.policy.call import FORWARD, POLICY
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.cedar_text import CedarSource
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.facts import Flows
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.limits import Limit, Rate
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import Exposure, Visibility


def row(**changes: Any) -> dict[str, Any]:
    return {
        "call_id": "r.1",
        "server": "bank",
        "kind": "tool",
        "tool": "transfer",
        "method": "tools/call",
        "principal": "local",
        "session": "1",
        "args_hash": "ab",
        "preview": '{"amount":50,"token":"[REDACTED]"}',
        "truncated": 0,
        "started_at": T0,
        "decision": "ALLOW",
        "status": "OK",
        "error_class": None,
        **changes,
    }


def rows(*changes: dict[str, Any]) -> list[RecordedCall]:
    found = [recorded_call(row(**one)) for one in changes]
    assert all(found)
    return [one for one in found if one is not None]


def policy(when: dict[str, Any] | None = None, action: str = "deny", **changes: Any) -> Policy:
    rule = Rule(
        "large",
        action,
        Selector(names=compile_globs(["transfer"])),
        parse_conditions(when or {}),
    )
    return Policy(default=FORWARD, rules=RuleSet([rule]), **changes)


def test_a_row_becomes_the_call_it_was() -> None:
    (recorded,) = rows({})
    assert recorded.call.server == "bank"
    assert recorded.call.name == "transfer"
    assert recorded.call.arguments == {"amount": 50, "token": "[REDACTED]"}
    assert recorded.decision == "ALLOW"
    assert not recorded.cut


@pytest.mark.parametrize("missing", ["tool", "decision", "started_at"])
def test_a_row_that_is_not_whole_is_left_out(missing: str) -> None:
    assert recorded_call(row(**{missing: None})) is None


@pytest.mark.parametrize("preview", ['{"amount":50[TRUNCATED]', "[1]", None])
def test_arguments_that_cannot_be_read_count_as_cut_or_none(preview: str | None) -> None:
    (recorded,) = rows({"preview": preview})
    assert recorded.call.arguments == {}
    assert recorded.cut == (preview is not None)


def test_verdicts_that_change_are_gathered() -> None:
    calls = rows(
        {"call_id": "r.1", "preview": '{"amount":500}'},
        {"call_id": "r.2", "preview": '{"amount":600}'},
        {"call_id": "r.3", "preview": '{"amount":5}'},
        {"call_id": "r.4", "preview": '{"amount":700}', "decision": "BLOCK"},
    )
    outcomes = list(replay(calls, policy({"amount": {"gt": 100}})))
    assert [outcome.decision for outcome in outcomes] == [
        BLOCK_WORD,
        BLOCK_WORD,
        ALLOW_WORD,
        BLOCK_WORD,
    ]
    (flip,) = flips_of(outcomes)
    assert (flip.before, flip.after, flip.calls, flip.rule) == ("ALLOW", "BLOCK", 2, "large")
    assert flip.examples == ("r.1", "r.2")
    assert flip.tightens


def test_a_policy_that_asks_less_loosens() -> None:
    (flip,) = flips_of(replay(rows({"decision": "HOLD"}), Policy(default=FORWARD)))
    assert not flip.tightens
    assert (flip.before, flip.after) == (HOLD_WORD, ALLOW_WORD)


def test_a_policy_that_asks_more_holds() -> None:
    (outcome,) = replay(rows({}), policy(action="approve"))
    assert outcome.decision == HOLD_WORD


def test_limits_count_as_the_calls_were_made() -> None:
    limit = Limit("slow", Selector(), rate=Rate(2, 60))
    calls = rows(*({"call_id": f"r.{n}", "started_at": T0 + n} for n in range(4)))
    outcomes = list(replay(calls, Policy(default=FORWARD, limits=(limit,))))
    assert [outcome.decision for outcome in outcomes] == [
        ALLOW_WORD,
        ALLOW_WORD,
        THROTTLE_WORD,
        THROTTLE_WORD,
    ]


def test_failures_are_remembered() -> None:
    recorded = recorded_call(row(status="ERROR", error_class="upstream_error"))
    refused = recorded_call(row(status="ERROR", error_class="policy_block"))
    assert recorded is not None
    assert recorded.failed
    assert refused is not None
    assert not refused.failed
    assert next(iter(replay([recorded], Policy(default=FORWARD)))).decision == ALLOW_WORD


@pytest.mark.parametrize(
    ("changes", "judged_by", "why"),
    [
        ({}, policy({"amount": {"gt": 100}}), ""),
        ({}, policy({"token": {"eq": "x"}}), "large looks at token"),
        ({}, policy({"token.inner": {"exists": True}}), "large looks at token.inner"),
        ({}, policy({"other.inner": {"exists": True}}), ""),
        ({"truncated": 1}, policy({"amount": {"gt": 100}}), "large looks at amount"),
        ({"truncated": 1}, policy(), ""),
        ({}, policy(action=POLICY), "Cedar"),
        ({"preview": "{}"}, policy(action=POLICY), ""),
        ({}, Policy(default=POLICY), "Cedar"),
        ({"preview": '{"a":["[REDACTED]"]}'}, Policy(default=POLICY), "Cedar"),
        ({}, Policy(), ""),
        (
            {},
            policy(
                {"token": {"eq": "x"}}, visibility=Visibility({"bank": Exposure.of("allow", [])})
            ),
            "",
        ),
    ],
)
def test_a_verdict_that_hangs_on_what_is_masked_says_so(
    changes: dict[str, Any], judged_by: Policy, why: str
) -> None:
    (outcome,) = replay(rows(changes), judged_by)
    assert outcome.uncertain.startswith(why)
    assert bool(outcome.uncertain) == bool(why)


def test_a_verdict_that_hangs_on_annotations_says_so() -> None:
    rule = Rule("hints", "deny", annotations=parse_conditions({"destructiveHint": True}))
    (outcome,) = replay(rows({}), Policy(default=FORWARD, rules=RuleSet([rule])))
    assert "annotations" in outcome.uncertain


def test_a_masked_name_makes_a_verdict_uncertain() -> None:
    (outcome,) = replay(rows({"tool": "https://host/?token=[REDACTED] #1a2b3c4d"}), policy())
    assert outcome.uncertain == "the name on record is masked"


def test_recorded_facts_are_used_and_missing_ones_are_a_doubt() -> None:
    facts = frozenset({"untrusted", "outbound"})
    asking = Policy(
        default=FORWARD, rules=RuleSet([Rule("leak", "deny", facts=facts)]), flows=Flows(asked=True)
    )
    known = rows({"facts": "private untrusted"}, {"facts": ""}, {"facts": None})
    held, free, unknown = replay(known, asking)
    assert (held.decision, held.uncertain) == (BLOCK_WORD, "")
    assert (free.decision, free.uncertain) == (ALLOW_WORD, "")
    assert unknown.uncertain == "leak looks at facts, which are not on record"
    engine = CedarEngine(
        [CedarSource("p", "permit(principal, action, resource) when {context.facts.isEmpty()};")]
    )
    cedar = Policy(default=POLICY, cedar=engine, flows=Flows(asked=True))
    held, _, unknown = replay(known, cedar)
    assert held.decision == BLOCK_WORD
    assert unknown.uncertain == "Cedar looks at facts, which are not on record"


def test_a_call_that_was_stopped_has_no_outcome() -> None:
    stopped = {"decision": BLOCK_WORD, "gate": "stop"}
    assert replay(rows(stopped, {"gate": "facts", "decision": BLOCK_WORD}), policy()) == []
