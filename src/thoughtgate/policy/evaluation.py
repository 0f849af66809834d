"""Evaluation of a call: every layer of the policy is asked, and the strictest verdict counts."""

from thoughtgate.policy.call import APPROVE, DENY, FORWARD, RESOURCE, Call, Verdict
from thoughtgate.policy.policy import (
    DEFAULT_WORKFLOW,
    Layer,
    Policy,
    Step,
    explain_alone,
    judge_alone,
)
from thoughtgate.policy.uris import other_spellings

_STRICTNESS = {FORWARD: 0, APPROVE: 1, DENY: 2}


def evaluate(call: Call, policy: Policy, now: float) -> Verdict:
    """Return the strictest verdict of a policy and its layers, on every reading of the call."""
    verdict = _by_all_layers(call, policy, now) if policy.layers else judge_alone(call, policy, now)
    if call.kind == RESOURCE:
        # Servers may read other spellings of a URI as the same resource.
        for spelling in other_spellings(call.name):
            other = _by_all_layers(call._replace(name=spelling), policy, now)
            verdict = max(verdict, other, key=strictness)
    return verdict


def explain(call: Call, policy: Policy, now: float) -> list[Step]:
    """Return what each gate considered and decided, for the policy and then for its layers."""
    steps = explain_alone(call, policy, now)
    for layer in policy.layers:
        for step in explain_alone(call, layer.policy, now):
            verdict = step.verdict and _as_of(layer, step.verdict)
            steps.append(Step(f"{layer.name} {step.gate}", step.looked_at, verdict))
    return steps


def strictness(verdict: Verdict) -> int:
    """Return a number that is higher for a stricter verdict."""
    return _STRICTNESS[verdict.action]


def _by_all_layers(call: Call, policy: Policy, now: float) -> Verdict:
    verdict = judge_alone(call, policy, now)
    for layer in policy.layers:
        other = _as_of(layer, judge_alone(call, layer.policy, now))
        more = strictness(other) - strictness(verdict)
        redact = verdict.redact or other.redact
        if more > 0 or (more == 0 and layer.prevails and other.action == APPROVE):
            verdict = other
        if redact and not verdict.redact:
            verdict = verdict._replace(redact=True)
    return verdict


def _as_of(layer: Layer, verdict: Verdict) -> Verdict:
    """Return a layer's verdict as the record shows it."""
    workflow = verdict.workflow and layer.workflows.get(verdict.workflow, DEFAULT_WORKFLOW)
    rule = verdict.rule and f"{layer.name}:{verdict.rule}"
    return verdict._replace(rule=rule, workflow=workflow)
