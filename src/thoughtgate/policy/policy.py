"""A whole policy, and the chain of gates that judges a call by it.

Gates are functions of one signature; the first that has a verdict ends the chain, and
a gate that fails denies. Limits and approvals are not asked here: they have state, and
the core asks them once access is granted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from thoughtgate.policy.call import (
    APPROVE,
    DENY,
    FORWARD,
    POLICY,
    PRODUCTION,
    Call,
    Verdict,
)
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.rules import RuleSet
from thoughtgate.policy.visibility import Visibility

DEFAULT_WORKFLOW: Final = "default"
"""The workflow that asks when a rule names none."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything a call is judged by."""

    version: str = ""
    """Short digest over all that can change a verdict; approvals bind to it."""
    profile: str = PRODUCTION
    """``production`` enforces, ``development`` only says what it would do."""
    default: str = DENY
    """What happens to a call that no rule matches."""
    visibility: Visibility = field(default_factory=Visibility)
    """The first gate's data."""
    rules: RuleSet = field(default_factory=RuleSet)
    """The second gate's data."""
    cedar: CedarEngine | None = None
    """The third gate's engine; without one, ``action: policy`` denies."""
    limits: tuple[Limit, ...] = ()
    """What ``limits.LimitState`` counts by."""
    redactor: Redactor = field(default_factory=Redactor)
    """Masks secrets in what people and the record see."""
    workflows: frozenset[str] = frozenset({DEFAULT_WORKFLOW})
    """The approval workflows that exist."""
    starter: bool = False
    """True when no config file was found and the built-in starter policy applies."""


Gate: TypeAlias = Callable[[Call, Policy, float], Verdict | None]
"""Judges a call at a time (seconds since the epoch); None passes it on to the next gate."""


def visibility_gate(call: Call, policy: Policy, now: float) -> Verdict | None:
    """Deny what the agent must not know of."""
    del now
    if policy.visibility.allows(call.server, call.kind, call.name):
        return None
    return Verdict(DENY, "visibility", "not_exposed", f"{call.kind} is not exposed")


def rules_gate(call: Call, policy: Policy, now: float) -> Verdict | None:
    """Apply the first rule that matches, or the default; pass on what is Cedar's to say."""
    del now
    rule = policy.rules.first_match(call)
    if rule is None:
        kind = "governance_denied" if policy.default == DENY else ""
        verdict = Verdict(policy.default, "default", kind, "no rule matches", "default")
        workflow = ""
    else:
        verdict, workflow = rule.verdict, rule.workflow
    if verdict.action == APPROVE:
        return _ask(policy, verdict, workflow)
    return None if verdict.action == POLICY else verdict


def cedar_gate(call: Call, policy: Policy, now: float) -> Verdict | None:
    """Ask Cedar; reached only by a call whose rule says ``policy``."""
    if policy.cedar is None:
        return Verdict(DENY, "cedar", "policy_denied", "no Cedar policies are configured")
    decision = policy.cedar.decide(call, now)
    if not decision.permitted:
        return Verdict(DENY, "cedar", "policy_denied", decision.reason, decision.policy)
    if decision.workflow is None:
        return Verdict(FORWARD, "cedar", "", decision.reason, decision.policy)
    return _ask(
        policy, Verdict(APPROVE, "cedar", "", decision.reason, decision.policy), decision.workflow
    )


GATES: Final[tuple[Gate, ...]] = (visibility_gate, rules_gate, cedar_gate)
"""The gates that need no state, in the order they are asked."""


def evaluate(call: Call, policy: Policy, now: float) -> Verdict:
    """Return the verdict of the first gate that has one."""
    for gate in GATES:
        verdict = _run(gate, call, policy, now)
        if verdict is not None:
            return verdict
    return Verdict(DENY, "internal", "internal_error", "no gate has a verdict")


class Step(NamedTuple):
    """One gate's part in a verdict, for ``policy explain``."""

    gate: str
    """The gate asked."""
    looked_at: str
    """What it went by."""
    verdict: Verdict | None
    """What it said; None when it passed the call on."""


def explain(call: Call, policy: Policy, now: float) -> list[Step]:
    """Run the same gates as ``evaluate`` and tell what each looked at and said."""
    steps = []
    for gate in GATES:
        verdict = _run(gate, call, policy, now)
        name, sight = _SIGHTS[gate]
        failed = verdict is not None and verdict.gate == "internal"
        steps.append(Step(name, "the gate failed" if failed else sight(call, policy), verdict))
        if verdict is not None:
            break
    return steps


def _ask(policy: Policy, verdict: Verdict, workflow: str) -> Verdict:
    """Fill in who asks; a workflow that does not exist can ask nobody, so it denies."""
    workflow = workflow or DEFAULT_WORKFLOW
    if workflow not in policy.workflows:
        return verdict._replace(
            action=DENY, kind="internal_error", reason="the approval workflow does not exist"
        )
    return verdict._replace(workflow=workflow)


def _run(gate: Gate, call: Call, policy: Policy, now: float) -> Verdict | None:
    try:
        return gate(call, policy, now)
    except Exception as error:  # noqa: BLE001  whatever a gate trips over, the call must not pass it
        reason = f"the {_SIGHTS[gate][0]} gate failed: {type(error).__name__}"
        return Verdict(DENY, "internal", "internal_error", reason)


def _seen_by_visibility(call: Call, policy: Policy) -> str:
    exposure = policy.visibility.exposure(call.server)
    if not exposure.enabled:
        return f"server {call.server!r} is disabled"
    listed = [*sorted(exposure.names), *(glob.pattern for glob in exposure.globs)]
    own = "" if call.server in policy.visibility.servers else " (not named in servers)"
    return f"server {call.server!r}{own} exposes {exposure.mode}" + (f" {listed}" if listed else "")


def _seen_by_rules(call: Call, policy: Policy) -> str:
    rules = policy.rules.candidates(call.server, call.kind, call.name)
    told = []
    for rule in rules:
        matches = rule.accepts(call)
        told.append(f"{rule.id} {'matches' if matches else 'fails on its conditions'}")
        if matches:
            break
    else:
        told.append(f"default {policy.default}")
    return f"{len(rules)} of {len(policy.rules.rules)} rules name it: {', '.join(told)}"


def _seen_by_cedar(call: Call, policy: Policy) -> str:
    del call
    return "no policies" if policy.cedar is None else f"{policy.cedar.count} policies"


_SIGHTS: Final[Mapping[Gate, tuple[str, Callable[[Call, Policy], str]]]] = {
    visibility_gate: ("visibility", _seen_by_visibility),
    rules_gate: ("rules", _seen_by_rules),
    cedar_gate: ("cedar", _seen_by_cedar),
}
"""For each gate its name, and what to tell a person who asks what it looked at."""
