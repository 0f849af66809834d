"""The rules of the second gate: an ordered list in which the first match decides.

The list is indexed by server, then by exact name and by literal prefix or suffix, so that judging
a call takes about as long with ten thousand rules as with ten. The index only selects
candidates; each is then checked in file order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from thoughtgate.policy.call import APPROVE, DENY, FORWARD, MAX_KEPT, Call, Condition, Verdict
from thoughtgate.policy.conditions import judge_conditions
from thoughtgate.policy.selectors import Selector
from thoughtgate.wire.readings import ArgumentReadings

MAX_LITERAL: Final = 24
"""Maximum length of an indexed prefix or suffix; each length in use costs one lookup."""

MAX_REMEMBERED: Final = 4096
"""Maximum number of names with cached candidates; agents choose names, so it is bounded."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, ready to match."""

    id: str
    """The name from the config, or ``rules[N]``."""
    action: str
    """``forward``, ``deny``, ``approve`` or ``policy``."""
    selector: Selector = field(default_factory=Selector)
    """The tools, resources and prompts that it applies to."""
    conditions: tuple[Condition, ...] = ()
    """Conditions on the arguments."""
    annotations: tuple[Condition, ...] = ()
    """Conditions on the tool's annotations; only in rules that make a verdict stricter."""
    facts: frozenset[str] = frozenset()
    """Facts that must all hold (``policy.facts``); only in rules that make a verdict stricter."""
    workflow: str = ""
    """For ``approve``: the workflow."""
    reason: str = ""
    """The reason, for the record and the approver."""
    redact: bool = False
    """Mask secrets in the result as well."""
    scopes: tuple[str, ...] = ()
    """Scopes that the caller's token must have; a call without one of them is refused."""
    verdict: Verdict = field(init=False, compare=False, repr=False)
    """The verdict for a matching call; for ``approve``, before the workflow is filled in."""
    is_unconditional: bool = field(init=False, compare=False, repr=False)
    """Whether it decides every call that its selector matches, by any caller and with any
    arguments."""

    def __post_init__(self) -> None:
        """Create the verdict once, because most calls use it."""
        kind = "governance_denied" if self.action == DENY else ""
        verdict = Verdict(self.action, "rules", kind, self.reason, self.id, redact=self.redact)
        if self.facts and self.action == APPROVE:
            verdict = verdict._replace(on_facts=True)
        object.__setattr__(self, "verdict", verdict)
        # The dataclass is frozen; these two are derived once, when the rule is created.
        conditional = self.conditions or self.annotations or self.scopes or self.facts
        object.__setattr__(self, "is_unconditional", not conditional)

    def accepts(self, call: Call, readings: ArgumentReadings | None = None) -> bool:
        """Tell whether a call that the selector matches also meets the conditions."""
        if not self.conditions and not self.annotations and not self.facts:
            return True
        # Facts that cannot be read count as holding: such a rule only makes a verdict stricter.
        if self.facts and call.facts is not None and not self.facts <= call.facts:
            return False
        outcomes = (
            judge_conditions(self.conditions, call.arguments, readings),
            judge_conditions(self.annotations, call.annotations or {}, readings)
            if call.is_listed or not self.annotations
            else None,
        )
        if False in outcomes:
            return False
        return None not in outcomes or self.action != FORWARD


@dataclass(slots=True)
class _Ends:
    """Rules by literal prefix (or suffix) of their names, with the lengths in use."""

    numbers: dict[str, list[int]] = field(default_factory=dict)
    lengths: set[int] = field(default_factory=set)

    def add(self, text: str, number: int) -> None:
        """Add a rule under a prefix or suffix."""
        self.numbers.setdefault(text, []).append(number)
        self.lengths.add(len(text))


@dataclass(slots=True)
class _Names:
    """The rules of one server (or of all servers), by prefix or suffix of their patterns."""

    exact: dict[str, list[int]] = field(default_factory=dict)
    prefixes: _Ends = field(default_factory=_Ends)
    suffixes: _Ends = field(default_factory=_Ends)
    other: list[int] = field(default_factory=list)

    def add(self, number: int, rule: Rule) -> None:
        """Add a rule under each of its names."""
        for glob in rule.selector.names:
            if glob.exact:
                self.exact.setdefault(glob.pattern, []).append(number)
            elif glob.prefix:
                self.prefixes.add(glob.prefix[:MAX_LITERAL], number)
            elif glob.suffix:
                self.suffixes.add(glob.suffix[-MAX_LITERAL:], number)
            else:
                self.other.append(number)
        if not rule.selector.names:
            self.other.append(number)

    def find(self, name: str) -> Iterator[list[int]]:
        """Yield the lists of rules whose names may match."""
        yield self.exact.get(name, [])
        for length in self.prefixes.lengths:
            yield self.prefixes.numbers.get(name[:length], [])
        for length in self.suffixes.lengths:
            yield self.suffixes.numbers.get(name[-length:], [])
        yield self.other


class RuleSet:
    """The rules of a policy, in order, with an index over them."""

    __slots__ = ("_everywhere", "_remembered", "_servers", "rules")

    rules: tuple[Rule, ...]
    """The rules in the order of the file."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self._everywhere = _Names()
        self._servers: dict[str, _Names] = {}
        self._remembered: dict[tuple[str, str, str], tuple[Rule, ...]] = {}
        for number, rule in enumerate(self.rules):
            servers = rule.selector.servers
            if servers and all(glob.exact for glob in servers):
                for glob in servers:
                    self._servers.setdefault(glob.pattern, _Names()).add(number, rule)
            else:
                self._everywhere.add(number, rule)

    def candidates(self, server: str, kind: str, name: str, spelled: str = "") -> Sequence[Rule]:
        """Return the rules that apply to this tool, resource or prompt, in order.

        ``spelled`` is the URI as the caller wrote it, if ``name`` is another reading of it.
        """
        key = (server, kind, name)
        known = self._remembered.get(key)
        if known is None:
            known = self._look_up(server, kind, name)
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            if len(name) <= MAX_KEPT:
                self._remembered[key] = known
        return self._with_exact(known, server, kind, spelled) if spelled else known

    def _with_exact(
        self, known: tuple[Rule, ...], server: str, kind: str, spelled: str
    ) -> Sequence[Rule]:
        """Add the forward rules that name the URI exactly as the caller wrote it.

        Whoever wrote such a rule meant the resource, whatever the server makes of its URI.
        """
        exact = [
            rule
            for rule in self.candidates(server, kind, spelled)
            if rule.action == FORWARD
            and rule not in known
            and any(glob.exact and glob.pattern == spelled for glob in rule.selector.names)
        ]
        return sorted((*known, *exact), key=self.rules.index) if exact else known

    def matches(self, call: Call) -> list[Rule | None]:
        """Return the rule that matches the call first; None if there is none.

        If servers could read the arguments differently, rules that match only one reading are
        followed by those that match the others.
        """
        matching: list[Rule | None] = []
        readings = call.readings or ArgumentReadings()
        for rule in self.candidates(call.server, call.kind, call.name, call.spelled):
            readings.ambiguous = False
            if rule.accepts(call, readings):
                matching.append(rule)
                # Nothing is stricter than a denial, so later rules cannot matter.
                if not readings.ambiguous or rule.action == DENY:
                    return matching
        return [*matching, None]

    def _look_up(self, server: str, kind: str, name: str) -> tuple[Rule, ...]:
        numbers: set[int] = set()
        for names in (self._servers.get(server), self._everywhere):
            if names is not None:
                for found in names.find(name):
                    numbers.update(found)
        rules = (self.rules[number] for number in sorted(numbers))
        return tuple(rule for rule in rules if rule.selector.covers(server, kind, name))
