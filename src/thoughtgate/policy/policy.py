"""A complete policy, and the chain of gates that judges a call by it.

Gates are functions with the same signature. The first one that returns a verdict ends the chain,
and a gate that raises an exception denies the call. Limits and approvals have state, so the core
handles them after access is granted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from thoughtgate.policy.call import (
    APPROVE,
    DENY,
    FORWARD,
    INSPECT_BEFORE,
    MAX_KEPT,
    POLICY,
    PRODUCTION,
    RESOURCE,
    SERVER_KINDS,
    Call,
    Verdict,
)
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.definitions import DefinitionPolicy
from thoughtgate.policy.facts import Flows
from thoughtgate.policy.inspection.content_policy import ContentPolicy
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.rules import MAX_REMEMBERED, Rule, RuleSet
from thoughtgate.policy.scopes import lacks_scopes, strictest
from thoughtgate.policy.visibility import ALLOW, Visibility
from thoughtgate.wire.readings import ArgumentReadings

_NAMED: Final = 5
"""Findings that the reason of a denial names; the record lists more."""

DEFAULT_WORKFLOW: Final = "default"
"""The workflow for rules that do not name one."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that determines the verdict on a call."""

    version: str = ""
    """Short digest of everything that can change a verdict; approvals are bound to it."""
    profile: str = PRODUCTION
    """``production`` enforces, ``development`` only reports."""
    default: str = DENY
    """The action for a call that no rule matches."""
    server_requests: str = FORWARD
    """The action for a server's request to the agent that no rule matches."""
    visibility: Visibility = field(default_factory=Visibility)
    """The data of the first gate."""
    rules: RuleSet = field(default_factory=RuleSet)
    """The data of the second gate."""
    cedar: CedarEngine | None = None
    """The engine of the third gate; without one, ``action: policy`` denies."""
    limits: tuple[Limit, ...] = ()
    """The limits that ``limits.LimitState`` counts."""
    flows: Flows = field(default_factory=Flows)
    """Which facts the results of servers establish, and which tools send data out."""
    redactor: Redactor = field(default_factory=Redactor)
    """Masks secrets in what people and the record see."""
    workflows: frozenset[str] = frozenset({DEFAULT_WORKFLOW})
    """The approval workflows that exist."""
    starter: bool = False
    """Whether no config file was found and the built-in starter policy applies."""
    contents: ContentPolicy | None = None
    """What happens to calls and results in which the content checks find something."""
    definitions: DefinitionPolicy = field(default_factory=DefinitionPolicy)
    """What happens when a server changes what it says about its tools."""
    layers: tuple["Layer", ...] = ()
    """Further policies that judge every call; the strictest verdict counts."""
    known: dict[tuple[str, str, str], Verdict] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Verdicts that depend only on the server, the kind and the name, by these three."""

    def looks_at_annotations(self) -> bool:
        """Tell whether a verdict can depend on the annotations of a tool."""
        return (
            any(rule.annotations for rule in self.rules.rules)
            or (self.cedar is not None and self.cedar.looks_at("annotations"))
            or any(layer.policy.looks_at_annotations() for layer in self.layers)
        )

    def looks_at_facts(self) -> bool:
        """Tell whether a verdict can depend on the facts of a principal."""
        return self.flows.asked or any(layer.policy.looks_at_facts() for layer in self.layers)

    def provides(self, server: str) -> frozenset[str]:
        """Return the facts that every result of a server establishes, by this policy or a layer."""
        own = self.flows.of(server).provides
        return own.union(*(layer.policy.provides(server) for layer in self.layers))

    def establishes_facts(self) -> bool:
        """Tell whether the results of any server establish facts."""
        return any(one.provides for one in self.flows.servers.values()) or any(
            layer.policy.establishes_facts() for layer in self.layers
        )

    def fact_window_s(self) -> float:
        """Return how long facts hold: the longest window of this policy and its layers."""
        # The 0.0 gives ``max`` a second value if there are no layers.
        return max(self.flows.window_s, *(one.policy.fact_window_s() for one in self.layers), 0.0)

    def asks_people(self) -> bool:
        """Tell whether a call may have to be approved by a person."""
        return (
            self.default == APPROVE
            or any(rule.action == APPROVE for rule in self.rules.rules)
            or (self.cedar is not None and bool(self.cedar.workflows))
            or any(layer.policy.asks_people() for layer in self.layers)
        )

    def offers_tasks(self) -> bool:
        """Tell whether calls may be held, so that agents are offered tasks for them."""
        return self.profile == PRODUCTION and self.asks_people()

    def scopes(self) -> frozenset[str]:
        """Return every scope that a rule requires."""
        own = frozenset(scope for rule in self.rules.rules for scope in rule.scopes)
        return own.union(*(layer.policy.scopes() for layer in self.layers))

    def masks_results(self) -> bool:
        """Tell whether any rule has secrets in results masked."""
        return any(rule.redact for rule in self.rules.rules) or any(
            layer.policy.masks_results() for layer in self.layers
        )

    def inspection(self, server: str) -> int:
        """Return whether, and when, the messages of a server are inspected."""
        if self.masks_results():
            return INSPECT_BEFORE
        return self.contents.result_inspection(server) if self.contents is not None else 0


@dataclass(frozen=True, slots=True)
class Layer:
    """A further policy that can only make verdicts stricter; see ``policy.layers``."""

    name: str
    """Where it comes from, such as ``organisation``; prefixes the ids of its rules and limits."""
    policy: Policy
    """The policy itself."""
    workflows: Mapping[str, str] = field(default_factory=dict)
    """The workflow in force for each workflow that it names; for others, the default one."""
    prevails: bool = False
    """Whether its workflow is used if another policy asks for approval too, and whether its
    profile applies: the organisation's approvers cannot be replaced by others."""


Gate: TypeAlias = Callable[[Call, Policy, float], Verdict | None]
"""Judges a call at a time (seconds since the epoch); None leaves it to the next gate."""


def visibility_gate(call: Call, policy: Policy, now: float) -> Verdict | None:
    """Deny calls of tools, resources and prompts that are hidden from the agent."""
    del now
    # The lists name what a server offers; its requests to the agent are for the rules to judge.
    if call.kind in SERVER_KINDS:
        return None
    if policy.visibility.allows(call.server, call.name, spelled=call.spelled):
        return None
    return Verdict(DENY, "visibility", "not_exposed", f"{call.kind} is not exposed")


def rules_gate(call: Call, policy: Policy, now: float) -> Verdict | None:
    """Apply the first rule that matches, or the default; leave ``policy`` rules to Cedar."""
    first, *others = policy.rules.matches(call)
    verdict = _by_rule(call, policy, first)
    if not others:
        return verdict
    # Which rule matches depends on the server's reading of the arguments.
    verdicts = [verdict, *(_by_rule(call, policy, rule) for rule in others)]
    decided = [one or cedar_gate(call, policy, now) for one in verdicts]
    return strictest(one for one in decided if one is not None)


def _by_rule(call: Call, policy: Policy, rule: Rule | None) -> Verdict | None:
    """Return the verdict of a rule, or of the default; None if Cedar decides."""
    if rule is None:
        default = policy.server_requests if call.kind in SERVER_KINDS else policy.default
        kind = "governance_denied" if default == DENY else ""
        verdict = Verdict(default, "default", kind, "no rule matches", "default")
        workflow = ""
    else:
        verdict, workflow = rule.verdict, rule.workflow
        if rule.scopes and (refusal := lacks_scopes(call, rule.scopes, rule.id)) is not None:
            return refusal
    if verdict.action == APPROVE:
        return _ask(policy, verdict, workflow)
    return None if verdict.action == POLICY else verdict


def cedar_gate(call: Call, policy: Policy, now: float) -> Verdict | None:
    """Evaluate Cedar; only reached by a call whose rule has ``action: policy``."""
    if policy.cedar is None:
        # Fail closed: a rule asked for a decision that nothing can make.
        return Verdict(DENY, "cedar", "policy_denied", "no Cedar policies are configured")
    decision = policy.cedar.decide(call, now)
    if not decision.permitted:
        return Verdict(DENY, "cedar", "policy_denied", decision.reason, decision.policy)
    verdict = Verdict(FORWARD, "cedar", "", decision.reason, decision.policy)
    if decision.workflow is None:
        return verdict
    on_facts = policy.cedar.looks_at("facts")
    return _ask(policy, verdict._replace(action=APPROVE, on_facts=on_facts), decision.workflow)


def contents_gate(call: Call, policy: Policy, now: float) -> Verdict | None:
    """Deny calls with secrets in their arguments, if the policy says so for the server.

    It runs after access was granted, and not for the requests of servers, which are inspected like
    results.
    """
    del now
    contents = policy.contents
    if (
        contents is None
        or call.kind in SERVER_KINDS
        or not contents.inspects_arguments(call.server)
    ):
        return None
    from thoughtgate.policy.inspection.arguments import blocked_findings  # most gates need none

    findings = blocked_findings(call, contents.of(call.server))
    if not findings:
        return None
    named = ", ".join(f"{found.check} at {found.where}" for found in findings[:_NAMED])
    reason = f"the arguments contain secrets: {named}"
    return Verdict(DENY, "contents", "content_blocked", reason, findings=findings)


_BY_NAME: Final = frozenset({"visibility", "rules", "default"})
"""The gates whose verdict may depend on names alone; Cedar also looks at the arguments."""

GATES: Final[tuple[Gate, ...]] = (visibility_gate, rules_gate, cedar_gate)
"""The gates without state, in order."""


def judge_alone(call: Call, policy: Policy, now: float) -> Verdict:
    """Return the verdict of the first gate that has one, by this policy without its layers."""
    # Exact rules can match the original spelling of a URI, so its readings are always judged anew.
    if not call.spelled:
        known = policy.known.get(call[:3])  # by server, kind and name
        if known is not None:
            return known
    if policy.flows.asked:
        call = with_outbound(call, policy)
    for gate in GATES:
        verdict = run_gate(gate, call, policy, now)
        if verdict is not None:
            _remember(call, policy, verdict)
            return verdict
    # Unreachable while Cedar always decides. Fail closed in case a gate is added later.
    return Verdict(DENY, "internal", "internal_error", "no gate has a verdict")


def _remember(call: Call, policy: Policy, verdict: Verdict) -> None:
    """Keep a verdict that every further call of this tool, resource or prompt gets as well."""
    if verdict.gate not in _BY_NAME or call.spelled or len(call.name) > MAX_KEPT:
        return
    rules = policy.rules.candidates(call.server, call.kind, call.name)
    if rules and not rules[0].is_unconditional:
        return
    if len(policy.known) >= MAX_REMEMBERED:
        policy.known.clear()
    policy.known[call[:3]] = verdict


def with_outbound(call: Call, policy: Policy) -> Call:
    """Return a call with the fact ``outbound``, if this policy's own lists establish it."""
    return call._replace(facts=policy.flows.facts_of(call.server, call.name, call.facts))


class Step(NamedTuple):
    """One gate's part in a verdict, for ``policy explain``."""

    gate: str
    """The name of the gate."""
    looked_at: str
    """What the gate considered."""
    verdict: Verdict | None
    """Its verdict; None if it left the call to the next gate."""


def explain_alone(call: Call, policy: Policy, now: float) -> list[Step]:
    """Run the same gates as ``judge_alone`` and return what each considered and decided."""
    steps = []
    if policy.flows.asked:
        call = with_outbound(call, policy)
    for gate in GATES:
        steps.append(explain_gate(gate, call, policy, now))
        if steps[-1].verdict is not None:
            break
    return steps


def explain_gate(gate: Gate, call: Call, policy: Policy, now: float) -> Step:
    """Return what one gate considered and decided."""
    verdict = run_gate(gate, call, policy, now)
    name, describe = _DESCRIPTIONS[gate]
    failed = verdict is not None and verdict.gate == "internal"
    return Step(name, "the gate failed" if failed else describe(call, policy), verdict)


def _ask(policy: Policy, verdict: Verdict, workflow: str) -> Verdict:
    """Fill in the workflow of an ``approve`` verdict; an unknown workflow denies the call."""
    workflow = workflow or DEFAULT_WORKFLOW
    if workflow not in policy.workflows:
        return verdict._replace(
            action=DENY, kind="internal_error", reason="the approval workflow does not exist"
        )
    return verdict._replace(workflow=workflow)


def run_gate(gate: Gate, call: Call, policy: Policy, now: float) -> Verdict | None:
    """Return the verdict of one gate; a gate that fails denies the call."""
    try:
        return gate(call, policy, now)
    except Exception as error:  # noqa: BLE001  whatever fails, the call must not pass
        reason = f"the {_DESCRIPTIONS[gate][0]} gate failed: {type(error).__name__}"
        return Verdict(DENY, "internal", "internal_error", reason)


def _seen_by_visibility(call: Call, policy: Policy) -> str:
    exposure = policy.visibility.exposure(call.server)
    if not exposure.enabled:
        return f"server {call.server!r} is disabled"
    names = ", ".join([*sorted(exposure.names), *(glob.pattern for glob in exposure.globs)])
    if exposure.mode == ALLOW:
        exposed = f"only {names}" if names else "nothing"
    else:
        exposed = f"all but {names}" if names else "all"
    own = "" if call.server in policy.visibility.servers else " (not named in servers)"
    return f"server {call.server!r}{own} exposes {exposed}"


def _seen_by_rules(call: Call, policy: Policy) -> str:
    rules = policy.rules.candidates(call.server, call.kind, call.name, call.spelled)
    readings = ArgumentReadings()
    matching = policy.rules.matches(call._replace(readings=readings))
    told = []
    for rule in rules:
        matches = rule in matching
        facts = f" on the facts {' '.join(sorted(rule.facts))}" if rule.facts else ""
        needs = f" and needs the scopes {' '.join(rule.scopes)}" if rule.scopes else ""
        told.append(
            f"{rule.id} {f'matches{facts}{needs}' if matches else 'fails on its conditions'}"
        )
        if rule is matching[-1]:
            break
    else:
        told.append(f"default {policy.default}")
    if readings.ambiguous or len(matching) > 1:
        told.append("keys differ only in case, and the strictest reading of the arguments counts")
    return f"{len(rules)} of {len(policy.rules.rules)} rules name it: {', '.join(told)}"


def _seen_by_cedar(call: Call, policy: Policy) -> str:
    del call
    return "no policies" if policy.cedar is None else f"{policy.cedar.count} policies"


def _seen_by_contents(call: Call, policy: Policy) -> str:
    del policy
    where = "the URI" if call.kind == RESOURCE else "the arguments"
    return f"secrets in {where}, because of servers.{call.server}.arguments.block_secrets"


_DESCRIPTIONS: Final[Mapping[Gate, tuple[str, Callable[[Call, Policy], str]]]] = {
    visibility_gate: ("visibility", _seen_by_visibility),
    rules_gate: ("rules", _seen_by_rules),
    cedar_gate: ("cedar", _seen_by_cedar),
    contents_gate: ("contents", _seen_by_contents),
}
"""The name of each gate, and a function that describes what it considered."""
