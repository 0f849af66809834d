from typing import Any

import pytest

from thoughtgate.analysis import rule_changes
from thoughtgate.analysis.rule_changes import LOOSENS, TIGHTENS, UNTOLD, compare_rules
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, POLICY
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector

SECRET = {"content": {"contains": "sk-"}}


def rule(
    action: str,
    *names: str,
    when: dict[str, Any] | None = None,
    says: dict[str, Any] | None = None,
    server: str = "",
    words: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    **more: Any,
) -> Rule:
    selector = Selector(
        frozenset(kinds),
        compile_globs(names),
        compile_globs([server] if server else []),
        frozenset(words),
    )
    conditions, annotations = parse_conditions(when or {}), parse_conditions(says or {})
    return Rule("r", action, selector, conditions, annotations, **more)


def effects(
    old: list[Rule], new: list[Rule], default: str = FORWARD, then: str = ""
) -> list[tuple[str, str]]:
    before = Policy(rules=RuleSet(old), default=default)
    after = Policy(rules=RuleSet(new), default=then or default)
    return [(one.change.effect, one.change.after) for one in compare_rules(before, after)]


def one_effect(old: list[Rule], new: list[Rule], default: str = FORWARD) -> str:
    return ",".join(sorted({effect for effect, _ in effects(old, new, default)}))


@pytest.mark.parametrize("action", [DENY, APPROVE])
def test_a_rule_that_refuses_or_asks_loosens_when_it_goes(action: str) -> None:
    found = [rule(action, "write", when=SECRET)]
    assert effects(found, []) == [(LOOSENS, "gone")]
    assert effects([], found) == [(TIGHTENS, "there")]


def test_a_rule_that_forwards_loosens_when_it_comes_before_a_denial() -> None:
    found = [rule(FORWARD, "write", when={"path": {"matches": "^/tmp"}})]
    assert effects([], found, DENY) == [(LOOSENS, "there")]
    assert effects(found, [], DENY) == [(TIGHTENS, "gone")]
    assert effects([], found, FORWARD) == []
    assert effects([], [*found, rule(DENY)], FORWARD, FORWARD)[0] == (TIGHTENS, "there")


def test_a_rule_that_says_what_happens_anyway_changes_nothing() -> None:
    denial = rule(DENY, "write", when=SECRET)
    assert effects([denial], [], DENY) == []
    assert effects([denial, rule(DENY, "wr*")], [rule(DENY, "wr*")]) == []
    assert effects([denial], [rule(DENY, "write")]) == [(TIGHTENS, "there")]
    assert effects([rule(FORWARD, "a")], [], DENY, FORWARD) == []


NARROWED = [
    (rule(DENY, "write"), rule(DENY, "write", when=SECRET)),
    (rule(DENY, "write", when=SECRET), rule(DENY, "write", when={**SECRET, "to": "x"})),
    (rule(DENY, "write", when={"n": {"gt": 1}}), rule(DENY, "write", when={"n": {"gt": 2}})),
    (rule(DENY, "write", when={"n": {"le": 9}}), rule(DENY, "write", when={"n": {"le": 8}})),
    (
        rule(DENY, "write", when={"n": {"gt": 1}}),
        rule(DENY, "write", when={"n": {"gt": 1, "lt": 9}}),
    ),
    (rule(DENY, "wr*"), rule(DENY, "wri*")),
    (rule(DENY, "wr*"), rule(DENY, "wr[a-z]*")),
    (rule(DENY, "a", "b"), rule(DENY, "a")),
    (rule(DENY), rule(DENY, kinds=("tool",))),
    (rule(DENY), rule(DENY, server="box")),
    (rule(DENY, words=("wipe", "drop")), rule(DENY, words=("wipe",))),
    (rule(DENY, words=("wipe",)), rule(DENY, "wipe_all")),
    (rule(DENY), rule(DENY, says={"destructiveHint": True})),
]


@pytest.mark.parametrize(("wide", "narrow"), NARROWED)
def test_a_denial_that_is_narrowed_loosens(wide: Rule, narrow: Rule) -> None:
    assert one_effect([wide], [narrow]) == LOOSENS
    assert one_effect([narrow], [wide]) == TIGHTENS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SECRET, {"content": {"contains": "pk-"}}),
        ({"cmd": {"matches": "^rm"}}, {"cmd": {"matches": "^r"}}),
        ({"n": 1}, {"n": "1"}),
        ({"a.b": {"gt": 1}}, {"a\\.b": {"gt": 1}}),
        ({"path": {"glob": "/etc/*"}}, {"path": {"glob": "/usr/*"}}),
    ],
)
@pytest.mark.parametrize(("action", "default"), [(DENY, FORWARD), (FORWARD, DENY)])
def test_a_changed_condition_cannot_be_told(
    old: dict[str, Any], new: dict[str, Any], action: str, default: str
) -> None:
    ((effect, after),) = effects(
        [rule(action, "run", when=old)], [rule(action, "run", when=new)], default
    )
    assert effect == UNTOLD
    assert after.startswith(f"{action} run when ")


def test_another_action_for_the_same_calls_is_told() -> None:
    denial, question = rule(DENY, "a", when=SECRET), rule(APPROVE, "a", when=SECRET)
    assert one_effect([denial], [question]) == LOOSENS
    assert one_effect([question], [denial]) == TIGHTENS
    # What cannot be told of an argument is refused by the one and not forwarded by the other.
    assert one_effect([denial], [rule(FORWARD, "a", when=SECRET)]) == LOOSENS


def test_who_is_asked_and_what_is_masked_cannot_be_weighed() -> None:
    ops = rule(APPROVE, "a", when=SECRET, workflow="ops")
    assert one_effect([ops], [rule(APPROVE, "a", when=SECRET)]) == UNTOLD
    assert one_effect([ops], [rule(APPROVE, "a", when={"x": 1})], DENY) == f"{UNTOLD},{LOOSENS}"
    masked = rule(FORWARD, "a", redact=True)
    assert one_effect([masked], [rule(FORWARD, "a")]) == UNTOLD


def test_cedar_may_say_anything() -> None:
    assert one_effect([rule(DENY, "a")], [rule(POLICY, "a")]) == LOOSENS
    assert one_effect([rule(POLICY, "a")], [rule(DENY, "a")]) == TIGHTENS
    assert one_effect([rule(APPROVE, "a")], [rule(POLICY, "a")]) == UNTOLD


def test_a_rule_that_is_written_otherwise_changes_nothing() -> None:
    both = [rule(DENY, "a", "b", when={"x": {"ne": 1}, "y": {"ne": 2}})]
    each = [rule(DENY, name, when={"y": {"ne": 2}, "x": {"ne": 1}}) for name in ("b", "a")]
    assert effects(both, each) == []


def test_the_order_counts_where_rules_may_meet() -> None:
    denial, leave = rule(DENY, "write", when=SECRET), rule(FORWARD, "wr*")
    assert effects([denial, leave], [leave, denial])[0][0] == LOOSENS
    assert effects([leave, denial], [denial, leave])[0][0] == TIGHTENS
    for apart in (
        rule(FORWARD, "read"),
        rule(FORWARD, "re*"),
        rule(FORWARD, words=("read",)),
        rule(DENY, "wr*"),
    ):
        assert effects([denial, apart], [apart, denial]) == []
    many, others = rule(DENY, "a*"), rule(FORWARD, "b*")
    assert effects([many, others], [others, many]) == []


def test_too_many_rules_to_compare_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_changes, "MAX_PAIRS", 3)
    many = [rule(DENY, name) for name in ("a", "b")]

    assert effects(many, many) == []
    assert effects(many, [*many, rule(DENY, "c")]) == [(UNTOLD, "3 parts")]


def test_scopes_tighten_when_they_come_and_loosen_when_they_go() -> None:
    free, bound = rule(FORWARD, "pay"), rule(FORWARD, "pay", scopes=("write",))
    assert one_effect([free], [bound], DENY) == TIGHTENS
    assert one_effect([bound], [free], DENY) == LOOSENS
    other = rule(FORWARD, "pay", scopes=("read",))
    assert one_effect([bound], [other], DENY) == UNTOLD
    assert effects([bound], [rule(FORWARD, "pay", scopes=("write",))], DENY) == []
    assert one_effect([bound], [rule(DENY, "pay")], DENY) == TIGHTENS
