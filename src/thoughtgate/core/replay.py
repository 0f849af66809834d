"""Replay: what another policy would have said of the calls on record.

The same engine judges as in the gate. The record shows arguments with secrets masked and
long ones cut, and does not hold what servers say of their tools; where a verdict could
hang on one of these, the outcome is marked as uncertain and says on what.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.policy.call import APPROVE, DENY, FORWARD, POLICY, Call, Condition, Verdict
from thoughtgate.policy.limits import LimitState
from thoughtgate.policy.policy import Policy, evaluate
from thoughtgate.policy.redaction import MASK

ALLOW_WORD: Final = "ALLOW"
HOLD_WORD: Final = "HOLD"
BLOCK_WORD: Final = "BLOCK"
THROTTLE_WORD: Final = "THROTTLE"

STRICTNESS: Final = {ALLOW_WORD: 0, HOLD_WORD: 1, THROTTLE_WORD: 2, BLOCK_WORD: 3}
"""How strict an outcome is; a change to a higher one tightens."""

MAX_EXAMPLES: Final = 3
"""Calls named for each kind of change."""


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
    failed = row.get("status") in {"ERROR", "TIMEOUT"} and row.get("error_class") != "policy_block"
    cut = bool(row.get("truncated")) or not whole
    return RecordedCall(str(row.get("call_id")), call, at, decision, failed, cut)


def replay(calls: Iterable[RecordedCall], policy: Policy) -> Iterator[Outcome]:
    """Judge recorded calls, in the order they were made, limits included."""
    limits = LimitState(policy.limits)
    for recorded in calls:
        call, at = recorded.call, recorded.at
        verdict = evaluate(call, policy, at)
        if verdict.action != DENY:
            verdict = limits.check(call, at) or verdict
        if verdict.action == FORWARD:
            limits.commit(call, at)
            (limits.failed if recorded.failed else limits.succeeded)(call, at)
        yield Outcome(recorded, verdict, outcome_word(verdict), uncertainty(recorded, policy))


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
    if not policy.visibility.allows(call.server, call.kind, call.name):
        return ""
    hidden = recorded.cut or _holds_mask(call.arguments)
    for rule in policy.rules.candidates(call.server, call.kind, call.name):
        if rule.annotations:
            return f"{rule.id} looks at annotations, which are not on record"
        for condition in rule.conditions:
            if recorded.cut or _holds_mask(_value_at(condition, call.arguments)):
                return f"{rule.id} looks at {'.'.join(condition.path)}, which is masked or cut"
        if rule.accepts(call):
            asks_cedar = rule.action == POLICY
            return "Cedar sees arguments that are masked or cut" if asks_cedar and hidden else ""
    asks_cedar = policy.default == POLICY
    return "Cedar sees arguments that are masked or cut" if asks_cedar and hidden else ""


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
