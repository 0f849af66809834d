"""Comparison of two policies: which calls the new one forwards, holds or denies differently.

Policies are compared by their effect. Both judge every tool that was observed or that either
policy names, with and without arguments that meet or break the conditions; patterns are probed
with names that match them. ``analysis.rule_changes`` and ``analysis.exposure_changes`` find the
changes that no probe shows.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final, NamedTuple

from thoughtgate.analysis.exposure_changes import compare_exposures
from thoughtgate.analysis.replay import STRICTNESS, outcome_word
from thoughtgate.analysis.rule_changes import (
    ACTION_SPANS,
    CHANGES,
    LOOSENS,
    TIGHTENS,
    UNTOLD,
    PolicyChange,
    RuleChange,
    compare_rules,
)
from thoughtgate.policy.call import DEVELOPMENT, TOOL, Call, Condition, Verdict
from thoughtgate.policy.evaluation import evaluate
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.visibility import ANY_SERVER

SOMEBODY: Final = "~another-server"
"""A placeholder for all servers that neither policy names."""
SOMETHING: Final = "~another_tool"
"""A placeholder for all tools that neither policy names."""

MAX_PROBES: Final = 20_000
"""Maximum number of probed calls; further names are not compared."""


_UNPROBED: Final = frozenset(
    {None, "matches", "ne", "not_in", "length_gt", "length_lt", "contains", "any", "all"}
)
"""Operators for which no matching argument is generated; None stands for annotations."""


class CallTarget(NamedTuple):
    """Something that can be called."""

    server: str
    kind: str
    name: str


def compare(
    old: Policy, new: Policy, observed: Iterable[CallTarget] = (), now: float = 0.0
) -> list[PolicyChange]:
    """Return the changes from one policy to the other, loosening ones first."""
    changes = [*_whole(old, new), *_limits(old, new), *_layers(old, new, now)]
    shown: dict[str, set[CallTarget]] = {}
    tokens = _tokens(old, new)
    for target, arguments in _probes(old, new, observed):
        for claims in tokens:
            call = Call(target.server, target.kind, target.name, arguments, claims=claims)
            change = _judged(call, evaluate(call, old, now), evaluate(call, new, now))
            if change is not None:
                changes.append(change)
                shown.setdefault(change.effect, set()).add(target)
    changes += [
        one.change
        for one in compare_rules(old, new)
        if not _is_shown(one, shown.get(one.change.effect, set()))
    ]
    loosened = {target.server for target in shown.get(LOOSENS, ())}
    changes += [
        found.change
        for found in compare_exposures(old.visibility, new.visibility)
        # The probes already show that such a server is loosened.
        if (SOMEBODY if found.server == ANY_SERVER else found.server) not in loosened
    ]
    order = (LOOSENS, UNTOLD, CHANGES, TIGHTENS)
    return sorted(dict.fromkeys(changes), key=lambda one: order.index(one.effect))


def _judged(call: Call, before: Verdict, after: Verdict) -> PolicyChange | None:
    """Return how the verdict on a call changes; None if it does not."""
    words = outcome_word(before), outcome_word(after)
    asked = before.workflow, after.workflow
    if words[0] == words[1] and asked[0] == asked[1]:
        return None
    step = STRICTNESS[words[1]] - STRICTNESS[words[0]]
    # Nobody knows which workflow's reviewers approve more readily.
    effect = TIGHTENS if step > 0 else LOOSENS if step < 0 else UNTOLD
    told = [f"{w} ({a})" if a else w for w, a in zip(words, asked, strict=True)]
    subject = _subject(CallTarget(*call[:3]), call.arguments)
    return PolicyChange(effect, subject + (" with every scope" if call.claims else ""), *told)


def _tokens(old: Policy, new: Policy) -> list[dict[str, Any] | None]:
    """Return the claims to probe with: none, and every scope that either policy requires."""
    scopes = old.scopes() | new.scopes()
    return [None, {"scope": " ".join(sorted(scopes))}] if scopes else [None]


def _is_shown(found: RuleChange, targets: set[CallTarget]) -> bool:
    """Tell whether the probes already show the effect of a rule's change."""
    part = found.part
    operators = {None if one is None else one.operator for one in part.conditions.values()}
    return operators.isdisjoint(_UNPROBED) and any(part.names(*target) for target in targets)


def _whole(old: Policy, new: Policy) -> Iterable[PolicyChange]:
    if old.profile != new.profile:
        effect = LOOSENS if new.profile == DEVELOPMENT else TIGHTENS
        yield PolicyChange(effect, "profile", old.profile, new.profile)
    defaults = old.default, new.default
    if old.default != new.default:
        yield PolicyChange(_default_effect(old.default, new.default), "default", *defaults)
    for name in sorted(old.workflows ^ new.workflows):
        there = name in old.workflows
        yield PolicyChange(
            CHANGES, f"approval.{name}", "there" if there else "-", "-" if there else "there"
        )


def _default_effect(old: str, new: str) -> str:
    (least_before, most_before), (least_after, most_after) = ACTION_SPANS[old], ACTION_SPANS[new]
    if least_after >= most_before:
        return TIGHTENS
    return LOOSENS if most_after <= least_before else UNTOLD


def _layers(old: Policy, new: Policy, now: float) -> Iterable[PolicyChange]:
    """Yield the changes of the layered policies, which can only make verdicts stricter."""
    before = {layer.name: layer for layer in old.layers}
    after = {layer.name: layer for layer in new.layers}
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            effect, words = (TIGHTENS, ("-", "there")) if one is None else (LOOSENS, ("there", "-"))
            yield PolicyChange(effect, f"policy of the {name}", *words)
            continue
        if (one.workflows, one.prevails) != (other.workflows, other.prevails):
            yield PolicyChange(UNTOLD, f"approvals of the {name}", "there", "other workflows")
        for found in compare(one.policy, other.policy, now=now):
            yield found._replace(subject=f"{name}: {found.subject}")


def _limits(old: Policy, new: Policy) -> Iterable[PolicyChange]:
    before = {limit.id: limit for limit in old.limits}
    after = {limit.id: limit for limit in new.limits}
    for name in sorted(after.keys() - before.keys()):
        yield PolicyChange(TIGHTENS, f"limit {name}", "none", _limit_text(after[name]))
    for name in sorted(before.keys() - after.keys()):
        yield PolicyChange(LOOSENS, f"limit {name}", _limit_text(before[name]), "none")
    for name in sorted(before.keys() & after.keys()):
        one, other = before[name], after[name]
        if _limit_text(one) != _limit_text(other):
            effect = _limit_effect(one, other)
            yield PolicyChange(effect, f"limit {name}", _limit_text(one), _limit_text(other))


def _limit_text(limit: Limit) -> str:
    parts = []
    if limit.rate is not None:
        parts.append(f"{limit.rate.calls} in {limit.rate.period_s:g} s")
    if limit.budget is not None:
        per = f" in {limit.window_s:g} s" if limit.window_s else ""
        parts.append(f"budget {limit.budget}{per}{', exact' if limit.exact else ''}")
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
    """Describe which calls a limit counts, and its scope."""
    chosen = limit.selector
    names = [glob.pattern for glob in (*chosen.servers, *chosen.names)]
    names += [*sorted(chosen.kinds), *sorted(chosen.words)]
    return (f" on {' '.join(names)}" if names else "") + (f" per {limit.scope}" * bool(limit.scope))


def _limit_effect(old: Limit, new: Limit) -> str:
    """Return whether a limit allows more or less, if all its changes point the same way."""
    steps = set()
    if old.rate and new.rate:
        steps.add(_sign(new.rate.calls / new.rate.period_s - old.rate.calls / old.rate.period_s))
    if old.budget is not None and new.budget is not None:
        steps.add(_sign(new.budget - old.budget))
        # A budget without a window is never renewed.
        steps.add(_sign((old.window_s or inf) - (new.window_s or inf)))
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
    """Count the ways in which a limit can refuse, except duplicates, whose period is compared."""
    return sum(part is not None for part in (limit.rate, limit.budget, limit.breaker))


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _probes(
    old: Policy, new: Policy, observed: Iterable[CallTarget]
) -> list[tuple[CallTarget, dict[str, Any]]]:
    targets = _targets(old, new, observed)
    probes: list[tuple[CallTarget, dict[str, Any]]] = []
    for target in sorted(targets):
        probes.append((target, {}))
        rules = (rule for policy in (old, new) for rule in policy.rules.candidates(*target))
        probes += [(target, _fulfilling(rule.conditions)) for rule in rules if rule.conditions]
        if len(probes) > MAX_PROBES:
            break
    return probes


def _targets(old: Policy, new: Policy, observed: Iterable[CallTarget]) -> set[CallTarget]:
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
    found |= {CallTarget(server, kind, name) for server in servers for kind, name in names}
    return found


def _matching(glob: Glob) -> str:
    """Return a name that matches a pattern, or the pattern itself if none is easily found."""
    for star, mark in (("x", "x"), ("", "x"), ("example", "e")):
        name = glob.pattern.replace("*", star).replace("?", mark)
        if glob.matches(name):
            return name
    return glob.pattern


def _fulfilling(conditions: tuple[Condition, ...]) -> dict[str, Any]:
    """Return arguments that meet the conditions, as far as they are easy to generate."""
    arguments: dict[str, Any] = {}
    for condition in conditions:
        at = arguments
        for key in condition.path[:-1]:
            at = at.setdefault(key, {})
            if not isinstance(at, dict):
                return arguments
        make = _VALUES.get(condition.operator)
        made = make(condition.operand) if make is not None else "x"
        if made is not None:
            at[condition.path[-1]] = made
    return arguments


_VALUES: Final[dict[str, Callable[[Any], Any]]] = {
    "gt": lambda operand: operand + 1,
    "lt": lambda operand: operand - 1,
    **dict.fromkeys(("eq", "ge", "le", "starts_with", "ends_with"), lambda operand: operand),
    "in": lambda operand: operand[0],
    "exists": lambda operand: "x" if operand else None,
    "under": lambda operand: f"{operand[0]}/x",
    "glob": lambda operand: _matching(operand[0]),
}
"""For each operator, a function that generates a value that the operator accepts."""


def _subject(target: CallTarget, arguments: dict[str, Any]) -> str:
    server = "any other server" if target.server == SOMEBODY else target.server
    name = "any other tool" if target.name == SOMETHING else f"{target.kind} {target.name}"
    with_ = f" with {arguments}" if arguments else ""
    return f"{server}: {name}{with_}"
