from typing import Any

import pytest

from thoughtgate.analysis import comparison
from thoughtgate.analysis.comparison import CallTarget, compare
from thoughtgate.analysis.rule_changes import CHANGES, LOOSENS, TIGHTENS, UNTOLD, PolicyChange
from thoughtgate.policy.call import DENY, DEVELOPMENT, FORWARD
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.layers import with_layers
from thoughtgate.policy.limits import Breaker, Limit, Rate
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import Exposure, Visibility


def rule(action: str, *names: str, server: str = "", when: dict[str, Any] | None = None) -> Rule:
    servers = compile_globs([server]) if server else ()
    selector = Selector(names=compile_globs(names), servers=servers)
    return Rule(f"{action}-{names}", action, selector, parse_conditions(when or {}))


def rules(*found: Rule, **changes: Any) -> Policy:
    return Policy(rules=RuleSet(found), **changes)


def effects(changes: list[PolicyChange], subject: str) -> set[str]:
    return {change.effect for change in changes if subject in change.subject}


def test_the_same_policy_changes_nothing() -> None:
    policy = rules(rule("deny", "wipe"), rule("approve", "delete_*", when={"force": True}))
    assert compare(policy, policy) == []


def test_a_rule_that_is_gone_loosens_what_it_named() -> None:
    changes = compare(rules(rule("deny", "wipe"), default=FORWARD), rules(default=FORWARD))
    assert changes == [PolicyChange(LOOSENS, "any other server: tool wipe", "BLOCK", "ALLOW")]


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ("approve", "policy", UNTOLD),
        ("policy", "approve", UNTOLD),
        ("policy", DENY, TIGHTENS),
        (FORWARD, "policy", TIGHTENS),
        (DENY, "policy", LOOSENS),
        ("policy", FORWARD, LOOSENS),
        ("approve", DENY, TIGHTENS),
    ],
)
def test_cedar_as_the_default_may_decide_anything(old: str, new: str, effect: str) -> None:
    changes = compare(Policy(default=old), Policy(default=new))
    assert [one.effect for one in changes if one.subject == "default"] == [effect]


def test_an_exposure_that_no_probe_tells_apart_is_compared() -> None:
    old = Policy(visibility=Visibility({"s": Exposure.of("block", ["a*"])}), default=FORWARD)
    new = Policy(visibility=Visibility({"s": Exposure.of("block", ["a*x"])}), default=FORWARD)
    assert effects(compare(old, new), "servers.s.expose") == {UNTOLD}


def test_the_layers_of_a_policy_are_compared_as_well() -> None:
    strict, loose = Policy(default=DENY), Policy(default=FORWARD)
    with_strict = with_layers(loose, Layer("project", strict))
    with_loose = with_layers(loose, Layer("project", loose))
    asking = with_layers(loose, Layer("project", strict, {"ops": "ops"}))

    assert effects(compare(with_strict, loose), "policy of the project") == {LOOSENS}
    assert effects(compare(loose, with_strict), "policy of the project") == {TIGHTENS}
    assert LOOSENS in effects(compare(with_strict, with_loose), "project: default")
    assert effects(compare(with_strict, asking), "approvals of the project") == {UNTOLD}


def test_a_pattern_is_probed_with_a_name_it_matches() -> None:
    changes = compare(rules(default=FORWARD), rules(rule("approve", "delete_*"), default=FORWARD))
    assert effects(changes, "tool delete_x") == {TIGHTENS}


def test_a_condition_is_probed_with_arguments_that_fulfil_it() -> None:
    when = {
        "amount": {"gt": 100},
        "to.country": {"in": ["DE"]},
        "note": {"exists": True},
        "path": {"glob": "/etc/*"},
        "level": {"le": 3},
        "kind": "x",
        "low": {"lt": 3},
    }
    new = rules(rule("deny", "transfer", when=when), default=FORWARD)
    changes = compare(rules(default=FORWARD), new)
    assert any("'amount': 101" in change.subject for change in changes)


def test_conditions_that_contradict_one_another_do_no_harm() -> None:
    when = {"a": {"exists": False}, "b": "text", "b.c": 1}
    changes = compare(rules(), rules(rule("forward", "x", when=when)))
    assert all(change.effect == LOOSENS for change in changes)


def test_what_was_observed_is_compared_too() -> None:
    old = Policy(default=FORWARD)
    new = Policy(
        default=FORWARD, visibility=Visibility({"files": Exposure.of("block", ["write_?"])})
    )
    target = CallTarget("files", "tool", "write_b")
    changes = compare(old, new, [target])
    assert PolicyChange(TIGHTENS, "files: tool write_b", "ALLOW", "BLOCK") in changes


def test_default_and_profile_are_named() -> None:
    changes = compare(Policy(), Policy(default=FORWARD, profile=DEVELOPMENT))
    assert PolicyChange(LOOSENS, "profile", "production", "development") in changes
    assert PolicyChange(LOOSENS, "default", DENY, FORWARD) in changes
    assert effects(changes, "any other tool") == {LOOSENS}
    back = compare(Policy(default=FORWARD, profile=DEVELOPMENT), Policy())
    assert {change.effect for change in back} == {TIGHTENS}


def test_a_server_that_is_named_is_probed() -> None:
    old = rules(rule("deny", "wipe", server="prod"), default=FORWARD)
    new = rules(rule("forward", "wipe", server="prod"), default=FORWARD)
    assert compare(old, new) == [PolicyChange(LOOSENS, "prod: tool wipe", "BLOCK", "ALLOW")]


def test_whether_another_workflow_is_stricter_cannot_be_told() -> None:
    flows = frozenset({"default", "ops"})
    old = rules(Rule("r", "approve", workflow="ops"), workflows=flows)
    new = rules(Rule("r", "approve", workflow="default"), workflows=flows)
    (change,) = compare(old, new)
    assert (change.effect, change.before, change.after) == (UNTOLD, "HOLD (ops)", "HOLD (default)")


def test_workflows_that_come_and_go_are_named() -> None:
    changes = compare(Policy(), Policy(workflows=frozenset({"default", "ops"})))
    assert changes == [PolicyChange(CHANGES, "approval.ops", "-", "there")]


def limited(**kind: Any) -> Policy:
    return Policy(limits=(Limit("one", Selector(names=compile_globs(["search"])), **kind),))


def test_limits_loosen_and_tighten() -> None:
    assert compare(limited(budget=5), Policy())[0].effect == LOOSENS
    assert compare(Policy(), limited(budget=5))[0].effect == TIGHTENS
    assert compare(limited(budget=5), limited(budget=9))[0].effect == LOOSENS
    windows = [limited(budget=5), limited(budget=5, window_s=60.0), limited(budget=5, window_s=9.0)]
    assert compare(windows[0], windows[1])[0].effect == LOOSENS
    assert compare(windows[1], windows[2])[0].effect == LOOSENS
    assert compare(windows[2], windows[0])[0].effect == TIGHTENS
    assert compare(limited(rate=Rate(30, 60)), limited(rate=Rate(10, 60)))[0].effect == TIGHTENS
    assert compare(limited(duplicate_s=5.0), limited(duplicate_s=9.0))[0].effect == TIGHTENS
    slack, tight = Breaker(9, 60, 30), Breaker(3, 60, 30)
    assert compare(limited(breaker=slack), limited(breaker=tight))[0].effect == TIGHTENS
    mixed = compare(limited(budget=5, rate=Rate(9, 1)), limited(budget=9, rate=Rate(3, 1)))
    assert mixed[0].effect == UNTOLD
    assert compare(limited(budget=5), limited(budget=9, scope="session"))[0].effect == UNTOLD
    assert compare(limited(budget=5), limited(budget=5, scope="session"))[0].effect == UNTOLD
    both = limited(budget=5, rate=Rate(9, 1))
    assert compare(both, limited(budget=5))[0].effect == LOOSENS
    brief = Breaker(9, 60, 5)
    assert compare(limited(breaker=slack), limited(breaker=brief))[0].effect == LOOSENS
    assert compare(limited(budget=5), limited(budget=5)) == []


def test_a_pattern_that_no_simple_name_matches_is_told_by_its_rule() -> None:
    changes = compare(rules(), rules(rule("forward", "[ab]*")))
    assert changes == [PolicyChange(LOOSENS, "rule forward [ab]*", "-", "there")]


def test_rules_whose_conditions_cannot_be_probed_are_named() -> None:
    pattern = rule("deny", "run", server="box", when={"command": {"matches": "rm"}})
    hints = Rule("hints", "deny", annotations=parse_conditions({"destructiveHint": True}))
    old, new = rules(pattern, default=FORWARD), rules(hints, default=FORWARD)
    named = [change for change in compare(old, new) if change.subject.startswith("rule ")]
    assert [(change.effect, change.before, change.after) for change in named] == [
        (LOOSENS, "there", "gone"),
        (TIGHTENS, "-", "there"),
    ]
    assert named[0].subject == "rule deny run of box when command matches 'rm'"
    assert compare(old, old) == []


def test_so_many_names_are_probed_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MAX_PROBES", 5)
    observed = [CallTarget("s", "tool", f"t{number}") for number in range(50)]
    changes = compare(Policy(), Policy(default=FORWARD), observed)
    assert len(changes) == 1 + 6


def test_a_token_with_every_scope_is_probed_too() -> None:
    def policy(action: str) -> Policy:
        pays = Selector(names=compile_globs(["pay"]))
        return Policy(rules=RuleSet([Rule("r", action, pays, scopes=("write",))]))

    found = compare(policy("approve"), policy("forward"))
    assert (LOOSENS, "any other server: tool pay with every scope") in [one[:2] for one in found]
