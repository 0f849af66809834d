"""Comparing two policies: which calls does the new one let through, ask for, or refuse.

Policies are compared by what they do. Every tool that was observed or that either of them
names is judged by both, with and without arguments that fulfil or break their conditions;
patterns are probed with names that they match.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from thoughtgate.core.replay import STRICTNESS, outcome_word
from thoughtgate.policy.call import DEVELOPMENT, TOOL, Call, Condition
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.policy import Policy, evaluate
from thoughtgate.policy.rules import Rule

LOOSENS: Final = "loosens"
TIGHTENS: Final = "tightens"
CHANGES: Final = "changes"

SOMEBODY: Final = "~another-server"
"""Stands for every server that neither policy names."""
SOMETHING: Final = "~another_tool"
"""Stands for every tool that neither policy names."""

MAX_PROBES: Final = 20_000
"""Calls judged at most; names beyond it are left out of the comparison."""


_UNPROBED: Final = frozenset({"matches", "ne", "not_in", "length_gt", "length_lt", "contains"})
"""Operators for which no fulfilling argument is made up."""


class Target(NamedTuple):
    """Something that can be called."""

    server: str
    kind: str
    name: str


class Change(NamedTuple):
    """One thing that differs."""

    effect: str
    """``loosens``, ``tightens``, or ``changes`` when it is neither."""
    subject: str
    before: str
    after: str


def compare(
    old: Policy, new: Policy, observed: Iterable[Target] = (), now: float = 0.0
) -> list[Change]:
    """Return what changes from one policy to the other, what loosens first."""
    changes = [*_whole(old, new), *_limits(old, new), *_unprobed(old, new)]
    for target, arguments in _probes(old, new, observed):
        call = Call(target.server, target.kind, target.name, arguments)
        before, after = evaluate(call, old, now), evaluate(call, new, now)
        words = outcome_word(before), outcome_word(after)
        asked = before.workflow, after.workflow
        if words[0] == words[1] and asked[0] == asked[1]:
            continue
        shown = tuple(f"{w} ({a})" if a else w for w, a in zip(words, asked, strict=True))
        step = STRICTNESS[words[1]] - STRICTNESS[words[0]]
        effect = TIGHTENS if step > 0 else LOOSENS if step < 0 else CHANGES
        changes.append(Change(effect, _subject(target, arguments), shown[0], shown[1]))
    order = (LOOSENS, CHANGES, TIGHTENS)
    return sorted(dict.fromkeys(changes), key=lambda one: order.index(one.effect))


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


def _unprobed(old: Policy, new: Policy) -> Iterable[Change]:
    """Name rules that came or went and whose conditions no made-up arguments can settle."""
    before, after = (
        {_rule_text(rule): None for rule in policy.rules.rules if _is_unprobed(rule)}
        for policy in (old, new)
    )
    for text in [*before, *after]:
        if (text in before) != (text in after):
            there = text in before
            words = ("there", "gone") if there else ("-", "there")
            yield Change(CHANGES, f"rule {text}", *words)


def _is_unprobed(rule: Rule) -> bool:
    return bool(rule.annotations) or any(one.operator in _UNPROBED for one in rule.conditions)


def _rule_text(rule: Rule) -> str:
    selector = rule.selector
    names = [*(glob.pattern for glob in selector.names), *sorted(selector.words)]
    servers = [glob.pattern for glob in selector.servers]
    conditions = [
        f"{'.'.join(one.path)} {one.operator} {getattr(one.operand, 'pattern', one.operand)}"
        for one in (*rule.conditions, *rule.annotations)
    ]
    where = f" of {' '.join(servers)}" if servers else ""
    return f"{rule.action} {' '.join(names) or '*'}{where} when {', '.join(conditions)}"


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
        parts.append(f"breaks after {breaker.failures} in {breaker.within_s:g} s")
    names = [glob.pattern for glob in (*limit.selector.servers, *limit.selector.names)]
    return ", ".join(parts) + (f" on {' '.join(names)}" if names else "")


def _limit_effect(old: Limit, new: Limit) -> str:
    """Say whether a limit allows more or less; mixed changes are neither."""
    steps = set()
    if old.rate and new.rate:
        steps.add(_sign(new.rate.calls / new.rate.period_s - old.rate.calls / old.rate.period_s))
    if old.budget is not None and new.budget is not None:
        steps.add(_sign(new.budget - old.budget))
    steps.add(_sign(old.duplicate_s - new.duplicate_s))
    if old.breaker and new.breaker:
        steps.add(_sign(new.breaker.failures - old.breaker.failures))
    steps.discard(0)
    if (
        len(steps) != 1
        or _limit_text(old).partition(" on ")[2] != _limit_text(new).partition(" on ")[2]
    ):
        return CHANGES
    return LOOSENS if steps == {1} else TIGHTENS


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
