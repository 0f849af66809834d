"""Evaluation of a call: all readings are judged, and the strictest verdict counts."""

from typing import Any

import pytest

from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.policy import evaluation
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, Call, Verdict
from thoughtgate.policy.evaluation import evaluate, explain, hidden_names, is_visible
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.layers import PROJECT, with_layers
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import ALLOW, BLOCK, Exposure, Visibility

DENY_ETC = Policy(
    rules=RuleSet([Rule("etc", DENY, Selector(names=compile_globs(["file:///etc/*"])))]),
    default=FORWARD,
)


def policy(rules: str, default: str = "forward", cedar: str = "") -> Policy:
    text = f"schema: 1\ndefault: {default}\napproval: {{default: {{channel: console}}}}\n{rules}"
    settings = load_settings(text, file="p.yaml", env={}, read_text=lambda _: cedar)
    return build_policy(settings)


def resource(uri: str) -> Call:
    return Call("fs", "resource", uri, {}, method="resources/read")


def judge(rules: Policy, arguments: dict[str, Any]) -> Verdict:
    return evaluate(Call("fs", "tool", "read", arguments), rules, 0.0)


@pytest.mark.promise("readings-uri")
@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "file:///tmp/../etc/passwd",
        "file:/etc/passwd",
        "file:etc/passwd",
        "file://localhost/etc/passwd",
        "file:///tmp/.\t./etc/passwd",
    ],
)
def test_another_spelling_of_a_denied_resource_is_denied(uri: str) -> None:
    assert evaluate(resource(uri), DENY_ETC, 0.0).action == DENY
    layered = with_layers(Policy(default=FORWARD), Layer(PROJECT, DENY_ETC))
    assert evaluate(resource(uri), layered, 0.0).rule == "project:etc"


def test_other_resources_are_forwarded() -> None:
    assert evaluate(resource("file:///tmp/etc/x"), DENY_ETC, 0.0).action == FORWARD


def test_a_uri_with_too_many_readings_is_denied_and_explained() -> None:
    call = resource("http:%40Elocalhost::80/localhost\u00e9.%20//\\%255c%5c%3f@E")

    assert evaluate(call, DENY_ETC, 0.0).action == DENY
    assert explain(call, DENY_ETC, 0.0)[-1].gate == "reading"
    block = Visibility({"fs": Exposure.of(BLOCK, ["file:///etc/*"])})
    assert not is_visible(block, "fs", "resource", call.name)
    assert is_visible(Visibility(), "fs", "resource", call.name)
    assert not is_visible(Visibility({}, (block,)), "fs", "resource", call.name)


def test_a_list_cannot_choose_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MAX_READ_IN_LIST", 20)
    block = Visibility({"fs": Exposure.of(BLOCK, ["file:///etc/*"])})
    names = ["file:///a%20b", "file:///c%20d", "file:///e%20f", "file:///plain"]

    assert hidden_names(block, "fs", "resource", names[:2]) == frozenset()
    assert hidden_names(block, "fs", "resource", names) == frozenset(names[2:])


def test_a_forwarded_resource_needs_all_its_readings_forwarded() -> None:
    allow = policy("rules: [{resource: 'file:///tmp/*', action: forward}]", "deny")

    assert evaluate(resource("file:///tmp/a%20b"), allow, 0.0).action == FORWARD
    assert evaluate(resource("file:///tmp/../etc/x"), allow, 0.0).action == DENY
    assert evaluate(resource("file:///tmp/%2e%2e/etc/x"), allow, 0.0).action == DENY


def test_a_rule_that_names_a_uri_exactly_means_all_its_readings() -> None:
    allow = policy(
        "rules: [{resource: 'https://Example.com', action: forward},"
        " {resource: 'https://*', action: deny}]",
        "deny",
    )

    assert evaluate(resource("https://Example.com"), allow, 0.0).action == FORWARD
    assert evaluate(resource("https://example.com"), allow, 0.0).action == DENY
    assert evaluate(resource("https://Example.com/a"), allow, 0.0).action == DENY


def test_an_earlier_denial_of_another_reading_still_counts() -> None:
    both = policy(
        "rules: [{resource: 'file:///etc/*', action: deny},"
        " {resource: 'file:/etc/x', action: forward}]"
    )

    assert evaluate(resource("file:/etc/x"), both, 0.0).action == DENY


def test_results_are_redacted_if_the_rule_of_any_reading_says_so() -> None:
    rules = policy(
        "rules: [{resource: 'file:///etc/*', action: forward, redact: true},"
        " {resource: '*', action: forward}]"
    )

    assert not evaluate(resource("file:///tmp/x"), rules, 0.0).redact
    assert evaluate(resource("file:/etc/x"), rules, 0.0).redact


def test_a_resource_is_visible_only_in_all_its_readings() -> None:
    block = Visibility({"fs": Exposure.of(BLOCK, ["file:///etc/*"])})
    allow = Visibility({"fs": Exposure.of(ALLOW, ["file:///tmp/*", "memo://A"])})

    assert is_visible(block, "fs", "resource", "file:///tmp/x")
    assert not is_visible(block, "fs", "resource", "file:/etc/x")
    assert is_visible(block, "fs", "tool", "file:/etc/x")
    assert is_visible(allow, "fs", "resource", "file:///tmp/a%20b")
    assert not is_visible(allow, "fs", "resource", "file:///tmp/../etc/x")
    assert not is_visible(allow, "fs", "resource", "file:///etc/x")
    assert is_visible(allow, "fs", "resource", "memo://A")
    assert not is_visible(allow, "fs", "resource", "memo://a")


def test_the_reading_that_decided_is_explained() -> None:
    steps = explain(resource("file:/etc/passwd"), DENY_ETC, 0.0)

    (reading,) = [step for step in steps if step.gate == "reading"]
    assert "'file:///etc/passwd'" in reading.looked_at
    assert steps[-1].verdict is not None
    assert steps[-1].verdict.action == DENY
    plain = explain(resource("file:///tmp/x"), DENY_ETC, 0.0)
    assert all(step.gate != "reading" for step in plain)


UNDER = "rules: [{tool: read, when: {path: {under: /tmp}}, action: forward}]"
AMOUNT = "rules: [{tool: read, when: {amount: {gt: 1000}}, action: deny}]"


@pytest.mark.promise("readings-keys")
@pytest.mark.parametrize(
    ("rules", "default", "arguments"),
    [
        (UNDER, "deny", {"path": "/tmp/x", "Path": "/etc/passwd"}),
        (UNDER, "deny", {"Path": "/etc/passwd", "path": "/tmp/x"}),
        (UNDER, "deny", {"Path": "/tmp/x"}),
        (AMOUNT, "forward", {"Amount": 5000}),
        (AMOUNT, "forward", {"amount": 5, "AMOUNT": 5000}),
        (AMOUNT, "forward", {"amount": 5000, "AMOUNT": 5}),
        (AMOUNT.replace("amount", "'to.amount'"), "forward", {"To": {"Amount": 5000}}),
        (AMOUNT.replace("amount", "'to.amount'"), "forward", {"to": {}, "To": {"amount": 5000}}),
        (AMOUNT.replace("amount", "task"), "forward", {"ta\u017f\u212a": 5000}),
    ],
)
def test_a_rule_cannot_be_bypassed_by_the_case_of_a_key(
    rules: str, default: str, arguments: dict[str, Any]
) -> None:
    assert judge(policy(rules, default), arguments).action == DENY


def test_the_stricter_of_the_rules_for_different_readings_counts() -> None:
    rules = policy(
        "rules: [{tool: read, when: {path: {under: /tmp}}, action: approve},"
        " {tool: read, when: {path: {under: /srv}}, action: forward},"
        " {tool: read, action: deny}]"
    )

    assert judge(rules, {"path": "/tmp/x"}).action == APPROVE
    assert judge(rules, {"path": "/tmp/x", "Path": "/etc/x"}).action == DENY
    assert judge(rules, {"path": "/tmp/x", "Path": "/tmp/y"}).action == APPROVE
    (_, step) = explain(
        Call("fs", "tool", "read", {"path": "/tmp/x", "Path": "/etc/x"}), rules, 0.0
    )
    assert "keys differ only in case" in step.looked_at


def test_a_variant_of_a_key_that_decides_is_explained() -> None:
    rules = policy(AMOUNT)

    varied = explain(Call("fs", "tool", "read", {"Amount": 5000}), rules, 0.0)[-1]
    plain = explain(Call("fs", "tool", "read", {"amount": 5000}), rules, 0.0)[-1]

    assert "keys differ only in case" in varied.looked_at
    assert "keys differ" not in plain.looked_at


def test_cedar_is_asked_if_a_rule_of_one_reading_says_so() -> None:
    cedar = 'permit(principal, action, resource) when { context.arguments.path like "/tmp/*" };'
    rules = policy(
        "rules: [{tool: read, when: {path: {under: /tmp}}, action: policy},"
        " {tool: read, action: approve}]\ncedar: {policies: [p.cedar]}",
        cedar=cedar,
    )

    assert judge(rules, {"path": "/tmp/x"}).action == FORWARD
    assert judge(rules, {"path": "/srv/x"}).action == APPROVE
    assert judge(rules, {"path": "/tmp/x", "Path": "/srv/x"}).gate == "cedar"
    assert judge(rules, {"path": "/tmp/x", "Path": "/srv/x"}).action == DENY
    assert judge(rules, {"path": "/tmp/x", "Path": "/tmp/y"}).action == FORWARD


class _CountedKeys(dict[str, Any]):
    """Arguments that count how often all their keys are read."""

    reads = 0

    def __iter__(self) -> Any:
        self.reads += 1
        return super().__iter__()


def test_the_keys_are_read_once_whatever_the_number_of_rules_and_readings() -> None:
    rules = ", ".join(
        f"{{resource: '*', when: {{a: {{gt: {number}}}}}, action: deny}}" for number in range(100)
    )
    arguments = _CountedKeys(b=1)
    call = Call("fs", "resource", "file:/tmp/%2e%2e/x", arguments)

    assert evaluate(call, policy(f"rules: [{rules}]"), 0.0).action == FORWARD
    assert arguments.reads <= 2
