"""Replay: the verdicts that a different policy would have given on recorded calls.

This uses the same engine as the gate and counts limits per run, as the gate did: a call is
counted when it is forwarded (a held one when it is approved), and its result when it ends. In
the record, secrets are masked, long arguments are truncated, and annotations are missing; if a
verdict could depend on one of these, its outcome is marked as uncertain, with the reason.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.core.answers import has_failed
from thoughtgate.core.record_events import MAX_NAME, NOWHERE
from thoughtgate.policy.call import (
    APPROVE,
    DENY,
    FORWARD,
    POLICY,
    PRODUCTION,
    Call,
    Condition,
    Verdict,
)
from thoughtgate.policy.evaluation import evaluate, is_visible
from thoughtgate.policy.limits import LimitState
from thoughtgate.policy.names import is_masked
from thoughtgate.policy.policy import Policy, with_outbound
from thoughtgate.policy.redaction import holds_mask
from thoughtgate.wire.frame import fold_key
from thoughtgate.wire.methods import LISTEN

ALLOW_WORD: Final = "ALLOW"
HOLD_WORD: Final = "HOLD"
BLOCK_WORD: Final = "BLOCK"
THROTTLE_WORD: Final = "THROTTLE"

STRICTNESS: Final = {ALLOW_WORD: 0, HOLD_WORD: 1, THROTTLE_WORD: 2, BLOCK_WORD: 3}
"""The strictness of each outcome; a change to a higher number tightens."""

MAX_EXAMPLES: Final = 3
"""Maximum number of example calls per change."""

TICK_S: Final = 0.002
"""Tolerance for limits: the record's times are in milliseconds, but the gate's are more precise."""

UNJUDGED: Final = frozenset({"stop", "facts"})
"""Gates that refuse calls whatever the policy says."""

LOST_CALLS: Final = "calls of its run are not on record, and limits may have counted them"
SEVERAL_NAMED: Final = f"{LISTEN} may name several things, and the record shows one of them"


class Moment(NamedTuple):
    """When the gate observed something."""

    event: int
    """The number among the events of its run; 0 if unknown."""
    at: float


class RecordedCall(NamedTuple):
    """A call in the record."""

    call_id: str
    call: Call
    at: float
    decision: str
    """The recorded verdict: ALLOW, HOLD, BLOCK or THROTTLE."""
    failed: bool
    """Whether the call was made and failed; breakers count this."""
    cut: bool
    """Whether the recorded arguments are incomplete."""
    run: str = ""
    """The run and its writer, which share the counts of limits."""
    number: int = 0
    """The number of the call in its run, counted from 1; 0 if unknown."""
    start_event: int = 0
    """The number of its start event in the run."""
    approved: Moment | None = None
    """When a held call was approved; None if it was not."""
    ended: Moment | None = None
    """When the gate got the result; None if it never did, or had refused the call."""
    observed: bool = False
    """Whether the development profile forwarded it in spite of the verdict."""
    must_hold: bool = False
    """Whether it was held because the caller had already been told that a person decides."""
    unjudged: bool = False
    """Whether it was refused whatever the policy says: by a stop order, or without its facts."""

    @property
    def went_on(self) -> bool:
        """Whether the call was forwarded without approval."""
        return self.observed or self.decision == ALLOW_WORD


class ReplayOutcome(NamedTuple):
    """The replayed verdict on one recorded call."""

    recorded: RecordedCall
    verdict: Verdict
    decision: str
    uncertain: str
    """Why the real arguments could change the verdict; empty if they cannot."""

    @property
    def flips(self) -> bool:
        """Whether the replayed verdict differs from the recorded one."""
        return self.decision != self.recorded.decision


class Flip(NamedTuple):
    """Calls of one tool whose verdicts change in the same way."""

    server: str
    kind: str
    name: str
    before: str
    after: str
    calls: int
    uncertain: int
    rule: str
    """The rule or gate that decides now."""
    examples: tuple[str, ...]

    @property
    def tightens(self) -> bool:
        """Whether the new policy is stricter."""
        return STRICTNESS.get(self.after, 0) > STRICTNESS.get(self.before, 0)


def recorded_call(row: Mapping[str, Any]) -> RecordedCall | None:
    """Return a call from its ledger row; None if the row is incomplete."""
    server, tool, decision, at = (row.get(k) for k in ("server", "tool", "decision", "started_at"))
    if not tool or not decision or at is None:
        return None
    arguments, whole = _arguments(row.get("preview"))
    call = Call(
        server or "",
        row.get("kind") or "tool",
        tool,
        arguments,
        method=row.get("method") or "tools/call",
        principal=row.get("principal") or "local",
        session=row.get("session") or "",
        args_hash=row.get("args_hash") or "",
        facts=_facts(row.get("facts")),
    )
    refused = row.get("error_class") == "policy_block"
    failed = has_failed(str(row.get("status")), is_error=bool(row.get("is_error")))
    return RecordedCall(
        str(row.get("call_id")),
        call,
        at,
        decision,
        bool(failed) and not refused,
        cut=bool(row.get("truncated")) or not whole,
        run=f"{row.get('run_id')} {row.get('writer')}",
        number=row.get("number") or 0,
        start_event=row.get("start_event") or 0,
        approved=_moment(row, "approval") if row.get("executes") else None,
        ended=None if refused or failed is None else _moment(row, "end"),
        observed=row.get("enforced") == 0,
        must_hold=decision == HOLD_WORD and row.get("gate") == "approval",
        unjudged=row.get("gate") in UNJUDGED,
    )


def replay(
    calls: Iterable[RecordedCall],
    policy: Policy,
    follow: Callable[[Iterator[ReplayOutcome]], Iterable[ReplayOutcome]] = iter,
) -> list[ReplayOutcome]:
    """Judge recorded calls, including limits; each run in the order that its gate observed.

    A call to a name that no server offered has no outcome, because every policy refuses it; neither
    has a call that a stop order refused. ``follow`` gets the outcomes as they are computed, run by
    run.
    """
    runs: dict[str, list[RecordedCall]] = {}
    for recorded in calls:
        runs.setdefault(recorded.run, []).append(recorded)
    outcomes = (outcome for found in runs.values() for outcome in _replay_run(found, policy))
    return sorted(follow(outcomes), key=lambda outcome: outcome.recorded.at)


def _replay_run(calls: list[RecordedCall], policy: Policy) -> Iterator[ReplayOutcome]:
    steps: list[tuple[Moment, RecordedCall, str]] = []
    for recorded in calls:
        steps.append((Moment(recorded.start_event, recorded.at), recorded, "begin"))
        if recorded.approved is not None:
            steps.append((recorded.approved, recorded, "approve"))
        if recorded.ended is not None:
            steps.append((recorded.ended, recorded, "end"))
    run = _Run(policy)
    # A moment is ordered by the event's number first, because events may have the same time.
    for moment, recorded, step in sorted(steps, key=lambda one: one[0]):
        if step == "approve":
            run.approve(recorded, moment.at)
        elif step == "end":
            run.end(recorded, moment.at)
        elif recorded.call.server == NOWHERE or recorded.unjudged:
            run.pass_over(recorded)
        else:
            yield run.begin(recorded)


class _Run:
    """The counts that the gate of one run would have had."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._limits = LimitState(policy.limits)
        self._forwarded: dict[str, int] = {}
        self._open: set[str] = set()
        """Open calls that were not refused."""
        self._counted: set[str] = set()
        self._last = 0
        self._unseen = ""
        """Why the counts may be too low; empty if they are correct."""

    def pass_over(self, recorded: RecordedCall) -> None:
        """Check whether calls before this one are missing."""
        if recorded.number > self._last + 1:
            self._unseen = LOST_CALLS
        self._last = max(self._last, recorded.number)

    def begin(self, recorded: RecordedCall) -> ReplayOutcome:
        """Judge a call, and count it if it is forwarded."""
        self.pass_over(recorded)
        session = recorded.call.session
        call = recorded.call._replace(session_calls=self._forwarded.get(session, 0))
        verdict = self._judge(recorded, call)
        word = outcome_word(verdict)
        doubt = uncertainty(recorded, self._policy) or self._doubt(recorded.decision, word)
        # If the verdict is uncertain, the recorded one is the best guess for later counts.
        if recorded.went_on if doubt else self._goes_on(recorded, verdict):
            self._open.add(recorded.call_id)
            self._count(recorded, recorded.at)
        elif doubt or verdict.action == APPROVE:
            self._open.add(recorded.call_id)
        return ReplayOutcome(recorded, verdict, word, doubt)

    def approve(self, recorded: RecordedCall, at: float) -> None:
        """Count a held call that was approved."""
        if recorded.call_id in self._open and recorded.call_id not in self._counted:
            self._count(recorded, at)

    def end(self, recorded: RecordedCall, at: float) -> None:
        """Pass the result of a call to the breakers."""
        if recorded.call_id in self._open:
            self._open.remove(recorded.call_id)
            self._limits.ended(recorded.call, at, failed=recorded.failed)

    def _judge(self, recorded: RecordedCall, call: Call) -> Verdict:
        verdict = evaluate(call, self._policy, recorded.at)
        if verdict.action == DENY:
            return verdict
        verdict = self._limited(recorded, call) or verdict
        if recorded.must_hold and verdict.action == FORWARD:
            return verdict._replace(action=APPROVE, gate="approval")
        return verdict

    def _limited(self, recorded: RecordedCall, call: Call) -> Verdict | None:
        """Check the limits; if milliseconds matter, the recorded verdict is used."""
        throttled = recorded.decision == THROTTLE_WORD
        earlier = self._limits.check(call, recorded.at - TICK_S)
        verdict = self._limits.check(call, recorded.at)
        if verdict is None:
            return earlier if throttled else None
        if verdict.retry_after_s <= TICK_S and not throttled:
            return self._limits.check(call, recorded.at + TICK_S)
        return verdict

    def _doubt(self, before: str, after: str) -> str:
        """Return why counts that are too low could have changed a verdict."""
        if before == after or not self._unseen:
            return ""
        cedar = self._policy.cedar
        counts = THROTTLE_WORD in {before, after} or (
            cedar is not None and cedar.looks_at("session")
        )
        return self._unseen if counts else ""

    def _goes_on(self, recorded: RecordedCall, verdict: Verdict) -> bool:
        if verdict.action == FORWARD or self._policy.profile != PRODUCTION:
            return True
        # Assume that a reviewer would now approve the calls that were forwarded then.
        return verdict.action == APPROVE and recorded.went_on

    def _count(self, recorded: RecordedCall, at: float) -> None:
        call = recorded.call
        self._counted.add(recorded.call_id)
        self._limits.commit(call, at)
        self._forwarded[call.session] = self._forwarded.get(call.session, 0) + 1
        if call.method == LISTEN:
            self._unseen = self._unseen or SEVERAL_NAMED


def outcome_word(verdict: Verdict) -> str:
    """Return a verdict in the terms of the record."""
    if verdict.action == FORWARD:
        return ALLOW_WORD
    if verdict.action == APPROVE:
        return HOLD_WORD
    return THROTTLE_WORD if verdict.gate == "limits" else BLOCK_WORD


def flips_of(outcomes: Iterable[ReplayOutcome]) -> list[Flip]:
    """Group the changed outcomes, the most frequent first."""
    gathered: dict[tuple[str, str, str, str, str, str], list[ReplayOutcome]] = {}
    for outcome in outcomes:
        if outcome.flips:
            call = outcome.recorded.call
            rule = outcome.verdict.rule or outcome.verdict.gate
            before, after = outcome.recorded.decision, outcome.decision
            key = (call.server, call.kind, call.name, before, after, rule)
            gathered.setdefault(key, []).append(outcome)
    flips = [
        Flip(
            *key[:5],
            calls=len(found),
            uncertain=sum(bool(one.uncertain) for one in found),
            rule=key[5],
            examples=tuple(one.recorded.call_id for one in found[:MAX_EXAMPLES]),
        )
        for key, found in gathered.items()
    ]
    return sorted(flips, key=lambda flip: (-flip.calls, flip))


def uncertainty(recorded: RecordedCall, policy: Policy) -> str:
    """Return which missing data the verdict could depend on; empty if none."""
    call = recorded.call
    if len(call.name) >= MAX_NAME:
        return "the name on record is cut"
    if is_masked(call.name):
        return "the name on record is masked"
    if call.method == LISTEN:
        return SEVERAL_NAMED
    if not is_visible(policy.visibility, call.server, call.kind, call.name):
        return ""
    return _rules_doubt(recorded, policy)


def _rules_doubt(recorded: RecordedCall, policy: Policy) -> str:
    call = recorded.call
    hidden = recorded.cut or _holds_mask(call.arguments)
    asked = with_outbound(call, policy) if policy.flows.asked else call
    for rule in policy.rules.candidates(call.server, call.kind, call.name):
        if rule.annotations:
            return f"{rule.id} looks at annotations, which are not on record"
        if rule.facts and call.facts is None:
            return f"{rule.id} looks at facts, which are not on record"
        for condition in rule.conditions:
            if recorded.cut or _holds_mask(_values_at(condition, call.arguments)):
                return f"{rule.id} looks at {'.'.join(condition.path)}, which is masked or cut"
        if rule.accepts(asked):
            if rule.scopes:
                return f"{rule.id} looks at scopes, which are not on record"
            return _cedar_doubt(call, policy, hidden=hidden) if rule.action == POLICY else ""
    return _cedar_doubt(call, policy, hidden=hidden) if policy.default == POLICY else ""


def _cedar_doubt(call: Call, policy: Policy, *, hidden: bool) -> str:
    if policy.cedar is not None and policy.cedar.looks_at("facts") and call.facts is None:
        return "Cedar looks at facts, which are not on record"
    for member in ("annotations", "claims", "scopes"):
        if policy.cedar is not None and policy.cedar.looks_at(member):
            return f"Cedar looks at {member}, which are not on record"
    return "Cedar sees arguments that are masked or cut" if hidden else ""


def _facts(recorded: Any) -> frozenset[str] | None:
    """Return the facts that held, or None if they are not on record."""
    return frozenset(recorded.split()) if isinstance(recorded, str) else None


def _moment(row: Mapping[str, Any], what: str) -> Moment | None:
    at = row.get("ended_at" if what == "end" else "approval_at")
    return None if at is None else Moment(row.get(f"{what}_event") or 0, at)


def _arguments(preview: Any) -> tuple[dict[str, Any], bool]:
    try:
        value = json.loads(preview) if preview else {}
    except ValueError:
        return {}, False
    return (value, True) if isinstance(value, dict) else ({}, False)


def _values_at(condition: Condition, arguments: dict[str, Any]) -> list[Any]:
    """Return everything that some server could read at a condition's path."""
    found: list[Any] = [arguments]
    for key in condition.path:
        members: list[Any] = []
        for at in found:
            members += at if isinstance(at, list) else [at]
        folded = fold_key(key)
        found = [
            value
            for at in members
            for name, value in (at.items() if isinstance(at, dict) else [(key, at)])
            if fold_key(name) == folded
        ]
    return found


def _holds_mask(value: Any) -> bool:
    if isinstance(value, str):
        return holds_mask(value)
    if isinstance(value, dict):
        return any(map(_holds_mask, value.values()))
    return isinstance(value, list) and any(map(_holds_mask, value))
