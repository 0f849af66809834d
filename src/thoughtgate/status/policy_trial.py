"""The policy of a console's config: its rules, and what it or a candidate decides about calls.

A candidate comes from a browser. It is never applied and never trusted: references to variables
are not replaced, only files that the config in force has already read can be named, and the number
of calls that it is tried on is limited. The organisation's and the project's policies apply to it
too.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.analysis.comparison import CallTarget, compare
from thoughtgate.analysis.learning import observe, propose
from thoughtgate.analysis.replay import (
    Flip,
    RecordedCall,
    flips_of,
    outcome_word,
    recorded_call,
    replay,
    uncertainty,
)
from thoughtgate.analysis.rule_changes import PolicyChange
from thoughtgate.analysis.setting_changes import compare_settings
from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.core.record_events import NOWHERE
from thoughtgate.errors import ConfigError, StoreError, ThoughtGateError
from thoughtgate.gate.approvals.installed_channels import installed_channels
from thoughtgate.gate.config_files import Loaded, reload_configuration
from thoughtgate.gate.policy_files.policy_change import difference_mask
from thoughtgate.policy.call import Call, Condition, Verdict
from thoughtgate.policy.evaluation import evaluate, explain
from thoughtgate.policy.layers import with_layers
from thoughtgate.policy.policy import Policy, Step
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.rules import Rule
from thoughtgate.policy.starter import STARTER_TEXT
from thoughtgate.status.record_view import ConsoleRecord

CANDIDATE: Final = "candidate"
"""The name of the candidate's text in problems."""

MAX_CALLS: Final = 5_000
"""The newest calls that a candidate is tried on."""

MAX_LEARNED: Final = 3_000
"""The newest calls that a proposal is made from; with more, the page would take over 0.2 s."""

MAX_SHOWN: Final = 200
"""Changes of each kind that are returned."""

_PATIENCE_S: Final = 10.0


class RuleView(NamedTuple):
    """One rule in force, with the calls that it decided."""

    id: str
    action: str
    selects: str
    """What it applies to, in words."""
    reason: str
    hits: int
    """Calls under this version of the policy."""
    decisions: tuple[tuple[str, int], ...]


class CallTrial(NamedTuple):
    """What a policy says about one call."""

    problems: tuple[str, ...]
    """Why the candidate cannot be used; everything else is empty then."""
    version: str = ""
    decision: str = ""
    """ALLOW, HOLD, BLOCK or THROTTLE, without limits."""
    verdict: Verdict | None = None
    steps: tuple[Step, ...] = ()
    doubt: str = ""
    """Why the real arguments could change the verdict."""


class PolicyTrial(NamedTuple):
    """What a candidate would change."""

    problems: tuple[str, ...]
    version: str = ""
    changes: tuple[PolicyChange, ...] = ()
    flips: tuple[Flip, ...] = ()
    calls: int = 0
    """Recorded calls that it was tried on."""
    uncertain: int = 0
    oldest: float = 0.0
    """When the first of them was made."""


class _Literal(dict[str, str]):
    """An environment in which every variable has the reference to itself as its value."""

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002 - as of a dict
        return f"${{{key}}}"


class PolicyInForce:
    """The policy that this console's config describes now. Methods block; call them in a thread."""

    def __init__(self, loaded: Loaded, environ: Mapping[str, str], record: ConsoleRecord) -> None:
        self._loaded = loaded
        self._environ = environ
        self._record = record
        self._seen = _signature(loaded)
        self._reading = threading.Lock()
        self._trying = threading.Lock()
        self.problem = ""
        """Why the files cannot be used as they are now; the previous policy stays in use."""

    def current(self) -> Loaded:
        """Return the config, read again if its files have changed."""
        with self._reading:
            seen = _signature(self._loaded)
            if seen != self._seen:
                self._seen = seen
                try:
                    self._loaded = reload_configuration(self._loaded, self._environ)
                    self.problem = ""
                    # Again, because the new config may name other files.
                    self._seen = _signature(self._loaded)
                except ThoughtGateError as error:
                    self.problem = str(error)
            return self._loaded

    def rules(self) -> list[tuple[str, list[RuleView]]]:
        """Return the rules with their hits, per policy in force."""
        policy = self.current().policy
        counts = self._record.rule_hits(policy.version)
        groups = [("", policy)] + [(layer.name, layer.policy) for layer in policy.layers]
        views = []
        for name, one in groups:
            prefix = f"{name}:" if name else ""
            found = [_view(rule, prefix, counts, policy.redactor) for rule in one.rules.rules]
            default = {word: n for (rule, word), n in counts.items() if rule == f"{prefix}default"}
            selects = "calls that no rule matches"
            found.append(
                RuleView("default", one.default, selects, "", sum(default.values()), _most(default))
            )
            views.append((name, found))
        return views

    def explain_call(self, call: Call, now: float) -> CallTrial:
        """Return what the policy in force says about a call."""
        return _explained(call, self.current().policy, now)

    def explain_recorded(self, row: Mapping[str, Any], now: float) -> CallTrial | None:
        """Return what the policy in force says about a recorded call; None if it is incomplete."""
        recorded = recorded_call(row)
        if recorded is None or recorded.call.server == NOWHERE:
            return None
        policy = self.current().policy
        doubt = uncertainty(recorded, policy)
        return _explained(recorded.call, policy, now)._replace(doubt=doubt)

    def try_call(self, text: str, row: Mapping[str, Any], now: float) -> CallTrial:
        """Return what a candidate says about a recorded call."""
        with self._alone():
            made = self._candidate(text)
            if isinstance(made, tuple):
                return CallTrial(made)
            recorded = recorded_call(row)
            if recorded is None or recorded.call.server == NOWHERE:
                return CallTrial(("the record does not contain enough of this call",))
            doubt = uncertainty(recorded, made.policy)
            return _explained(recorded.call, made.policy, now)._replace(doubt=doubt)

    def try_policy(self, text: str, now: float) -> PolicyTrial:
        """Return what a candidate changes, in general and for the newest recorded calls."""
        with self._alone():
            made = self._candidate(text)
            if isinstance(made, tuple):
                return PolicyTrial(made)
            before, calls = self.current(), self._calls(MAX_CALLS)
            targets = dict.fromkeys(
                CallTarget(*one.call[:3]) for one in calls if one.call.server != NOWHERE
            )
            changes = changes_between(before, made, targets, self._environ, now)
            outcomes = replay(calls, made.policy)
            return PolicyTrial(
                (),
                made.policy.version,
                tuple(changes[:MAX_SHOWN]),
                tuple(flips_of(outcomes)[:MAX_SHOWN]),
                len(outcomes),
                sum(bool(one.uncertain) for one in outcomes),
                min((one.at for one in calls), default=0.0),
            )

    def learn(self, since: float, told: str) -> str:
        """Return a config proposed from the recorded calls since a time; empty if there are none."""
        with self._alone():
            seen = observe(self._calls(MAX_LEARNED, since), starter_policy())
            return propose(seen, told) if seen else ""

    def _calls(self, limit: int, since: float = 0.0) -> list[RecordedCall]:
        rows = reversed(self._record.calls(limit, since))
        return [found for row in rows if (found := recorded_call(row)) is not None]

    def _candidate(self, text: str) -> Loaded | tuple[str, ...]:
        """Return a candidate as a config that nothing loads, or what is wrong with it."""
        loaded = self.current()
        around = Path(loaded.path).parent if loaded.path else None

        def read_text(name: str) -> str:
            found = loaded.texts.get(str(around / name)) if around is not None else None
            if found is None:
                raise OSError(0, "a candidate can only name files of the config in force")
            return found

        try:
            settings = load_settings(
                text,
                file=CANDIDATE,
                env=_Literal(),
                read_text=read_text,
                channels=installed_channels,
                overrides=False,
            )
            policy = with_layers(build_policy(settings), *loaded.policy.layers)
        except ConfigError as error:
            return tuple(str(problem) for problem in error.problems[:MAX_SHOWN])
        except (ThoughtGateError, ValueError, RecursionError) as error:
            return (str(error) or "it cannot be read",)
        return Loaded(replace(settings, profile=policy.profile), policy, None)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one trial run at a time: they need a second of one core."""
        if not self._trying.acquire(timeout=_PATIENCE_S):
            raise StoreError("another policy is being tried; try again in a few seconds")
        try:
            yield
        finally:
            self._trying.release()


def _signature(loaded: Loaded) -> tuple[tuple[str, int, int], ...]:
    """Return a value that changes when a file of a config changes."""
    found = []
    for name in loaded.files:
        try:
            facts = Path(name).stat()
            found.append((name, facts.st_mtime_ns, facts.st_size))
        except OSError:
            found.append((name, 0, 0))
    return tuple(found)


def _explained(call: Call, policy: Policy, now: float) -> CallTrial:
    verdict = evaluate(call, policy, now)
    steps = tuple(explain(call, policy, now))
    return CallTrial((), policy.version, outcome_word(verdict), verdict, steps)


def _view(
    rule: Rule, prefix: str, counts: Mapping[tuple[str, str], int], masks: Redactor
) -> RuleView:
    hits = {word: n for (found, word), n in counts.items() if found == f"{prefix}{rule.id}"}
    selects = masks.mask_text(_selects(rule))
    return RuleView(rule.id, rule.action, selects, rule.reason, sum(hits.values()), _most(hits))


def _most(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: -pair[1]))


def _selects(rule: Rule) -> str:
    chosen = rule.selector
    kinds = ", ".join(sorted(chosen.kinds)) or "everything"
    names = ", ".join(glob.pattern for glob in chosen.names)
    parts = [f"{kinds} {names}".strip()]
    if chosen.words:
        parts.append(f"with {' or '.join(sorted(chosen.words))} in its name")
    if chosen.servers:
        parts.append("on " + ", ".join(glob.pattern for glob in chosen.servers))
    parts += [f"if {_condition(one)}" for one in rule.conditions]
    parts += [f"if the tool says {_condition(one)}" for one in rule.annotations]
    if rule.facts:
        parts.append(f"on the facts {' '.join(sorted(rule.facts))}")
    if rule.scopes:
        parts.append(f"needs the scopes {' '.join(rule.scopes)}")
    return " ".join(parts)


def _condition(one: Condition) -> str:
    return f"{'.'.join(one.path)} {one.operator.replace('_', ' ')} {one.operand}"


def changes_between(
    before: Loaded,
    after: Loaded,
    observed: Iterable[CallTarget],
    environ: Mapping[str, str],
    now: float,
) -> list[PolicyChange]:
    """Return what changes from one config to the other, with secrets masked."""
    mask = difference_mask(before, after, environ)
    changes = [
        change._replace(before=_masked(change.before, mask), after=_masked(change.after, mask))
        for change in compare_settings(before.settings, after.settings)
    ]
    return [*changes, *compare(before.policy, after.policy, observed, now)]


def _masked(value: Any, mask: Redactor) -> Any:
    """Return the value of a setting with the secrets of both configs masked."""
    if isinstance(value, dict):
        # Keys such as token_env are not masked: they name a variable, not a secret.
        return {name: _masked(inner, mask) for name, inner in value.items()}
    return mask.mask_value(value)


def starter_policy() -> Policy:
    """Return the starter policy, which knows the names of tools that change something."""
    settings = load_settings(STARTER_TEXT, file="starter", env={}, read_text=lambda _: "")
    return build_policy(settings, starter=True)
