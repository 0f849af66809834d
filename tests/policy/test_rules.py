"""Rules: the first match decides, found by an index that changes nothing but the time."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.policy import rules as rules_module
from thoughtgate.policy.call import Call, Verdict
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector


def rule(
    ident: str,
    action: str = "deny",
    *,
    names: tuple[str, ...] = (),
    servers: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    when: dict[str, Any] | None = None,
    annotations: dict[str, Any] | None = None,
) -> Rule:
    return Rule(
        ident,
        action,
        Selector(frozenset(kinds), compile_globs(names), compile_globs(servers)),
        parse_conditions(when or {}),
        parse_conditions(annotations or {}),
    )


def call(name: str = "x", server: str = "s", kind: str = "tool", **arguments: Any) -> Call:
    return Call(server, kind, name, arguments)


def found(rules: RuleSet, asked: Call) -> str | None:
    match = rules.matches(asked)[0]
    return match.id if match else None


@pytest.mark.requirement("POL-002")
def test_the_first_match_wins() -> None:
    rules = RuleSet([rule("a", "deny", names=("x",)), rule("b", "forward", names=("*",))])
    assert found(rules, call("x")) == "a"
    assert found(rules, call("y")) == "b"


def test_no_match_is_none() -> None:
    assert RuleSet([rule("a", names=("x",))]).matches(call("y")) == [None]
    assert RuleSet().matches(call()) == [None]


@pytest.mark.requirement("POL-009")
def test_server_and_kind_narrow_a_rule() -> None:
    rules = RuleSet(
        [
            rule("a", servers=("one", "two"), names=("x",)),
            rule("b", servers=("o*",)),
            rule("c", kinds=("resource",)),
        ]
    )
    assert found(rules, call("x", "two")) == "a"
    assert found(rules, call("y", "one")) == "b"
    assert found(rules, call("y", "two")) is None
    assert found(rules, call("y", "two", "resource")) == "c"


@pytest.mark.parametrize("amount", [250, "250", True, [250]])
def test_a_strict_rule_is_not_dodged_by_a_type(amount: Any) -> None:
    for action in ("deny", "approve", "policy"):
        rules = RuleSet([rule("a", action, when={"amount": {"gt": 100}})])
        assert found(rules, call(amount=amount)) == "a"


@pytest.mark.parametrize("amount", ["50", True, None, [50]])
def test_a_forwarding_rule_does_not_match_what_it_cannot_tell(amount: Any) -> None:
    rules = RuleSet([rule("a", "forward", when={"amount": {"lt": 100}})])
    assert found(rules, call(amount=amount)) is None
    assert found(rules, call(amount=50)) == "a"


def test_ne_on_a_missing_argument_denies_but_does_not_forward() -> None:
    for action, expected in (("deny", "a"), ("forward", None)):
        assert (
            found(RuleSet([rule("a", action, when={"mode": {"ne": "safe"}})]), call()) == expected
        )


def test_annotations_are_conditions_too() -> None:
    rules = RuleSet([rule("a", annotations={"destructiveHint": True})])
    assert found(rules, call()) is None
    assert found(rules, call()._replace(annotations={"destructiveHint": True})) == "a"
    assert found(rules, call()._replace(annotations={"destructiveHint": False})) is None


def test_names_that_share_a_long_prefix_are_told_apart() -> None:
    prefix = "a" * 60
    rules = RuleSet([rule("a", names=(f"{prefix}b*",)), rule("b", names=(f"{prefix}*",))])
    assert found(rules, call(f"{prefix}c")) == "b"


def test_remembered_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "MAX_REMEMBERED", 3)
    rules = RuleSet([rule("a", names=("t1",))])
    for number in range(10):
        assert found(rules, call(f"t{number}")) == ("a" if number == 1 else None)
        assert found(rules, call(f"t{number}")) == ("a" if number == 1 else None)
    assert len(rules._remembered) <= 3


def test_a_long_name_is_judged_but_not_remembered() -> None:
    rules = RuleSet([rule("a", names=("t*",))])
    assert found(rules, call("t" * 100_000)) == "a"
    assert not rules._remembered


PATTERNS = st.sampled_from(
    ["a", "b", "ab", "a*", "ab*", "*b", "*bc", "*[b]c", "*?", "*", "?", "[ab]", "a?", "abc*c"]
)
SPECS = st.lists(
    st.tuples(
        st.lists(PATTERNS, max_size=2),
        st.lists(st.sampled_from(["s", "t", "s*", "*"]), max_size=2),
        st.sampled_from([(), ("tool",), ("resource",)]),
        st.sampled_from([{}, {"n": {"gt": 1}}, {"n": {"ne": 1}}]),
        st.sampled_from(["forward", "deny"]),
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(
    SPECS,
    st.sampled_from(["a", "b", "ab", "abc", "abcc", "c", ""]),
    st.sampled_from(["s", "t", "st"]),
    st.sampled_from(["tool", "resource"]),
    st.sampled_from([{}, {"n": 1}, {"n": 2}, {"n": "2"}]),
)
def test_the_index_finds_what_a_plain_search_finds(
    specs: list[Any], name: str, server: str, kind: str, arguments: dict[str, Any]
) -> None:
    rules = RuleSet(
        rule(
            str(number), action, names=tuple(names), servers=tuple(servers), kinds=kinds, when=when
        )
        for number, (names, servers, kinds, when, action) in enumerate(specs)
    )
    asked = Call(server, kind, name, arguments)
    plain = next(
        (
            one
            for one in rules.rules
            if one.selector.covers(server, kind, name) and one.accepts(asked)
        ),
        None,
    )
    assert rules.matches(asked)[0] is plain


def test_a_changed_rule_words_its_verdict_anew() -> None:
    first = rule("a")
    assert (first.verdict.action, first.verdict.kind) == ("deny", "governance_denied")
    other = replace(first, action="forward", reason="fine", redact=True)
    assert other.verdict == Verdict("forward", "rules", "", "fine", "a", redact=True)
    assert first == replace(other, action="deny", reason="", redact=False)
