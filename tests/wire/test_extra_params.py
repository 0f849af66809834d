"""What params carry beyond a call, and what of it is only bookkeeping."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from thoughtgate.wire.canonical import canonical_json
from thoughtgate.wire.extra_params import (
    BOOKKEEPING,
    MAX_OBJECT,
    MAX_PARTS,
    extra_params,
    repeated_params,
)
from thoughtgate.wire.revisions import CAPABILITIES_KEY, CLIENT_KEY, VERSION_KEY

CALL = {"name": "read", "arguments": {"path": "/tmp/x"}}
CAPABILITIES = {
    "elicitation": {"form": {}},
    "sampling": {},
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}},
}
HONEST: dict[str, Any] = {
    "progressToken": 7,
    VERSION_KEY: "2026-07-28",
    CAPABILITIES_KEY: CAPABILITIES,
    CLIENT_KEY: {"name": "agent", "title": "An Agent", "version": "1.2.3"},
    "io.modelcontextprotocol/logLevel": "warning",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
    "baggage": "userId=alice,serverNode=DF%2028;a=1",
    "claudecode/toolUseId": "toolu_015VxYz",
    "callId": "call_1a2B",
    "vscode.conversationId": "3f2a-11",
    "vscode.requestId": "request_5",
    "ai.opencode/sessionID": "ses_01",
    "antigravity.google/conversation_id": "c-1",
}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", CALL),
        ("tools/call", {"name": "read"}),
        ("tools/call", {**CALL, "_meta": {}}),
        ("tools/call", {**CALL, "_meta": HONEST}),
        ("tools/call", {**CALL, "_meta": {"progressToken": "a-token:1/2"}}),
        ("tools/call", {**CALL, "task": {}}),
        ("tools/call", {**CALL, "task": {"ttl": 60_000}}),
        ("prompts/get", {"name": "greet", "arguments": {"who": "me"}}),
        ("resources/read", {"uri": "file:///x"}),
        ("resources/subscribe", {"uri": "file:///x", "_meta": {"progressToken": 1}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}}),
        (
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a:b"]}},
        ),
        ("subscriptions/listen", {}),
    ],
)
def test_a_plain_call_has_nothing_extra(method: str, params: dict[str, Any]) -> None:
    assert extra_params(method, params) is None


@pytest.mark.promise("params-are-bound")
@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("tools/call", {"cwd": "/etc"}),
        ("tools/call", {"uri": "file:///etc/passwd"}),
        ("tools/call", {"inputResponses": {"ask": {"action": "accept"}}}),
        ("tools/call", {"requestState": "opaque"}),
        ("tools/call", {"_meta": {"com.example/root": "/etc"}}),
        ("tools/call", {"_meta": "text"}),
        ("tools/call", {"_meta": None}),
        ("tools/call", {"task": {"ttl": 1, "shell": "rm"}}),
        ("tools/call", {"task": {"ttl": "rm"}}),
        ("tools/call", {"task": {"ttl": 2**60}}),
        ("tools/call", {"task": "rm"}),
        ("tools/call", {"ref": {"type": "x"}}),
        ("tools/call", {"notifications": {}}),
        ("resources/read", {"name": "x"}),
        ("completion/complete", {"argument": {"name": "path", "value": "/etc"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "a", "title": "b"}}),
        ("completion/complete", {"ref": 5}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": "rm"}}),
        ("subscriptions/listen", {"notifications": {"com.example/x": True}}),
    ],
)
def test_everything_else_is_extra(method: str, more: dict[str, Any]) -> None:
    plain: dict[str, dict[str, Any]] = {"resources/read": {"uri": "a:b"}, "tools/call": CALL}
    named = plain.get(method, {})
    assert extra_params(method, {**named, **more}) == more


def test_bookkeeping_beside_an_extra_member_of_meta_is_left_out() -> None:
    params = {**CALL, "_meta": {**HONEST, "com.example/root": "/etc"}}
    assert extra_params("tools/call", params) == {"_meta": {"com.example/root": "/etc"}}


@pytest.mark.promise("params-are-bound")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("progressToken", "x" * 257),
        ("progressToken", "two words"),
        ("progressToken", 2**53),
        ("progressToken", True),
        ("progressToken", 1.5),
        ("progressToken", {"path": "/etc"}),
        (VERSION_KEY, "2026; rm"),
        (VERSION_KEY, "2" * 33),
        (VERSION_KEY, "2026-07-28\n"),
        (CAPABILITIES_KEY, []),
        (CAPABILITIES_KEY, {"experimental": {"x": "y" * MAX_OBJECT}}),
        (CAPABILITIES_KEY, {"experimental": [0] * MAX_PARTS}),
        (CAPABILITIES_KEY, {"x": "\u200b"}),
        (CAPABILITIES_KEY, {"x": 2**53}),
        (CLIENT_KEY, {"name": "a\nb"}),
        (CLIENT_KEY, {"näme": "a"}),
        ("io.modelcontextprotocol/logLevel", "warning warning"),
        ("traceparent", "00-/etc/passwd"),
        ("tracestate", "x" * 513),
        ("baggage", "x" * 1025),
        ("baggage", "ü"),
        ("claudecode/toolUseId", "$(rm)"),
        ("vscode.requestId", "x" * 129),
        ("vscode.requestId", ""),
        ("callId", 5),
    ],
)
def test_a_value_that_bookkeeping_does_not_need_is_extra(key: str, value: Any) -> None:
    params = {**CALL, "_meta": {**HONEST, key: value}}
    assert extra_params("tools/call", params) == {"_meta": {key: value}}


def test_every_kind_of_bookkeeping_is_tested_and_described() -> None:
    assert HONEST.keys() == BOOKKEEPING.keys()
    assert all(one.key == key and one.sender and one.allows for key, one in BOOKKEEPING.items())


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_NAME = st.text(min_size=1, max_size=8).filter(lambda name: name not in {"name", "arguments"})


@given(_NAME, _JSON, _JSON)
def test_any_change_of_a_member_that_is_not_bookkeeping_changes_what_is_extra(
    name: str, one: Any, other: Any
) -> None:
    assume(name not in {"_meta", "task"} and canonical_json(one) != canonical_json(other))
    first = extra_params("tools/call", {**CALL, name: one})
    second = extra_params("tools/call", {**CALL, name: other})
    assert canonical_json(first) != canonical_json(second)
    assert canonical_json(first) != canonical_json(extra_params("tools/call", CALL))


@given(_NAME, _JSON, _JSON)
def test_any_change_of_a_member_of_meta_that_is_not_bookkeeping_changes_what_is_extra(
    name: str, one: Any, other: Any
) -> None:
    assume(name not in BOOKKEEPING and canonical_json(one) != canonical_json(other))
    first = extra_params("tools/call", {**CALL, "_meta": {**HONEST, name: one}})
    second = extra_params("tools/call", {**CALL, "_meta": {**HONEST, name: other}})
    assert canonical_json(first) != canonical_json(second)


@given(st.sampled_from(sorted(BOOKKEEPING)), _JSON)
def test_a_bookkeeping_member_is_left_out_or_extra_and_nothing_in_between(
    key: str, value: Any
) -> None:
    params = {**CALL, "_meta": {key: value}}
    before = copy.deepcopy(params)
    assert extra_params("tools/call", params) in (None, {"_meta": {key: value}})
    assert params == before


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (CALL, CALL),
        ({**CALL, "_meta": HONEST}, CALL),
        ({**CALL, "requestState": "s", "inputResponses": {}}, CALL),
        ({**CALL, "_meta": {"x": 1, "progressToken": 2}}, {**CALL, "_meta": {"x": 1}}),
        ({**CALL, "_meta": "odd"}, {**CALL, "_meta": "odd"}),
        ({**CALL, "cwd": "/"}, {**CALL, "cwd": "/"}),
    ],
)
def test_a_repeated_call_differs_only_in_answers_and_bookkeeping(
    params: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert repeated_params(params) == expected
