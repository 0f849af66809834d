"""The effect of changed rules on the calls that they select, without generating any call.

A rule with several names, servers, kinds or words is split into one part for each. The decision
of a removed part is compared with everything that may decide instead, and the decision of a new
part with everything that may have decided before. Nothing is guessed: a change that may go
either way is reported as ``cannot_be_told``.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Final, NamedTuple

from thoughtgate.policy.call import APPROVE, DENY, FORWARD, POLICY, Condition
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.policy import DEFAULT_WORKFLOW, Policy
from thoughtgate.policy.rules import Rule
from thoughtgate.policy.words import split_words

LOOSENS: Final = "loosens"
TIGHTENS: Final = "tightens"
CHANGES: Final = "changes"
UNTOLD: Final = "cannot_be_told"
"""Some calls may be judged less strictly, but this cannot be determined."""

ACTION_SPANS: Final = {FORWARD: (0, 0), APPROVE: (1, 1), DENY: (2, 2), POLICY: (0, 2)}
"""The minimum and maximum strictness of an action; Cedar may decide anything."""

_LOWER_BOUNDS: Final = frozenset({"gt", "ge", "length_gt"})
_UPPER_BOUNDS: Final = frozenset({"lt", "le", "length_lt"})


MAX_PAIRS: Final = 4_000_000
"""Maximum number of pairs of rules to compare, which takes about a second; a gate compares rules
while calls wait."""


class PolicyChange(NamedTuple):
    """One difference between two policies."""

    effect: str
    """``loosens``, ``tightens``, ``cannot_be_told``, or ``changes`` if it is neither."""
    subject: str
    before: Any
    """The old value in JSON form, or words if something was added, removed or moved."""
    after: Any


class RuleDecision(NamedTuple):
    """The decision of a rule or of the default."""

    action: str
    workflow: str = ""
    redact: bool = False
    scopes: frozenset[str] = frozenset()

    @property
    def span(self) -> tuple[int, int]:
        """The minimum and maximum strictness; a call without the scopes is denied."""
        low, high = ACTION_SPANS[self.action]
        return (low, ACTION_SPANS[DENY][1]) if self.scopes else (low, high)

    def may_be_looser(self, other: "RuleDecision") -> bool:
        """Tell whether this may allow more than another decision with the same action."""
        return self[:3] != other[:3] or not self.scopes >= other.scopes


class RulePart(NamedTuple):
    """A part of a rule, for one kind, server, name and word; None stands for any."""

    decision: RuleDecision
    kind: str | None
    server: Glob | None
    name: Glob | None
    word: str | None
    conditions: dict[str, Condition | None]
    """The conditions by their text; None for a condition on annotations."""

    @property
    def text(self) -> str:
        """A readable description; equal parts have equal descriptions."""
        action, workflow, redact, scopes = self.decision
        asked = f" ({workflow})" if workflow and workflow != DEFAULT_WORKFLOW else ""
        when = f" when {', '.join(self.conditions)}" if self.conditions else ""
        needed = f" with scope {' '.join(sorted(scopes))}" if scopes else ""
        masked = ", redacted" if redact else ""
        return f"{action}{asked} {self.place}{when}{needed}{masked}"

    @property
    def place(self) -> str:
        """The selected tools, without the conditions."""
        name = self.name.pattern if self.name else "*"
        kind = f"{self.kind} " if self.kind else ""
        word = f" with the word {self.word}" if self.word else ""
        server = f" of {self.server.pattern}" if self.server else ""
        return f"{kind}{name}{word}{server}"

    def names(self, server: str, kind: str, name: str) -> bool:
        """Tell whether this tool, resource or prompt is selected."""
        return (
            self.kind in (None, kind)
            and (self.server is None or self.server.matches(server))
            and (self.name is None or self.name.matches(name))
            and (self.word is None or self.word in split_words(name))
        )


class RuleChange(NamedTuple):
    """The effect of the change of one part."""

    change: PolicyChange
    part: RulePart


def compare_rules(old: Policy, new: Policy) -> Iterator[RuleChange]:
    """Yield the parts of rules that were added, removed, changed or moved with an effect."""
    before, after = _parts(old), _parts(new)
    if len(before) * len(after) > MAX_PAIRS and list(before) != list(after):
        words = f"{len(before)} parts", f"{len(after)} parts"
        every = RulePart(RuleDecision(POLICY), None, None, None, None, {"too many": None})
        yield RuleChange(PolicyChange(UNTOLD, "rules, too many to compare", *words), every)
        return
    gone = [
        (_effect({part.decision}, _instead_of(part, after.values(), new.default)), part)
        for text, part in before.items()
        if text not in after
    ]
    come = [
        (_effect(_instead_of(part, before.values(), old.default), {part.decision}), part)
        for text, part in after.items()
        if text not in before
    ]
    rewritten = _rewritten(gone, come)
    for one, other in rewritten:
        yield RuleChange(PolicyChange(UNTOLD, f"rule {one.text}", "there", other.text), one)
    told = {part.text for pair in rewritten for part in pair}
    for changed, words in ((gone, ("there", "gone")), (come, ("-", "there"))):
        for effect, part in changed:
            if effect and part.text not in told:
                yield RuleChange(PolicyChange(effect, f"rule {part.text}", *words), part)
    yield from _moved(before, after)


def _parts(policy: Policy) -> dict[str, RulePart]:
    """Return the parts of all rules in order; of two equal parts only the first one counts."""
    found: dict[str, RulePart] = {}
    for rule in policy.rules.rules:
        for part in _parts_of(rule):
            found.setdefault(part.text, part)
    return found


def _parts_of(rule: Rule) -> Iterator[RulePart]:
    selector = rule.selector
    workflow = (rule.workflow or DEFAULT_WORKFLOW) if rule.action == APPROVE else ""
    decision = RuleDecision(rule.action, workflow, rule.redact, frozenset(rule.scopes))
    conditions: dict[str, Condition | None] = {_condition_text(one): one for one in rule.conditions}
    conditions |= {f"the server says {_condition_text(one)}": None for one in rule.annotations}
    conditions |= {f"the fact {one} holds": None for one in sorted(rule.facts)}
    kinds: list[str | None] = [*sorted(selector.kinds)] or [None]
    words: list[str | None] = [*sorted(selector.words)] or [None]
    for kind, server, name, word in product(
        kinds, selector.servers or [None], selector.names or [None], words
    ):
        yield RulePart(decision, kind, server, name, word, conditions)


def _condition_text(condition: Condition) -> str:
    # With quotes, so that the number 1 and the text "1" differ.
    shown = repr(_written(condition.operator, condition.operand))
    path = ".".join(key.replace(".", "\\.") for key in condition.path)
    return f"{path} {condition.operator} {shown}"


def _written(operator: str, operand: Any) -> Any:
    """Return an operand as the config has it."""
    if operator in {"any", "all"}:
        return {inner: _written(inner, one) for inner, one in operand}
    if operator == "glob":
        return tuple(glob.pattern for glob in operand)
    return getattr(operand, "pattern", operand)


def _rewritten(
    gone: list[tuple[str, RulePart]], come: list[tuple[str, RulePart]]
) -> list[tuple[RulePart, RulePart]]:
    """Pair a removed and an added rule that differ only in their conditions."""
    # Reversed, so that of several parts for one place the first one is found.
    by_place = {(part.decision, part.place): (effect, part) for effect, part in reversed(come)}
    pairs = []
    for effect, part in gone:
        found = by_place.get((part.decision, part.place))
        if found is not None and {effect, found[0]} == {LOOSENS, TIGHTENS}:
            pairs.append((part, by_place.pop((part.decision, part.place))[1]))
    return pairs


def _instead_of(part: RulePart, others: Iterable[RulePart], default: str) -> set[RuleDecision]:
    """Return the decisions that these rules may make for the calls of a part."""
    found = set()
    for other in others:
        if _may_meet(part, other):
            found.add(other.decision)
            if _covers(other, part):
                return found
    return found | {RuleDecision(default, DEFAULT_WORKFLOW if default == APPROVE else "")}


def _effect(before: set[RuleDecision], after: set[RuleDecision]) -> str:
    """Return the effect of replacing one of the first decisions with one of the second."""
    if before == after and len(before) == 1:
        return ""
    least_before, most_before = _span(before)
    least_after, most_after = _span(after)
    if most_after <= least_before and least_after < most_before:
        return LOOSENS
    # Equally strict is not enough: other reviewers, scopes or masks may allow more.
    if least_after >= most_before and not _differ_at_one_level(before, after):
        return TIGHTENS
    return UNTOLD


def _span(decisions: set[RuleDecision]) -> tuple[int, int]:
    spans = [decision.span for decision in decisions]
    return min(low for low, _ in spans), max(high for _, high in spans)


def _differ_at_one_level(before: set[RuleDecision], after: set[RuleDecision]) -> bool:
    """Tell whether other reviewers or scopes may count, or a result may no longer be masked."""
    return any(
        one.action == other.action and other.may_be_looser(one)
        for one, other in product(before, after)
    )


def _moved(before: dict[str, RulePart], after: dict[str, RulePart]) -> Iterator[RuleChange]:
    """Yield unchanged parts that now precede a part with a different decision."""
    place = {text: number for number, text in enumerate(after)}
    kept = [text for text in before if text in place]
    if kept == sorted(kept, key=place.__getitem__):
        return
    for at, first in enumerate(kept):
        one = before[first]
        for second in kept[at + 1 :]:
            other = before[second]
            if place[second] < place[first] and _may_meet(one, other):
                effect = _effect({one.decision}, {other.decision})
                words = f"after {first}", f"before {first}"
                if effect:
                    yield RuleChange(PolicyChange(effect, f"rule {second}", *words), other)


def _may_meet(one: RulePart, other: RulePart) -> bool:
    """Tell whether a call may exist that both parts select."""
    return (
        (one.kind is None or other.kind is None or one.kind == other.kind)
        and _globs_may_meet(one.server, other.server)
        and _globs_may_meet(one.name, other.name)
        and _word_may_occur(one.word, other.name)
        and _word_may_occur(other.word, one.name)
    )


def _globs_may_meet(one: Glob | None, other: Glob | None) -> bool:
    if one is None or other is None:
        return True
    if one.exact:
        return other.matches(one.pattern)
    if other.exact:
        return one.matches(other.pattern)
    return (one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix)) and (
        one.suffix.endswith(other.suffix) or other.suffix.endswith(one.suffix)
    )


def _word_may_occur(word: str | None, name: Glob | None) -> bool:
    return word is None or name is None or not name.exact or word in split_words(name.pattern)


def _covers(wide: RulePart, narrow: RulePart) -> bool:
    """Tell whether one part certainly selects every call that the other one selects."""
    # A condition that cannot be decided never matches in a rule that forwards, but does in others.
    alike = wide.decision.action != FORWARD or narrow.decision.action == FORWARD
    return (
        wide.kind in (None, narrow.kind)
        and glob_covers(wide.server, narrow.server)
        and glob_covers(wide.name, narrow.name)
        and (wide.word in (None, narrow.word) or _word_surely_occurs(wide.word, narrow.name))
        and all(
            text in narrow.conditions or _is_implied(condition, narrow.conditions.values())
            for text, condition in wide.conditions.items()
        )
        and (alike or not wide.conditions)
    )


def _is_implied(wide: Condition | None, narrow: Iterable[Condition | None]) -> bool:
    """Tell whether a condition follows from a narrower one."""
    return wide is not None and any(
        one is not None
        and one[:2] == wide[:2]
        and (
            (wide.operator in _LOWER_BOUNDS and one.operand >= wide.operand)
            or (wide.operator in _UPPER_BOUNDS and one.operand <= wide.operand)
        )
        for one in narrow
    )


def glob_covers(wide: Glob | None, narrow: Glob | None) -> bool:
    """Tell whether one pattern certainly matches whatever the other does; None matches all."""
    if wide is None or wide.pattern == "*":
        return True
    if narrow is None:
        return False
    if narrow.exact:
        return wide.matches(narrow.pattern)
    is_prefix = wide.pattern == f"{wide.prefix}*"
    return wide.pattern == narrow.pattern or (is_prefix and narrow.prefix.startswith(wide.prefix))


def _word_surely_occurs(word: str | None, name: Glob | None) -> bool:
    return name is not None and name.exact and word in split_words(name.pattern)
