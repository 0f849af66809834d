"""The judge and readings: lists, held calls and the record of what other spellings reach."""

from typing import Any

import pytest

from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.core.approval import Decision
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.policy.call import APPROVE, DENY, FORWARD
from thoughtgate.policy.policy import Policy
from thoughtgate.wire.methods import Named


def _policy(text: str) -> Policy:
    head = "schema: 1\napproval: {default: {channel: console}}\n"
    return build_policy(load_settings(head + text, file="t.yaml", env={}, read_text=lambda _: ""))


def _request(kind: str, name: str, arguments: dict[str, Any]) -> CallRequest:
    method = {"tool": "tools/call", "resource": "resources/read"}[kind]
    named = (Named(kind, name, arguments),)
    return CallRequest("files", "session", "local", method, named, 100, "mcp_stdio", 0.0)


@pytest.mark.promise("readings-uri")
def test_an_entry_that_is_hidden_in_any_reading_is_not_listed() -> None:
    policy = _policy(
        "default: forward\nservers: {files: {command: x, expose: {block: ['file:///etc/*']}}}"
    )
    uris = ["file:///tmp/a", "file:/etc/a", "file:///tmp/%2e%2e/etc/a", "note://a"]

    hidden, record = Judge(policy, "run").screen(
        "files", "session", "resources/list", tuple({"uri": uri} for uri in uris), 0.0
    )

    assert hidden == {"file:/etc/a", "file:///tmp/%2e%2e/etc/a"}
    assert record.body["list"]["hidden"] == sorted(hidden)


def test_an_approved_call_is_judged_again_in_all_readings() -> None:
    ask = "rules: [{tool: read, when: {path: {under: /tmp}}, action: approve}, {tool: read, action: %s}]"
    judge = Judge(_policy("default: deny\n" + ask % "approve"), "run")
    arguments = {"path": "/tmp/x", "Path": "/etc/passwd"}
    ruling = judge.judge(_request("tool", "read", arguments))
    assert ruling.verdict.action == APPROVE

    judge.replace_policy(_policy("default: deny\n" + ask % "deny"))
    settled = judge.settle(ruling.call_id, Decision(approved=True), 1.0)

    assert (settled.verdict.action, settled.verdict.kind) == (DENY, "policy_drift")


@pytest.mark.promise("readings-uri")
def test_the_record_has_the_uri_as_sent_and_the_rule_that_decided() -> None:
    judge = Judge(
        _policy("default: forward\nrules: [{id: etc, resource: 'file:///etc/*', action: deny}]"),
        "run",
    )

    denied = judge.judge(_request("resource", "file:/etc/passwd", {}))
    forwarded = judge.judge(_request("resource", "file:///tmp/x", {}))

    assert denied.verdict.action == DENY
    assert denied.records[0].body["call"]["tool_name"] == "file:/etc/passwd"
    assert denied.records[1].body["decision"]["rule_id"] == "etc"
    assert forwarded.verdict.action == FORWARD
