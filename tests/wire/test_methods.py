"""What each method is to the gate, and what a request names."""

from typing import Any

import pytest

from thoughtgate.wire.methods import (
    GATED,
    LISTINGS,
    NEEDS_ID,
    PASSED,
    Named,
    is_variant,
    named_by,
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
        ("completion/complete", {}),
        ("completion/complete", {"ref": "p"}),
        ("completion/complete", {"ref": {}}),
        ("completion/complete", {"ref": {"name": 1}}),
        ("completion/complete", {"ref": {"uri": ""}}),
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


@pytest.mark.requirement("S000-F-017")
def test_the_passthrough_list_is_neither_gated_nor_filtered() -> None:
    for method in PASSED:
        assert named_by(method, {}) == []
        assert method not in NEEDS_ID
        assert not is_variant(method)


def test_what_is_gated_or_filtered_needs_an_id() -> None:
    assert set(GATED) | set(LISTINGS) <= NEEDS_ID
    assert not any(is_variant(method) for method in NEEDS_ID)
