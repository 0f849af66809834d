"""Facts: what findings and servers establish, and which calls send data out."""

import pytest

from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.policy.call import APPROVE, FORWARD, Call
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.cedar_text import CedarSource
from thoughtgate.policy.evaluation import establish, evaluate, explain
from thoughtgate.policy.facts import (
    OUTBOUND,
    PRIVATE,
    UNTRUSTED,
    Flows,
    LocalFacts,
    ServerFlows,
    facts_of_checks,
)
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.layers import with_layers
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.rules import Rule, RuleSet

BOTH = frozenset({UNTRUSTED, PRIVATE})
ALL = frozenset({UNTRUSTED, PRIVATE, OUTBOUND})


def asking(flows: Flows | None = None, **more: object) -> Policy:
    rules = RuleSet([Rule("trifecta", APPROVE, facts=ALL)])
    flows = flows or Flows({"quiet": ServerFlows(outbound=())}, asked=True)
    return Policy(default=FORWARD, rules=rules, flows=flows, **more)  # type: ignore[arg-type]


def call(server: str = "s", facts: frozenset[str] | None = BOTH, name: str = "t") -> Call:
    return Call(server, "tool", name, {}, facts=facts)


def test_findings_establish_facts_by_their_class() -> None:
    assert facts_of_checks(["instructions-secrecy"]) == {UNTRUSTED}
    assert facts_of_checks(["secret-token", "personal-card"]) == {PRIVATE}
    assert facts_of_checks(["hidden-characters", "unreadable"]) == frozenset()


def test_a_server_without_a_list_is_outbound_and_one_with_an_empty_list_is_not() -> None:
    listed = ServerFlows(outbound=compile_globs(["send_*"]))
    flows = Flows({"mail": listed, "quiet": ServerFlows(outbound=())})
    assert flows.is_outbound("unknown", "read")
    assert flows.is_outbound("mail", "send_mail")
    assert not flows.is_outbound("mail", "list_mail")
    assert not flows.is_outbound("quiet", "anything")
    assert not Flows({"*": ServerFlows(outbound=())}).is_outbound("unknown", "read")


@pytest.mark.parametrize(
    ("server", "facts", "action"),
    [
        ("s", BOTH, APPROVE),
        ("s", frozenset({UNTRUSTED}), FORWARD),
        ("s", frozenset(), FORWARD),
        ("quiet", BOTH, FORWARD),
        # A caller of the engine cannot claim that a call is outbound.
        ("quiet", ALL, FORWARD),
    ],
)
def test_a_rule_needs_all_of_its_facts(
    server: str, facts: frozenset[str] | None, action: str
) -> None:
    assert evaluate(call(server, facts), asking(), 0.0).action == action


def test_facts_that_cannot_be_read_count_as_holding() -> None:
    assert evaluate(call("quiet", None), asking(), 0.0).action == APPROVE


def test_every_policy_decides_by_its_own_lists() -> None:
    user = asking(Flows({"s": ServerFlows(outbound=())}, asked=True))
    floor = asking(Flows({}, asked=True))
    assert evaluate(call(), user, 0.0).action == FORWARD
    both = with_layers(user, Layer("organisation", floor, {"default": "default"}))
    assert evaluate(call(), both, 0.0).rule == "organisation:trifecta"


def test_the_explanation_names_the_facts() -> None:
    (_, step) = explain(call(), asking(), 0.0)
    assert "trifecta matches on the facts outbound private untrusted" in step.looked_at


def test_cedar_sees_the_facts_of_a_call() -> None:
    text = (
        "permit(principal, action, resource); forbid(principal, action, resource) when "
        '{ context.facts.containsAll(["untrusted", "private", "outbound"]) };'
    )
    engine = CedarEngine([CedarSource("p.cedar", text)])
    policy = Policy(default="policy", cedar=engine, flows=Flows(asked=engine.looks_at("facts")))
    assert evaluate(call(facts=frozenset({PRIVATE})), policy, 0.0).action == FORWARD
    assert evaluate(call(), policy, 0.0).gate == "cedar"
    assert "cannot be read" in evaluate(call(facts=None), policy, 0.0).reason


def test_facts_in_memory_end_with_their_window() -> None:
    facts = LocalFacts()
    facts.establish("ann", [UNTRUSTED], 100.0, window_s=10.0, cause="web")
    assert facts.of("ann", 105.0) == {UNTRUSTED}
    assert facts.of("bob", 105.0) == frozenset()
    assert facts.of("ann", 110.0) == frozenset()


def test_a_layer_can_label_servers_and_lengthen_the_window() -> None:
    user = Policy(flows=Flows({"web": ServerFlows(frozenset({UNTRUSTED}))}, window_s=60.0))
    floor = Policy(flows=Flows({"web": ServerFlows(frozenset({PRIVATE}))}, window_s=600.0))
    both = with_layers(user, Layer("organisation", floor))
    assert both.provides("web") == BOTH
    assert both.fact_window_s() == 600.0
    facts = LocalFacts()
    assert establish(call("web"), both, facts, 0.0) is None
    assert facts.of("local", 599.0) == BOTH
    assert not Policy().establishes_facts()
    assert both.establishes_facts()


def test_the_config_says_what_servers_provide() -> None:
    text = """
schema: 1
default: forward
facts: {window: 10m}
servers:
  web: {provides: [untrusted]}
  mail: {outbound: ["send_*"]}
rules: [{when_facts: [untrusted, outbound], action: deny}]
"""
    settings = load_settings(text, file="c.yaml", env={}, read_text=lambda _: "")
    policy = build_policy(settings)
    assert policy.flows.window_s == 600.0
    assert policy.provides("web") == {UNTRUSTED}
    assert policy.looks_at_facts()
    sent = call("mail", frozenset({UNTRUSTED}), "send_mail")
    assert evaluate(sent, policy, 0.0).action == "deny"
    assert evaluate(sent._replace(name="list"), policy, 0.0).action == FORWARD
