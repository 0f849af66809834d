"""Detection of likely mistakes in a valid config, such as rules that can never match."""

from collections.abc import Iterator
from difflib import get_close_matches
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from thoughtgate.analysis.path_rules import path_findings
from thoughtgate.analysis.rule_changes import glob_covers
from thoughtgate.config.document import Document, Path, dotted
from thoughtgate.config.settings import RuleSettings, SelectorSettings, Settings
from thoughtgate.errors import Problem
from thoughtgate.policy.facts import ESTABLISHED
from thoughtgate.policy.globs import Glob, is_glob

ERROR: Final = "error"
WARNING: Final = "warning"

NEAR: Final = 0.75
"""How similar two names must be for one to count as a misspelling of the other."""

MAX_COMPARED: Final = 1_000_000
"""Maximum number of comparisons of two rules, which take some seconds."""


class LintFinding(NamedTuple):
    """One likely mistake in a config."""

    level: str
    """``error`` for what nobody can intend, ``warning`` for what may be intended."""
    problem: Problem


def lint(settings: Settings, document: Document, file: str) -> list[LintFinding]:
    """Return the likely mistakes in valid settings, with their lines in the document."""
    return [
        LintFinding(level, Problem(dotted(path), message, file, _line(document, path)))
        for level, path, message in _findings(settings)
    ]


def _line(document: Document, path: Path) -> int:
    lengths = range(len(path), 0, -1)
    return next((document.lines[path[:n]] for n in lengths if path[:n] in document.lines), 0)


def _findings(settings: Settings) -> Iterator[tuple[str, Path, str]]:
    yield from _unreachable(settings.rules)
    yield from _unlisted_servers(settings)
    yield from _limits(settings)
    yield from ((WARNING, path, text) for path, text in path_findings(settings.rules))
    yield from _scopes(settings)
    yield from _facts(settings)
    actions = {settings.default, *(rule.action for rule in settings.rules)}
    if settings.cedar and "policy" not in actions:
        yield WARNING, ("cedar",), "no rule has action: policy, so these policies are never asked"
    if settings.default == "forward" and not settings.rules:
        yield WARNING, ("default",), "everything is forwarded: there are no rules"
    if settings.profile == "development":
        yield WARNING, ("profile",), "development forwards what production would refuse"
    for name, workflow in settings.approval.items():
        if workflow.on_timeout == "approve":
            path = ("approval", name, "on_timeout")
            yield WARNING, path, "a call that nobody looks at is forwarded"


def _limits(settings: Settings) -> Iterator[tuple[str, Path, str]]:
    """Find limits with keys that have no effect, and budgets that are never renewed."""
    for number, limit in enumerate(settings.limits):
        path = ("limits", number)
        if limit.exact and limit.budget is None and limit.rate is None:
            yield WARNING, (*path, "exact"), "is for budgets and rates; this limit has neither"
        # In memory, a budget starts anew with the gate; in a store it never does.
        if limit.budget and not limit.budget.window_s and settings.store != "sqlite":
            text = (
                "is for all gates of the store and never starts anew; add a window such as "
                f"{limit.budget.count}/1d, or use: thoughtgate limits reset ID"
            )
            yield WARNING, (*path, "budget"), text


def _scopes(settings: Settings) -> Iterator[tuple[str, Path, str]]:
    """Find rules that require scopes although no agent can have any."""
    auth = settings.listen.auth
    if auth is not None and auth.type == "jwt":
        return
    for number, rule in enumerate(settings.rules):
        if rule.scope:
            text = "refuses every call: only tokens (listen.auth.type: jwt) have scopes"
            yield WARNING, ("rules", number, "scope"), text


def _facts(settings: Settings) -> Iterator[tuple[str, Path, str]]:
    """Find rules on facts that nothing in the config establishes."""
    provided = {fact for server in settings.servers.values() for fact in server.provides}
    for number, rule in enumerate(settings.rules):
        for fact in rule.when_facts:
            if fact in ESTABLISHED and fact not in provided:
                text = (
                    f"no server has provides: [{fact}], so only findings in inspected results "
                    "establish it"
                )
                yield WARNING, ("rules", number, "when_facts"), text


def _unreachable(rules: tuple[RuleSettings, ...]) -> Iterator[tuple[str, Path, str]]:
    """Find rules that can never match, because an earlier one matches all their calls."""
    earlier = _EarlierRules()
    compared = 0
    for number, rule in enumerate(rules):
        reach = _Reach(rule.selector)
        candidates = earlier.candidates(reach)
        compared += len(candidates)
        if compared > MAX_COMPARED:
            message = "not checked from here on: too many rules with patterns to compare"
            yield WARNING, ("rules", number), message
            return
        shadow = next((one for one, wide in candidates if _takes(one, wide, rule, reach)), None)
        if shadow is not None:
            message = f"can never match: {shadow.id} ({shadow.action}) takes every such call first"
            yield ERROR, ("rules", number), message
        else:
            earlier.add(rule, reach)


def _takes(one: RuleSettings, wide: "_Reach", rule: RuleSettings, reach: "_Reach") -> bool:
    unconditional = not one.when and not one.annotations and not one.when_facts
    same = (
        one.when == rule.when
        and one.annotations == rule.annotations
        and set(one.when_facts) <= set(rule.when_facts)
        and one.action == rule.action
    )
    return (unconditional or same) and wide.covers(reach)


class _Reach:
    """The calls that a selector can match, comparable with those of another."""

    def __init__(self, selector: SelectorSettings) -> None:
        self.kinds = frozenset(selector.kinds)
        self.words = frozenset(selector.words)
        self.names = [Glob(name) for name in selector.names]
        self.servers = [Glob(name) for name in selector.servers]

    def covers(self, other: "_Reach") -> bool:
        """Tell whether this certainly includes every call of the other."""
        return (
            (not self.kinds or (bool(other.kinds) and other.kinds <= self.kinds))
            and (not self.words or (bool(other.words) and other.words <= self.words))
            and _covers_all(self.names, other.names)
            and _covers_all(self.servers, other.servers)
        )


class _EarlierRules:
    """The rules before one, by name, because a rule with exact names covers few others."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[_Placed]] = {}
        self._others: list[_Placed] = []
        """The rules without names, or with a pattern."""
        self._count = 0

    def add(self, rule: RuleSettings, reach: "_Reach") -> None:
        """Add a rule after the others."""
        placed = (self._count, rule, reach)
        self._count += 1
        if reach.names and all(glob.exact for glob in reach.names):
            for name in {glob.pattern for glob in reach.names}:
                self._by_name.setdefault(name, []).append(placed)
        else:
            self._others.append(placed)

    def candidates(self, reach: "_Reach") -> "list[tuple[RuleSettings, _Reach]]":
        """Return every rule, in order, that may include all calls of a rule."""
        # A rule that includes all of its calls includes those with its first name.
        own = self._by_name.get(reach.names[0].pattern, []) if reach.names else []
        found = sorted((*own, *self._others), key=itemgetter(0)) if own else self._others
        return [(rule, wide) for _, rule, wide in found]


_Placed: TypeAlias = tuple[int, RuleSettings, _Reach]


def _covers_all(wide: list[Glob], narrow: list[Glob]) -> bool:
    others: list[Glob | None] = [*narrow] or [None]
    return not wide or all(any(glob_covers(one, other) for one in wide) for other in others)


def _unlisted_servers(settings: Settings) -> Iterator[tuple[str, Path, str]]:
    """Find rules whose server is spelled almost like one in the config.

    Other servers need no entry, because the servers of ``wrap`` and ``shim`` are in agents' configs.
    """
    known = {*settings.servers, "thoughtgate"}
    similar: dict[str, list[str]] = {}
    for section, selecting in (("rules", settings.rules), ("limits", settings.limits)):
        for number, one in enumerate(selecting):
            for server in one.selector.servers:
                if server in known or is_glob(server):
                    continue
                if server not in similar:
                    similar[server] = get_close_matches(server, settings.servers, 1, NEAR)
                if near := similar[server]:
                    path = (section, number, "server")
                    yield (
                        WARNING,
                        path,
                        f"no server {server!r} under servers; did you mean {near[0]!r}?",
                    )
