"""Run summary: counts the events of a run for its last event.

The run contract defines the counts: a call counts when it ends; a call that a gate refused is
blocked or throttled and also an error; total = allowed + blocked + throttled. Pure: the summary
is computed from the recorded events only.
"""

from typing import Any, Final

from thoughtgate.core.approval import Decision, Vote
from thoughtgate.core.envelope import render_time
from thoughtgate.core.record_events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    CALL_DECISION,
    CALL_END,
    ERROR,
    FRAME_REFUSED,
    MESSAGE,
    OK,
    RUN_END,
    RUN_START,
    TIMEOUT,
    Record,
)
from thoughtgate.policy.call import APPROVE, DEVELOPMENT, FORWARD, PRODUCTION, Verdict
from thoughtgate.policy.limits import THROTTLES
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.stops import STOP

ENFORCE: Final = "enforce"
OBSERVE: Final = "observe"

STARTER: Final = "starter"
"""The name of the built-in policy on the record."""

SUCCEEDED: Final = "SUCCEEDED"
"""The agent left and the server exited as requested."""
FAILED: Final = "FAILED"
"""The server died or could not start, or the gate itself failed."""
TERMINATED: Final = "TERMINATED"
"""A signal or a rule ended the run."""

POLICY_BLOCK: Final = "policy_block"

OUTCOMES: Final = ("approved", "rejected", "timeout", "withdrawn")


class RunSummary:
    """Counts the records of one run."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {
            "calls_total": 0,
            "calls_allowed": 0,
            "calls_blocked": 0,
            "calls_throttled": 0,
            "calls_would_block": 0,
            "errors_total": 0,
            "tool_errors": 0,
            "approvals_requested": 0,
            **{f"approvals_{outcome}": 0 for outcome in OUTCOMES},
            "frames_refused": 0,
            "messages": 0,
        }

    def count(self, *records: Record) -> None:
        """Count records; types that are not counted are ignored."""
        counts = self.counts
        for kind, _, _, _, body in records:
            counter = _COUNTERS.get(kind)
            if counter is not None:
                counter(counts, body)

    def summary(self, started_at: float, at: float) -> dict[str, int]:
        """Return the counts and the duration of the run."""
        duration = max(0, round((at - started_at) * 1000))
        return {**self.counts, "duration_ms": duration}


def _count_end(counts: dict[str, int], body: dict[str, Any]) -> None:
    counts["calls_total"] += 1
    if body.get("status") == OK and "error" not in body and "is_error" not in body:
        counts["calls_allowed"] += 1  # nearly every call ends like this
        return
    error = body.get("error") or {}
    refused = error.get("class") == POLICY_BLOCK
    if not refused:
        counts["calls_allowed"] += 1
    elif error.get("kind") in THROTTLES:
        counts["calls_throttled"] += 1
    else:
        counts["calls_blocked"] += 1
    if refused or body.get("status") in {ERROR, TIMEOUT}:
        counts["errors_total"] += 1
    if body.get("is_error") is True:
        counts["tool_errors"] += 1


def _count_decision(counts: dict[str, int], body: dict[str, Any]) -> None:
    decision = body.get("decision") or {}
    if decision.get("enforced") is False and decision.get("action") != "ALLOW":
        counts["calls_would_block"] += 1


def _count_asked(counts: dict[str, int], body: dict[str, Any]) -> None:
    del body
    counts["approvals_requested"] += 1


def _count_decided(counts: dict[str, int], body: dict[str, Any]) -> None:
    outcome = (body.get("approval") or {}).get("outcome")
    if outcome in OUTCOMES:
        counts[f"approvals_{outcome}"] += 1


def _count_refused(counts: dict[str, int], body: dict[str, Any]) -> None:
    frame = body.get("frame") or {}
    counts["frames_refused"] += frame.get("repeated", 1)


def _count_message(counts: dict[str, int], body: dict[str, Any]) -> None:
    counts["messages"] += (body.get("message") or {}).get("repeated", 1)


_COUNTERS: Final = {
    CALL_END: _count_end,
    CALL_DECISION: _count_decision,
    APPROVAL_REQUESTED: _count_asked,
    APPROVAL_DECIDED: _count_decided,
    FRAME_REFUSED: _count_refused,
    MESSAGE: _count_message,
}


def run_started(at: float, policy: Policy, *, server: str = "", **facts: Any) -> Record:
    """The first event of a run: its start, mode and policy.

    ``facts`` go into the free-form ``run.meta``.
    """
    run: dict[str, Any] = {
        "started_at": render_time(at),
        "mode": ENFORCE if policy.profile == PRODUCTION else OBSERVE,
        "policy": policy_reference(policy),
    }
    if facts:
        run["meta"] = facts
    return Record(RUN_START, at, server, "0", {"run": run})


def run_profile(started: Record) -> str:
    """Return the profile of a run from its first record."""
    return PRODUCTION if started.body["run"]["mode"] == ENFORCE else DEVELOPMENT


def run_ended(
    at: float,
    started_at: float,
    status: str,
    tally: RunSummary,
    *,
    server: str = "",
    reason: str = "",
) -> Record:
    """The last event of a run: its status, such as ``SUCCEEDED``, and its counts."""
    run: dict[str, Any] = {
        "ended_at": render_time(at),
        "status": status,
        "summary": tally.summary(started_at, at),
    }
    if reason:
        run["reason"] = reason
    return Record(RUN_END, at, server, "0", {"run": run})


def describe_verdict(verdict: Verdict, policy: Policy) -> dict[str, Any]:
    """Return a verdict as the record shows it."""
    enforced = policy.profile == PRODUCTION or verdict.action == FORWARD or verdict.gate == STOP
    decision: dict[str, Any] = {
        "action": _action_word(verdict),
        "gate": verdict.gate,
        "rule_id": verdict.rule or None,
        "severity": "info" if verdict.action == FORWARD else "warn",
        "explain": {
            "summary": verdict.reason,
            "reason_code": (verdict.kind or verdict.action).upper(),
        },
        "policy": policy_reference(policy),
        "enforced": enforced,
    }
    if verdict.workflow:
        decision["workflow"] = verdict.workflow
    if not enforced:
        decision["outcome"] = outcome_of(verdict.kind)
        if verdict.action == APPROVE:
            decision["auto_approved"] = True
    if verdict.retry_after_s:
        decision["backoff_ms"] = round(verdict.retry_after_s * 1000)
    return decision


def describe_approval(decision: Decision, verdict: Verdict, policy: Policy) -> dict[str, Any]:
    """Return how an approval request ended, as the record shows it."""
    approval: dict[str, Any] = {
        "workflow": verdict.workflow,
        "outcome": "approved" if decision.approved else decision.kind.removeprefix("approval_"),
        "decided_by": decision.by,
        "channel": decision.channel,
        # Reviewers may paste a secret into their reason.
        "reason": policy.redactor.mask_text(decision.reason),
        "auto_approved": decision.auto,
        "executes": verdict.action == FORWARD,
        "kind": verdict.kind or None,
    }
    if decision.votes:
        approval["votes"] = [describe_vote(vote, policy) for vote in decision.votes]
    return approval


def outcome_of(kind: str) -> str:
    """Return what production would have done with a call, by the kind of its refusal."""
    return "WOULD_HOLD" if kind == "definition_held" else "WOULD_BLOCK"


def describe_vote(vote: Vote, policy: Policy) -> dict[str, Any]:
    """Return a vote as the record shows it."""
    said = {
        "by": vote.by,
        "channel": vote.channel,
        **vote.verified(),
        "approve": vote.approve,
        "at": render_time(vote.at),
    }
    if vote.reason:
        said["reason"] = policy.redactor.mask_text(vote.reason)
    return said


def _action_word(verdict: Verdict) -> str:
    if verdict.action == FORWARD:
        return "ALLOW"
    if verdict.action == APPROVE:
        return "HOLD"
    return "THROTTLE" if verdict.kind in THROTTLES else "BLOCK"


def policy_reference(policy: Policy) -> dict[str, str]:
    """Return how the record names a policy: starter or config, and its digest."""
    return {
        "policy_id": STARTER if policy.starter else "config",
        "policy_version": policy.version,
        "policy_hash": policy.version,
    }
