"""From settings to the policy."""

import pytest

from thoughtgate.config.build import build_policy, policy_version
from thoughtgate.config.load import load_settings
from thoughtgate.config.settings import Settings
from thoughtgate.policy.call import Call
from thoughtgate.policy.evaluation import evaluate
from thoughtgate.policy.limits import LimitState
from thoughtgate.policy.policy import Policy

HEAD = "schema: 1\ndefault: deny\n"


def settings(more: str = "") -> Settings:
    return load_settings(
        HEAD + more,
        file="t.yaml",
        env={},
        read_text=lambda _: "permit(principal, action, resource);",
    )


def action(policy: Policy, server: str, name: str, kind: str = "tool", **arguments: object) -> str:
    return evaluate(Call(server, kind, name, arguments), policy, 0.0).action


def test_the_policy_judges_as_the_settings_say() -> None:
    policy = build_policy(
        settings(
            """
servers:
  fs: {expose: {allow: [read_file, "list_*", pay, ask]}}
  off: {enabled: false}
  "*": {expose: {block: ["admin_*"]}}
rules:
  - {tool: pay, when: {amount: {gt: 100}}, action: approve}
  - {tool: [read_file, pay], action: forward}
  - {tool: ask, action: policy}
  - {resource: "file:///tmp/*", action: forward}
  - {words: [safe], action: forward}
cedar: {policies: [p.cedar]}
limits:
  - {tool: read_file, budget: 1, breaker: {failures: 1}, rate: 5/s}
"""
        ),
        secrets=["hunter2"],
    )
    assert action(policy, "fs", "read_file") == "forward"
    assert action(policy, "fs", "list_x") == "deny"
    assert action(policy, "fs", "pay", amount=5) == "forward"
    assert action(policy, "fs", "pay", amount=500) == "approve"
    assert action(policy, "fs", "ask") == "forward"
    assert action(policy, "off", "read_file") == "deny"
    assert action(policy, "else", "admin_x") == "deny"
    assert action(policy, "else", "file:///tmp/a", "resource") == "forward"
    assert action(policy, "else", "be_safe") == "forward"
    assert policy.redactor.mask_text("hunter2") == "[injected secret, 7 characters]"
    counted = LimitState(policy.limits)
    call = Call("fs", "tool", "read_file", {})
    counted.commit(call, 0.0)
    verdict = counted.check(call, 0.0)
    assert verdict is not None
    assert verdict.rule == "limits[0]"


def test_the_version_is_stable_and_changes_with_what_changes_a_verdict() -> None:
    version = policy_version(settings())
    assert version == policy_version(settings())
    assert len(version) == 16
    for more in (
        "profile: development",
        "rules: [{tool: x, action: deny}]",
        "servers: {a: {expose: {block: [x]}}}",
        "limits: [{budget: 1}]",
        "cedar: {policies: [p]}",
        "approval: {default: {timeout: 1m}}",
    ):
        assert policy_version(settings(more)) != version, more


@pytest.mark.parametrize("more", ["servers: {a: {name: X}}", "telemetry: {log_level: debug}"])
def test_the_version_ignores_what_changes_no_verdict(more: str) -> None:
    base = "servers: {a: {}}" if "servers" in more else ""
    assert policy_version(settings(more)) == policy_version(settings(base))


def test_the_starter_flag_is_passed_on() -> None:
    assert build_policy(settings(), starter=True).starter
