"""Evaluation of a call: the strictest verdict of all layers of the policy, on all readings."""

from collections.abc import Iterable
from typing import Final

from thoughtgate.errors import StoreError
from thoughtgate.policy.call import APPROVE, DENY, RESOURCE, Call, Verdict
from thoughtgate.policy.facts import SharedFacts
from thoughtgate.policy.policy import (
    DEFAULT_WORKFLOW,
    Layer,
    Policy,
    Step,
    contents_gate,
    explain_alone,
    explain_gate,
    judge_alone,
    run_gate,
)
from thoughtgate.policy.scopes import stricter
from thoughtgate.policy.visibility import Visibility
from thoughtgate.wire.readings import ArgumentReadings, uri_readings

MAX_READ_IN_LIST: Final = 8_388_608
"""Maximum characters of other readings in one list; beyond it, URIs are hidden. That is enough for
tens of thousands of URIs with percent-encoded characters."""

RETRY_S: Final = 5.0
"""Delay after which a caller may try again if facts cannot be stored. Connecting to a store that
is away is tried all the time, so a few seconds are enough."""

_UNSTORED: Final = Verdict(
    DENY,
    "facts",
    "service_unavailable",
    "what the result establishes cannot be stored",
    retry_after_s=RETRY_S,
)

_TOO_MANY: Final = Verdict(
    DENY, "rules", "governance_denied", "servers could read the URI in too many ways"
)


def evaluate(call: Call, policy: Policy, now: float) -> Verdict:
    """Return the strictest verdict of a policy and its layers, on every reading of the call."""
    verdict = _by_all_layers(call, policy, now) if policy.layers else judge_alone(call, policy, now)
    if call.kind == RESOURCE:
        verdict = _by_all_readings(call, verdict, policy, now)[1]
    if policy.contents is not None and verdict.action != DENY:
        denied = run_gate(contents_gate, call, policy, now)
        if denied is not None:
            # The development profile forwards the call, and then the rule still masks its result.
            verdict = denied._replace(redact=verdict.redact)
    return verdict


def establish(call: Call, policy: Policy, facts: SharedFacts, now: float) -> Verdict | None:
    """Establish the facts of a call's server; return a refusal if they cannot be stored.

    This happens before the call is forwarded, not when its result arrives: progress, notifications
    and requests of the server come earlier, and the agent may send its next call to another gate.
    """
    provided = policy.provides(call.server)
    if not provided:
        return None
    window_s = policy.fact_window_s()
    try:
        facts.establish(call.principal, provided, now, window_s=window_s, cause=call.server)
    except StoreError:
        return _UNSTORED
    return None


def explain(call: Call, policy: Policy, now: float) -> list[Step]:
    """Return what each gate considered and decided, for the policy and then for its layers.

    If another reading of a URI decides, the steps for that reading follow.
    """
    steps = _explain_reading(call, policy, now)
    if call.kind == RESOURCE:
        first = _by_all_layers(call, policy, now)
        reading, verdict = _by_all_readings(call, first, policy, now)
        if verdict is _TOO_MANY:
            steps.append(Step("reading", verdict.reason, verdict))
        elif reading is not call:
            why = f"servers could read the URI as {reading.name!r}, which is judged more strictly"
            steps.append(Step("reading", why, None))
            steps += _explain_reading(reading, policy, now)
    denied = any(step.verdict is not None and step.verdict.action == DENY for step in steps)
    contents = policy.contents
    if contents is not None and contents.inspects_arguments(call.server) and not denied:
        steps.append(explain_gate(contents_gate, call, policy, now))
    return steps


def is_visible(visibility: Visibility, server: str, kind: str, name: str) -> bool:
    """Tell whether a tool, resource or prompt is visible to the agent in every reading."""
    return not hidden_names(visibility, server, kind, [name])


def hidden_names(
    visibility: Visibility, server: str, kind: str, names: Iterable[str]
) -> frozenset[str]:
    """Return those names of a list that the agent must not see, in any reading."""
    hidden = set()
    read = 0
    for name in names:
        if not visibility.allows(server, name):
            hidden.add(name)
        elif kind == RESOURCE and visibility.depends_on_names(server):
            # Servers write these lists, and must not control how long the gate takes to read them.
            others = uri_readings(name) if read <= MAX_READ_IN_LIST else None
            read += sum(map(len, others or ()))
            if others is None or not all(
                visibility.allows(server, other, spelled=name) for other in others
            ):
                hidden.add(name)
    return frozenset(hidden)


def _explain_reading(call: Call, policy: Policy, now: float) -> list[Step]:
    steps = explain_alone(call, policy, now)
    for layer in policy.layers:
        for step in explain_alone(call, layer.policy, now):
            verdict = step.verdict and _as_of(layer, step.verdict)
            steps.append(Step(f"{layer.name} {step.gate}", step.looked_at, verdict))
    return steps


def _by_all_readings(
    call: Call, verdict: Verdict, policy: Policy, now: float
) -> tuple[Call, Verdict]:
    """Return the reading of a URI with the strictest verdict, and that verdict.

    ``verdict`` is the one on the call as it was sent.
    """
    others = uri_readings(call.name)
    if others is None:
        return call, _TOO_MANY
    decisive, readings = call, ArgumentReadings()
    for name in others:
        reading = call._replace(name=name, spelled=call.name, readings=readings)
        other = _by_all_layers(reading, policy, now)
        redact = verdict.redact or other.redact
        found = stricter(verdict, other)
        if found is other:
            decisive = reading
        verdict = found
        if redact and not verdict.redact:
            verdict = verdict._replace(redact=True)
    return decisive, verdict


def _by_all_layers(call: Call, policy: Policy, now: float) -> Verdict:
    verdict = judge_alone(call, policy, now)
    if policy.layers and call.readings is None:
        call = call._replace(readings=ArgumentReadings())
    for layer in policy.layers:
        other = _as_of(layer, judge_alone(call, layer.policy, now))
        redact = verdict.redact or other.redact
        if other.action == verdict.action == APPROVE:
            verdict = _both_ask(verdict, other, prevails=layer.prevails)
        else:
            verdict = stricter(verdict, other)
        if redact and not verdict.redact:
            verdict = verdict._replace(redact=True)
    return verdict


def _both_ask(verdict: Verdict, other: Verdict, *, prevails: bool) -> Verdict:
    """Combine two verdicts that require approval.

    A rule on facts takes precedence as the reason, because a remembered approval for another rule
    must not answer it.
    """
    chosen = other if prevails else verdict
    asked = next((one for one in (chosen, verdict, other) if one.on_facts), chosen)
    return chosen._replace(rule=asked.rule, reason=asked.reason, on_facts=asked.on_facts)


def _as_of(layer: Layer, verdict: Verdict) -> Verdict:
    """Return a layer's verdict as the record shows it."""
    workflow = verdict.workflow and layer.workflows.get(verdict.workflow, DEFAULT_WORKFLOW)
    rule = verdict.rule and f"{layer.name}:{verdict.rule}"
    return verdict._replace(rule=rule, workflow=workflow)
