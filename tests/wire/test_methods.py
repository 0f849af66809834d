"""What each method is to the gate, and what a request names."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thoughtgate.wire import methods as module
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Fault
from thoughtgate.wire.methods import (
    GATED,
    LISTINGS,
    NEEDS_ID,
    PASSED,
    TASK_METHODS,
    Named,
    is_variant,
    named_by,
    named_by_server,
)


@pytest.mark.parametrize(
    ("method", "params", "named"),
    [
        ("tools/call", {"name": "t"}, [Named("tool", "t", {})]),
        ("tools/call", {"name": "t", "arguments": {"a": 1}}, [Named("tool", "t", {"a": 1})]),
        ("resources/read", {"uri": "file:///a"}, [Named("resource", "file:///a", {})]),
        ("resources/subscribe", {"uri": "u"}, [Named("resource", "u", {})]),
        ("prompts/get", {"name": "p", "arguments": None}, [Named("prompt", "p", {})]),
        ("subscriptions/listen", {}, []),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, []),
        (
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": ["u", "v"]}},
            [Named("resource", "u", {}), Named("resource", "v", {})],
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}},
            [Named("prompt", "p", {})],
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "u"}},
            [Named("resource", "u", {})],
        ),
        ("ping", {}, []),
        ("something/else", {"name": "t"}, []),
    ],
)
def test_a_request_names_what_it_touches(
    method: str, params: dict[str, Any], named: list[Named]
) -> None:
    assert named_by(method, params) == named


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": ""}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": ["t"]}),
        ("tools/call", {"name": "t", "arguments": None}),
        ("tools/call", {"name": "t", "arguments": [1]}),
        ("tools/call", {"name": "t", "arguments": "{}"}),
        ("resources/read", {"name": "u"}),
        ("prompts/get", {"name": "p", "arguments": "x"}),
        ("subscriptions/listen", {"notifications": []}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": "u"}}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [1]}}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [""]}}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["u" * 100] * 1000}}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": "p"}),
        ("completion/complete", {"ref": {}}),
        ("completion/complete", {"ref": {"name": 1}}),
        ("completion/complete", {"ref": {"uri": ""}}),
        ("completion/complete", {"ref": {"name": "p", "uri": "u"}}),
        ("completion/complete", {"ref": {"type": "ref/resource", "name": "p"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "uri": "u"}}),
        ("completion/complete", {"ref": {"type": "ref/tool", "name": "p"}}),
        ("completion/complete", {"ref": {"type": ["ref/prompt"], "name": "p"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": " p"}}),
        ("Tools/Call", {"name": "t"}),
        (" tools/call", {"name": "t"}),
        ("tools/call\u00a0", {"name": "t"}),
        ("tool\u017f/call", {"name": "t"}),
        ("RESOURCES/read", {"uri": "u"}),
    ],
)
def test_a_request_that_does_not_say_what_it_touches_is_wrong(
    method: str, params: dict[str, Any]
) -> None:
    assert isinstance(named_by(method, params), str)


REQUESTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "tools/call": lambda name: {"name": name},
    "prompts/get": lambda name: {"name": name},
    "resources/read": lambda name: {"uri": name},
    "resources/subscribe": lambda name: {"uri": name},
    "subscriptions/listen": lambda name: {
        "notifications": {"resourceSubscriptions": ["note://x", name]}
    },
    "completion/complete": lambda name: {"ref": {"uri": name}},
}
"""Params of each gated method with a name in them."""


@pytest.mark.promise("readings-uri")
@pytest.mark.parametrize("method", REQUESTS)
@pytest.mark.parametrize(
    "name",
    [
        " secret://k",
        "secret://k ",
        "\tsecret://k",
        "secret\t://k",
        "secret://\nk",
        "secret://k\r",
        "secret://k\x00",
        "secret://k\x7f",
        "secret://k\x85",
        "\u00a0secret://k",
        "secret://k\u3000",
        "\ufeffsecret://k",
        "secret://\u2028k",
        "file:///tmp/.\t./etc/passwd",
        "x" * 65_537,
    ],
)
def test_a_name_that_url_parsers_change_is_refused(method: str, name: str) -> None:
    assert isinstance(named_by(method, REQUESTS[method](name)), str)


@pytest.mark.parametrize("method", REQUESTS)
@pytest.mark.parametrize("name", ["note://my note", "caf\u00e9", "a b", "\U0001f600", "n\u200dx"])
def test_a_name_with_inner_spaces_or_other_scripts_is_judged(method: str, name: str) -> None:
    named = named_by(method, REQUESTS[method](name))

    assert not isinstance(named, str)
    assert named[-1].name == name


@pytest.mark.requirement("S000-F-017")
def test_the_passthrough_list_is_neither_gated_nor_filtered() -> None:
    for method in PASSED:
        assert named_by(method, {}) == []
        assert method not in NEEDS_ID
        assert not is_variant(method)


@pytest.mark.promise("one-reading")
@pytest.mark.parametrize(
    "method", ["tools/call\0", "TOOLS/list \0x", "tools/call\0/call", "Tasks/get"]
)
def test_a_method_that_a_lenient_reader_takes_for_a_known_one_is_a_variant(method: str) -> None:
    assert is_variant(method)
    assert "differs from a known one" in named_by(method, {"name": "t"})


def test_a_member_that_a_reader_in_c_takes_for_the_method_is_refused() -> None:
    found = read_frame(rb'{"jsonrpc":"2.0","id":1,"method":"ping","method\u0000":"tools/call"}')

    assert isinstance(found, Fault)
    assert found.check == "ambiguous_key"


def test_a_server_request_that_a_reader_in_c_takes_for_a_gated_one_is_refused() -> None:
    assert "differs from a known one" in named_by_server("roots/list\0", None)


def test_what_is_gated_or_filtered_needs_an_id() -> None:
    assert set(GATED) | set(LISTINGS) <= NEEDS_ID
    assert not any(is_variant(method) for method in NEEDS_ID | TASK_METHODS)


_CARRYING = ["result", "error", "data", "task", "inputRequests", "elicitations"]
_SPELLED_OTHERWISE = ["Result", "re\u017fult", "INPUTREQUESTS", "\u0131nputRequests"]
_OTHER = ["jsonrpc", "id", "content", "structuredContent", "isError", "tools", "_meta", "x"]
_KEYS = st.sampled_from([*_CARRYING, *_SPELLED_OTHERWISE, *_OTHER])
_MEMBERS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, 1, "text", {}, {"a": {"method": "ping"}}, [], [{}]]),
    lambda inner: st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
).filter(lambda one: type(one) is dict)


@given(_MEMBERS)
@example({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})
@example({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "inputRequests": {"a": {}}}})
def test_an_ordinary_answer_is_recognised_only_if_it_carries_no_request(body: Any) -> None:
    assert module.input_requests(body) == module._find_requests(body, "")


@given(st.one_of(st.text(), st.none(), st.integers(), st.from_regex(r"[ -~\t\x7f]{0,8}")))
@example("")
@example(" x")
@example("x" * 65_537)
def test_nothing_is_wrong_with_a_plain_name(name: Any) -> None:
    assert not (module._is_plain_name(name) and module._wrong_name("params.name", name))


@pytest.mark.parametrize("task", [None, 5, [], {"ttl": "1"}, {"ttl": -1}, {"ttl": 2**60}])
def test_a_call_with_a_wrong_wish_for_a_task_is_refused(task: Any) -> None:
    assert "params.task" in named_by("tools/call", {"name": "x", "task": task})
    modern = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    # From 2026-07-28 on the member means nothing.
    assert len(named_by("tools/call", {"name": "x", "task": task, **modern})) == 1


@pytest.mark.parametrize("task", [{}, {"ttl": 0}, {"ttl": 60_000}, {"ttl": None}, {"more": 1}])
def test_a_call_may_ask_for_a_task(task: Any) -> None:
    assert len(named_by("tools/call", {"name": "x", "task": task})) == 1
