"""Replay: what another policy would have said of the calls on record.

The same engine judges as in the gate, and counts for each run alone, as its gate did: a
call when it goes on, which for a held one is when a person lets it, and how it went when
it ends. The record shows arguments with secrets masked and long ones cut, and does not
hold what servers say of their tools; where a verdict could hang on one of these, the
outcome is marked as uncertain and says on what.
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
    RESOURCE,
    Call,
    Condition,
    Verdict,
)
from thoughtgate.policy.limits import LimitState
from thoughtgate.policy.policy import Policy, evaluate
from thoughtgate.policy.redaction import MASK
from thoughtgate.policy.uris import other_spellings
from thoughtgate.wire.methods import LISTEN

ALLOW_WORD: Final = "ALLOW"
HOLD_WORD: Final = "HOLD"
BLOCK_WORD: Final = "BLOCK"
THROTTLE_WORD: Final = "THROTTLE"

STRICTNESS: Final = {ALLOW_WORD: 0, HOLD_WORD: 1, THROTTLE_WORD: 2, BLOCK_WORD: 3}
"""How strict an outcome is; a change to a higher one tightens."""

MAX_EXAMPLES: Final = 3
"""Calls named for each kind of change."""

TICK_S: Final = 0.002
"""The record's times are whole milliseconds: what limits tell apart more finely, it cannot."""

LOST_CALLS: Final = "calls of its run are not on record, and limits may have counted them"
SEVERAL_NAMED: Final = f"{LISTEN} may name several things, and the record shows one of them"


class Moment(NamedTuple):
    """When the gate took note of something."""

    event: int
    """The place among the events of its run; 0 when it is not known."""
    at: float


class RecordedCall(NamedTuple):
    """A call as the record has it."""

    call_id: str
    call: Call
    at: float
    decision: str
    """ALLOW, HOLD, BLOCK or THROTTLE: what the gates said then."""
    failed: bool
    """The call was made and did not go well; breakers count these."""
    cut: bool
    """The arguments on record are not all of them."""
    run: str = ""
    """The run and its writer: what one gate counted together."""
    number: int = 0
    """1, 2, 3... among the calls of the run; 0 when it is not known."""
    start_event: int = 0
    """The place of its start among the events of its run."""
    approved: Moment | None = None
    """When a held call was let go on; None when it was not."""
    ended: Moment | None = None
    """When the gate heard how it went; None when it never did, or had refused it."""
    observed: bool = False
    """The development profile let it go on, whatever the gates said."""
    promised: bool = False
    """It was held because its caller had been told that a person decides."""

    @property
    def went_on(self) -> bool:
        """The call was sent on without waiting for anybody."""
        return self.observed or self.decision == ALLOW_WORD


class Outcome(NamedTuple):
    """What the policy says of one recorded call."""

    recorded: RecordedCall
    verdict: Verdict
    decision: str
    uncertain: str
    """Why the real arguments could change the verdict; empty when they could not."""

    @property
    def flips(self) -> bool:
        """The policy says something else than was said then."""
        return self.decision != self.recorded.decision


class Flip(NamedTuple):
    """Calls of one tool whose verdict changes in one way."""

    server: str
    kind: str
    name: str
    before: str
    after: str
    calls: int
    uncertain: int
    rule: str
    """What decides now."""
    examples: tuple[str, ...]

    @property
    def tightens(self) -> bool:
        """The new policy is stricter."""
        return STRICTNESS.get(self.after, 0) > STRICTNESS.get(self.before, 0)


def recorded_call(row: Mapping[str, Any]) -> RecordedCall | None:
    """Return a call from its row in the ledger; None when the row is not whole."""
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
        promised=decision == HOLD_WORD and row.get("gate") == "approval",
    )


def replay(
    calls: Iterable[RecordedCall],
    policy: Policy,
    follow: Callable[[Iterator[Outcome]], Iterable[Outcome]] = iter,
) -> list[Outcome]:
    """Judge recorded calls, limits included, each run in the order its gate saw things happen.

    What no server offered has no outcome: every policy refuses it. ``follow`` passes the
    outcomes on as they come, run by run.
    """
    runs: dict[str, list[RecordedCall]] = {}
    for recorded in calls:
        runs.setdefault(recorded.run, []).append(recorded)
    outcomes = (outcome for found in runs.values() for outcome in _replay_run(found, policy))
    return sorted(follow(outcomes), key=lambda outcome: outcome.recorded.at)


def _replay_run(calls: list[RecordedCall], policy: Policy) -> Iterator[Outcome]:
    steps: list[tuple[Moment, RecordedCall, str]] = []
    for recorded in calls:
        steps.append((Moment(recorded.start_event, recorded.at), recorded, "begin"))
        if recorded.approved is not None:
            steps.append((recorded.approved, recorded, "approve"))
        if recorded.ended is not None:
            steps.append((recorded.ended, recorded, "end"))
    run = _Run(policy)
    for moment, recorded, step in sorted(steps, key=lambda one: one[0]):
        if step == "approve":
            run.approve(recorded, moment.at)
        elif step == "end":
            run.end(recorded, moment.at)
        elif recorded.call.server == NOWHERE:
            run.pass_over(recorded)
        else:
            yield run.begin(recorded)


class _Run:
    """What the gate of one run would have counted."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._limits = LimitState(policy.limits)
        self._forwarded: dict[str, int] = {}
        self._open: set[str] = set()
        """Calls that were not refused, and have not ended."""
        self._counted: set[str] = set()
        self._last = 0
        self._unseen = ""
        """Why the counts may be too low; empty when they are right."""

    def pass_over(self, recorded: RecordedCall) -> None:
        """Notice whether calls are missing before this one."""
        if recorded.number > self._last + 1:
            self._unseen = LOST_CALLS
        self._last = max(self._last, recorded.number)

    def begin(self, recorded: RecordedCall) -> Outcome:
        """Judge a call, and count it if it goes on."""
        self.pass_over(recorded)
        session = recorded.call.session
        call = recorded.call._replace(session_calls=self._forwarded.get(session, 0))
        verdict = self._judge(recorded, call)
        word = outcome_word(verdict)
        doubt = uncertainty(recorded, self._policy) or self._doubt(recorded.decision, word)
        # What happened then is the best guess where nothing is certain, and what follows hangs on it.
        if recorded.went_on if doubt else self._goes_on(recorded, verdict):
            self._open.add(recorded.call_id)
            self._count(recorded, recorded.at)
        elif doubt or verdict.action == APPROVE:
            self._open.add(recorded.call_id)
        return Outcome(recorded, verdict, word, doubt)

    def approve(self, recorded: RecordedCall, at: float) -> None:
        """Count a held call that a person let go on."""
        if recorded.call_id in self._open and recorded.call_id not in self._counted:
            self._count(recorded, at)

    def end(self, recorded: RecordedCall, at: float) -> None:
        """Tell the breakers how a call went."""
        if recorded.call_id in self._open:
            self._open.remove(recorded.call_id)
            told = self._limits.failed if recorded.failed else self._limits.succeeded
            told(recorded.call, at)

    def _judge(self, recorded: RecordedCall, call: Call) -> Verdict:
        verdict = _evaluate(call, self._policy, recorded.at)
        if verdict.action == DENY:
            return verdict
        verdict = self._limited(recorded, call) or verdict
        if recorded.promised and verdict.action == FORWARD:
            return verdict._replace(action=APPROVE, gate="approval")
        return verdict

    def _limited(self, recorded: RecordedCall, call: Call) -> Verdict | None:
        """Ask the limits; where a tick decides, what was said then is right."""
        throttled = recorded.decision == THROTTLE_WORD
        earlier = self._limits.check(call, recorded.at - TICK_S)
        verdict = self._limits.check(call, recorded.at)
        if verdict is None:
            return earlier if throttled else None
        if verdict.retry_after_s <= TICK_S and not throttled:
            return self._limits.check(call, recorded.at + TICK_S)
        return verdict

    def _doubt(self, before: str, after: str) -> str:
        """Say why counts that are too low could have changed a verdict."""
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
        # A person who is asked now is taken to let go on what went on then.
        return verdict.action == APPROVE and recorded.went_on

    def _count(self, recorded: RecordedCall, at: float) -> None:
        call = recorded.call
        self._counted.add(recorded.call_id)
        self._limits.commit(call, at)
        self._forwarded[call.session] = self._forwarded.get(call.session, 0) + 1
        if call.method == LISTEN:
            self._unseen = self._unseen or SEVERAL_NAMED


def _evaluate(call: Call, policy: Policy, at: float) -> Verdict:
    """Return what the gates say, of a resource under each of its spellings."""
    verdict = evaluate(call, policy, at)
    if call.kind == RESOURCE:
        for spelling in other_spellings(call.name):
            other = evaluate(call._replace(name=spelling), policy, at)
            verdict = max(verdict, other, key=lambda one: STRICTNESS[outcome_word(one)])
    return verdict


def outcome_word(verdict: Verdict) -> str:
    """Return a verdict in the record's words."""
    if verdict.action == FORWARD:
        return ALLOW_WORD
    if verdict.action == APPROVE:
        return HOLD_WORD
    return THROTTLE_WORD if verdict.gate == "limits" else BLOCK_WORD


def flips_of(outcomes: Iterable[Outcome]) -> list[Flip]:
    """Gather the outcomes that changed, the most frequent first."""
    gathered: dict[tuple[str, str, str, str, str, str], list[Outcome]] = {}
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
    """Say on what that is not on record the verdict could hang; empty when on nothing."""
    call = recorded.call
    if len(call.name) >= MAX_NAME:
        return "the name on record is cut"
    if call.method == LISTEN:
        return SEVERAL_NAMED
    if not policy.visibility.allows(call.server, call.kind, call.name):
        return ""
    return _rules_doubt(recorded, policy)


def _rules_doubt(recorded: RecordedCall, policy: Policy) -> str:
    call = recorded.call
    hidden = recorded.cut or _holds_mask(call.arguments)
    for rule in policy.rules.candidates(call.server, call.kind, call.name):
        if rule.annotations:
            return f"{rule.id} looks at annotations, which are not on record"
        for condition in rule.conditions:
            if recorded.cut or _holds_mask(_value_at(condition, call.arguments)):
                return f"{rule.id} looks at {'.'.join(condition.path)}, which is masked or cut"
        if rule.accepts(call):
            return _cedar_doubt(policy, hidden=hidden) if rule.action == POLICY else ""
    return _cedar_doubt(policy, hidden=hidden) if policy.default == POLICY else ""


def _cedar_doubt(policy: Policy, *, hidden: bool) -> str:
    for member in ("annotations", "claims"):
        if policy.cedar is not None and policy.cedar.looks_at(member):
            return f"Cedar looks at {member}, which are not on record"
    return "Cedar sees arguments that are masked or cut" if hidden else ""


def _moment(row: Mapping[str, Any], what: str) -> Moment | None:
    at = row.get("ended_at" if what == "end" else "approval_at")
    return None if at is None else Moment(row.get(f"{what}_event") or 0, at)


def _arguments(preview: Any) -> tuple[dict[str, Any], bool]:
    try:
        value = json.loads(preview) if preview else {}
    except ValueError:
        return {}, False
    return (value, True) if isinstance(value, dict) else ({}, False)


def _value_at(condition: Condition, arguments: dict[str, Any]) -> Any:
    at: Any = arguments
    for key in condition.path:
        if not isinstance(at, dict) or key not in at:
            return at if isinstance(at, str) else None
        at = at[key]
    return at


def _holds_mask(value: Any) -> bool:
    if isinstance(value, str):
        return MASK in value
    if isinstance(value, dict):
        return any(map(_holds_mask, value.values()))
    return isinstance(value, list) and any(map(_holds_mask, value))
