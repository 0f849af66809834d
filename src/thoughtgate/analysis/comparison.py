"""Comparing two policies: which calls does the new one let through, ask for, or refuse.

Policies are compared by what they do. Every tool that was observed or that either of them
names is judged by both, with and without arguments that fulfil or break their conditions;
patterns are probed with names that they match. What no probe shows, ``analysis.rule_changes``
tells from the rules themselves.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from thoughtgate.analysis.replay import STRICTNESS, outcome_word
from thoughtgate.analysis.rule_changes import (
    CHANGES,
    LOOSENS,
    TIGHTENS,
    UNTOLD,
    Change,
    RuleChange,
    compare_rules,
)
from thoughtgate.policy.call import DEVELOPMENT, TOOL, Call, Condition, Verdict
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.policy import Policy, evaluate

SOMEBODY: Final = "~another-server"
"""Stands for every server that neither policy names."""
SOMETHING: Final = "~another_tool"
"""Stands for every tool that neither policy names."""

MAX_PROBES: Final = 20_000
"""Calls judged at most; names beyond it are left out of the comparison."""


_UNPROBED: Final = frozenset(
    {None, "matches", "ne", "not_in", "length_gt", "length_lt", "contains"}
)
"""Operators for which no fulfilling argument is made up; None for what servers say of tools."""


class Target(NamedTuple):
    """Something that can be called."""

    server: str
    kind: str
    name: str


def compare(
    old: Policy, new: Policy, observed: Iterable[Target] = (), now: float = 0.0
) -> list[Change]:
    """Return what changes from one policy to the other, what loosens first."""
    changes = [*_whole(old, new), *_limits(old, new)]
    shown: dict[str, set[Target]] = {}
    for target, arguments in _probes(old, new, observed):
        call = Call(target.server, target.kind, target.name, arguments)
        change = _judged(call, evaluate(call, old, now), evaluate(call, new, now))
        if change is not None:
            changes.append(change)
            shown.setdefault(change.effect, set()).add(target)
    changes += [
        one.change
        for one in compare_rules(old, new)
        if not _is_shown(one, shown.get(one.change.effect, set()))
    ]
    order = (LOOSENS, UNTOLD, CHANGES, TIGHTENS)
    return sorted(dict.fromkeys(changes), key=lambda one: order.index(one.effect))


def _judged(call: Call, before: Verdict, after: Verdict) -> Change | None:
    """Say what becomes of a call; None when it stays as it was."""
    words = outcome_word(before), outcome_word(after)
    asked = before.workflow, after.workflow
    if words[0] == words[1] and asked[0] == asked[1]:
        return None
    step = STRICTNESS[words[1]] - STRICTNESS[words[0]]
    # Whether it is easier to get a yes from somebody else is not known.
    effect = TIGHTENS if step > 0 else LOOSENS if step < 0 else UNTOLD
    told = [f"{w} ({a})" if a else w for w, a in zip(words, asked, strict=True)]
    return Change(effect, _subject(Target(*call[:3]), call.arguments), *told)


def _is_shown(found: RuleChange, targets: set[Target]) -> bool:
    """Tell whether probes have shown already what a change of a rule does."""
    part = found.part
    operators = {None if one is None else one.operator for one in part.conditions.values()}
    return operators.isdisjoint(_UNPROBED) and any(part.names(*target) for target in targets)


def _whole(old: Policy, new: Policy) -> Iterable[Change]:
    if old.profile != new.profile:
        effect = LOOSENS if new.profile == DEVELOPMENT else TIGHTENS
        yield Change(effect, "profile", old.profile, new.profile)
    if old.default != new.default:
        strict = ("forward", "approve", "policy", "deny")
        looser = strict.index(new.default) < strict.index(old.default)
        yield Change(LOOSENS if looser else TIGHTENS, "default", old.default, new.default)
    for name in sorted(old.workflows ^ new.workflows):
        there = name in old.workflows
        yield Change(
            CHANGES, f"approval.{name}", "there" if there else "-", "-" if there else "there"
        )


def _limits(old: Policy, new: Policy) -> Iterable[Change]:
    before = {limit.id: limit for limit in old.limits}
    after = {limit.id: limit for limit in new.limits}
    for name in sorted(after.keys() - before.keys()):
        yield Change(TIGHTENS, f"limit {name}", "none", _limit_text(after[name]))
    for name in sorted(before.keys() - after.keys()):
        yield Change(LOOSENS, f"limit {name}", _limit_text(before[name]), "none")
    for name in sorted(before.keys() & after.keys()):
        one, other = before[name], after[name]
        if _limit_text(one) != _limit_text(other):
            effect = _limit_effect(one, other)
            yield Change(effect, f"limit {name}", _limit_text(one), _limit_text(other))


def _limit_text(limit: Limit) -> str:
    parts = []
    if limit.rate is not None:
        parts.append(f"{limit.rate.calls} in {limit.rate.period_s:g} s")
    if limit.budget is not None:
        parts.append(f"budget {limit.budget}")
    if limit.duplicate_s:
        parts.append(f"no repeat within {limit.duplicate_s:g} s")
    if limit.breaker is not None:
        breaker = limit.breaker
        parts.append(
            f"breaks after {breaker.failures} in {breaker.within_s:g} s"
            f" for {breaker.cooldown_s:g} s"
        )
    return ", ".join(parts) + _limit_place(limit)


def _limit_place(limit: Limit) -> str:
    """Say which calls a limit counts, and which of them together."""
    chosen = limit.selector
    names = [glob.pattern for glob in (*chosen.servers, *chosen.names)]
    names += [*sorted(chosen.kinds), *sorted(chosen.words)]
    return (f" on {' '.join(names)}" if names else "") + (f" per {limit.scope}" * bool(limit.scope))


def _limit_effect(old: Limit, new: Limit) -> str:
    """Say whether a limit allows more or less, where all that changes goes one way."""
    steps = set()
    if old.rate and new.rate:
        steps.add(_sign(new.rate.calls / new.rate.period_s - old.rate.calls / old.rate.period_s))
    if old.budget is not None and new.budget is not None:
        steps.add(_sign(new.budget - old.budget))
    steps.add(_sign(old.duplicate_s - new.duplicate_s))
    if old.breaker and new.breaker:
        steps.add(_sign(new.breaker.failures - old.breaker.failures))
        steps.add(_sign(old.breaker.cooldown_s - new.breaker.cooldown_s))
        steps.add(_sign(old.breaker.within_s - new.breaker.within_s))
    steps.add(_sign(_kinds_of_limit(old) - _kinds_of_limit(new)))
    steps.discard(0)
    if len(steps) != 1 or _limit_place(old) != _limit_place(new):
        return UNTOLD
    return LOOSENS if steps == {1} else TIGHTENS


def _kinds_of_limit(limit: Limit) -> int:
    """Count the ways in which a limit can refuse, but for repeats, which have a number."""
    return sum(part is not None for part in (limit.rate, limit.budget, limit.breaker))


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _probes(
    old: Policy, new: Policy, observed: Iterable[Target]
) -> list[tuple[Target, dict[str, Any]]]:
    targets = _targets(old, new, observed)
    probes: list[tuple[Target, dict[str, Any]]] = []
    for target in sorted(targets):
        probes.append((target, {}))
        rules = (rule for policy in (old, new) for rule in policy.rules.candidates(*target))
        probes += [(target, _fulfilling(rule.conditions)) for rule in rules if rule.conditions]
        if len(probes) > MAX_PROBES:
            break
    return probes


def _targets(old: Policy, new: Policy, observed: Iterable[Target]) -> set[Target]:
    found = set(observed)
    servers, names = {SOMEBODY}, {(TOOL, SOMETHING)}
    for policy in (old, new):
        servers |= {name for name in policy.visibility.servers if name != "*"}
        for exposure in policy.visibility.servers.values():
            names |= {(TOOL, name) for name in exposure.names}
            names |= {(TOOL, _matching(glob)) for glob in exposure.globs}
        for rule in policy.rules.rules:
            servers |= {_matching(glob) for glob in rule.selector.servers}
            kinds = rule.selector.kinds or {TOOL}
            names |= {(kind, _matching(glob)) for kind in kinds for glob in rule.selector.names}
            names |= {(kind, f"{word}_it") for kind in kinds for word in rule.selector.words}
    servers |= {target.server for target in found}
    found |= {Target(server, kind, name) for server in servers for kind, name in names}
    return found


def _matching(glob: Glob) -> str:
    """Return a name that a pattern matches, or the pattern when none is easily found."""
    for star, mark in (("x", "x"), ("", "x"), ("example", "e")):
        name = glob.pattern.replace("*", star).replace("?", mark)
        if glob.matches(name):
            return name
    return glob.pattern


def _fulfilling(conditions: tuple[Condition, ...]) -> dict[str, Any]:
    """Return arguments that fulfil conditions as far as that is easily done."""
    arguments: dict[str, Any] = {}
    for condition in conditions:
        at = arguments
        for key in condition.path[:-1]:
            at = at.setdefault(key, {})
            if not isinstance(at, dict):
                return arguments
        made = _value_for(condition)
        if made is not None:
            at[condition.path[-1]] = made
    return arguments


def _value_for(condition: Condition) -> Any:
    make = _VALUES.get(condition.operator)
    return make(condition.operand) if make is not None else "x"


_VALUES: Final[dict[str, Callable[[Any], Any]]] = {
    "gt": lambda operand: operand + 1,
    "lt": lambda operand: operand - 1,
    **dict.fromkeys(("eq", "ge", "le", "starts_with", "ends_with"), lambda operand: operand),
    "in": lambda operand: operand[0],
    "exists": lambda operand: "x" if operand else None,
    "under": lambda operand: f"{operand[0]}/x",
    "glob": lambda operand: _matching(operand[0]),
}
"""For each operator, how a value is made that its test accepts."""


def _subject(target: Target, arguments: dict[str, Any]) -> str:
    server = "any other server" if target.server == SOMEBODY else target.server
    name = "any other tool" if target.name == SOMETHING else f"{target.kind} {target.name}"
    with_ = f" with {arguments}" if arguments else ""
    return f"{server}: {name}{with_}"
