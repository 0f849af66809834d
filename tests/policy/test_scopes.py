"""Scopes of tokens: what is granted, what is required, and how refusals are combined."""

from typing import Any

import pytest

from thoughtgate.policy.call import Call, Verdict
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.cedar_text import CedarSource
from thoughtgate.policy.evaluation import evaluate, explain
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.scopes import INSUFFICIENT_SCOPE, scopes_of, stricter, strictest
from thoughtgate.policy.selectors import Selector


def rule(*scopes: str, action: str = "forward", name: str = "pay", ident: str = "r") -> Rule:
    return Rule(ident, action, Selector(names=compile_globs([name])), scopes=scopes)


def policy(*rules: Rule, **fields: Any) -> Policy:
    return Policy(rules=RuleSet(rules), **fields)


def call(scope: str | None = None, name: str = "pay", kind: str = "tool") -> Call:
    claims = {"scope": scope} if scope is not None else None
    return Call("bank", kind, name, {}, claims=claims)


@pytest.mark.parametrize(
    ("claims", "found"),
    [
        (None, set()),
        ({}, set()),
        ({"scope": "a b"}, {"a", "b"}),
        ({"scope": "  a  "}, {"a"}),
        ({"scp": ["a", "b"]}, {"a", "b"}),
        ({"scp": ["a", 5, None]}, {"a"}),
        ({"scope": "a", "scp": "b"}, {"a", "b"}),
        ({"scope": 5, "scp": {"a": 1}}, set()),
        ({"scope": "a\tb"}, {"a\tb"}),
    ],
)
def test_scopes_are_read_from_the_claims_that_issuers_use(
    claims: dict[str, Any] | None, found: set[str]
) -> None:
    assert scopes_of(claims) == found


def test_a_call_needs_the_scopes_of_the_rule_that_it_matches() -> None:
    judged_by = policy(rule("read", "write"), rule(name="*"))
    refused = evaluate(call("read other"), judged_by, 0.0)
    assert refused[:3] == ("deny", "rules", INSUFFICIENT_SCOPE)
    assert (refused.rule, refused.scopes, refused.missing_scopes) == ("r", "read write", "write")
    assert "write" in refused.reason
    assert evaluate(call("write read"), judged_by, 0.0).action == "forward"
    assert evaluate(call(), judged_by, 0.0).missing_scopes == "read write"
    assert evaluate(call(name="look"), judged_by, 0.0).action == "forward"


@pytest.mark.parametrize("action", ["approve", "policy"])
def test_scopes_are_checked_before_a_person_or_cedar_is_asked(action: str) -> None:
    cedar = CedarEngine([CedarSource("p.cedar", "permit(principal, action, resource);")])
    judged_by = policy(rule("write", action=action), cedar=cedar)
    assert evaluate(call("read"), judged_by, 0.0).kind == INSUFFICIENT_SCOPE
    assert evaluate(call("write"), judged_by, 0.0).action == action.replace("policy", "forward")


def test_cedar_sees_the_scopes_of_the_token() -> None:
    text = 'permit(principal, action, resource) when { context.scopes.contains("write") };'
    cedar = CedarEngine([CedarSource("p.cedar", text)])
    judged_by = policy(rule(action="policy"), cedar=cedar)
    assert evaluate(call("read write"), judged_by, 0.0).action == "forward"
    assert evaluate(call("read"), judged_by, 0.0).action == "deny"
    assert evaluate(call(), judged_by, 0.0).action == "deny"


def test_a_refusal_names_the_scopes_of_every_layer() -> None:
    organisation = Layer("organisation", policy(rule("audit", "read"), rule(name="*")))
    judged_by = policy(rule("read", "write"), layers=(organisation,))
    refused = evaluate(call("read"), judged_by, 0.0)
    assert (refused.scopes, refused.missing_scopes) == ("read write audit", "write audit")
    assert evaluate(call("read write"), judged_by, 0.0).missing_scopes == "audit"
    assert evaluate(call("read write audit"), judged_by, 0.0).action == "forward"
    assert judged_by.scopes() == {"read", "write", "audit"}


def test_a_denial_that_no_scope_lifts_comes_first() -> None:
    closed = Layer("organisation", policy(rule(action="deny")))
    judged_by = policy(rule("write"), layers=(closed,))
    assert evaluate(call(), judged_by, 0.0).kind == "governance_denied"
    plain = Verdict("deny", "rules", "governance_denied")
    lacking = Verdict("deny", "rules", INSUFFICIENT_SCOPE, scopes="a", missing_scopes="a")
    assert stricter(plain, lacking) is plain
    assert stricter(lacking, plain) is plain
    assert stricter(lacking, Verdict("approve", "rules")) is lacking
    assert strictest([Verdict("forward", "rules"), lacking]) is lacking
    assert strictest([plain]) is plain


def test_every_reading_of_a_uri_needs_its_scopes() -> None:
    judged_by = policy(
        Rule("up", "forward", Selector(names=compile_globs(["file:///etc/*"])), scopes=("root",)),
        Rule("any", "forward", Selector(names=compile_globs(["*"])), scopes=("read",)),
    )
    refused = evaluate(call("", "file:///home/../etc/passwd", "resource"), judged_by, 0.0)
    assert set(refused.missing_scopes.split()) == {"read", "root"}


def test_the_explanation_names_the_scopes_of_a_rule() -> None:
    steps = explain(call("read"), policy(rule("write")), 0.0)
    assert "r matches and needs the scopes write" in steps[-1].looked_at
