"""Headers that repeat the body."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.wire.headers import (
    MAX_COMPANION,
    Mismatch,
    ParamHeader,
    argument_at,
    check_method,
    check_name,
    check_params,
    companion_headers,
    decode_value,
    encode_value,
    is_mirrored,
    mirrored,
    param_headers_of,
)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_survives_a_header(text: str) -> None:
    encoded = encode_value(text)
    assert decode_value(encoded) == text
    assert all(0x20 <= byte < 0x7F or byte == 0x09 for byte in encoded)


def test_plain_text_stays_readable() -> None:
    assert encode_value("get weather") == b"get weather"
    assert encode_value(" edge").startswith(b"=?base64?")
    assert encode_value("=?base64?eA==?=").startswith(b"=?base64?PT9")


@pytest.mark.parametrize("value", [b"=?base64?a?=", b"=?base64?!!?=", b"\xff", b"=?base64?/w==?="])
def test_a_malformed_value_is_none(value: bytes) -> None:
    assert decode_value(value) is None


def test_half_a_sentinel_is_taken_as_it_stands() -> None:
    assert decode_value(b"=?base64?SGVsbG8=") == "=?base64?SGVsbG8="


def test_white_space_round_a_value_does_not_count() -> None:
    assert check_method(b"  tools/call\t", "tools/call", required=True) is None


def test_a_method_that_differs_is_a_mismatch() -> None:
    assert check_method(b"tools/List", "tools/list", required=True) == Mismatch(
        "Mcp-Method", "differs from the body"
    )
    assert check_method(None, "tools/list", required=True) == Mismatch("Mcp-Method", "is missing")
    assert check_method(None, "tools/list", required=False) is None


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "x"}),
        ("prompts/get", {"name": "x"}),
        ("resources/read", {"uri": "x"}),
        ("tasks/cancel", {"taskId": "x"}),
    ],
)
def test_each_named_method_repeats_its_name(method: str, params: dict[str, str]) -> None:
    assert check_name(b"x", method, params, required=True) is None
    assert check_name(b"y", method, params, required=True) is not None
    assert check_name(None, method, params, required=True) is not None


def test_methods_that_name_nothing_need_no_name() -> None:
    assert check_name(None, "tools/list", {}, required=True) is None
    assert check_name(None, "tools/call", {"name": 5}, required=True) is None


def test_a_name_is_compared_only_where_the_revision_gives_it_a_meaning() -> None:
    assert check_name(b"x", "tools/list", {}, required=True) is None
    for params in ({}, {"name": 5}):
        mismatch = check_name(b"x", "tools/call", params, required=True)
        assert mismatch is not None
        assert mismatch.reason == "has no matching parameter"


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {
            "type": "object",
            "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}},
        },
        "on": {"type": "boolean", "x-mcp-header": "On"},
        "free": {"type": "string"},
    },
}


def test_annotated_parameters_are_found_down_chains_of_properties() -> None:
    assert param_headers_of(SCHEMA) == (
        ParamHeader(b"mcp-param-region", ("region",)),
        ParamHeader(b"mcp-param-count", ("deep", "count")),
        ParamHeader(b"mcp-param-on", ("on",)),
    )
    assert param_headers_of(None) == ()


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "string", "x-mcp-header": ""}},
        {"a": {"type": "string", "x-mcp-header": "bad name"}},
        {"a": {"type": "string", "x-mcp-header": 5}},
        {"a": {"type": "number", "x-mcp-header": "A"}},
        {
            "a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string", "x-mcp-header": "same"},
        },
    ],
)
def test_a_wrong_annotation_spoils_the_tool(properties: dict[str, Any]) -> None:
    assert param_headers_of({"properties": properties}) is None


def test_parameters_are_compared_with_the_arguments() -> None:
    wanted = param_headers_of(SCHEMA) or ()
    arguments = {"region": "eu", "deep": {"count": 5}, "on": True}
    right = {b"mcp-param-region": b"eu", b"mcp-param-count": b"5", b"mcp-param-on": b"true"}
    assert check_params(wanted, right, arguments) is None
    assert check_params(wanted, {**right, b"mcp-param-count": b"5.0"}, arguments) is None
    for name in right:
        wrong = check_params(wanted, {**right, name: b"other"}, arguments)
        assert wrong == Mismatch(name.decode(), "differs from the body")
        missing = {key: value for key, value in right.items() if key != name}
        found = check_params(wanted, missing, arguments)
        assert found == Mismatch(name.decode(), "is missing")


def test_an_absent_argument_needs_no_header_and_may_have_none() -> None:
    wanted = (ParamHeader(b"mcp-param-region", ("region",)),)
    assert check_params(wanted, {}, {"region": None}) is None
    assert check_params(wanted, {}, {}) is None
    assert check_params(wanted, {b"mcp-param-region": b"eu"}, {}) is not None
    assert check_params(wanted, {}, {"region": ["not", "a", "scalar"]}) is None


def test_an_argument_is_found_by_its_path() -> None:
    assert argument_at({"a": {"b": 1}}, ("a", "b")) == 1
    assert argument_at({"a": 1}, ("a", "b")) is None


def test_all_headers_of_a_call_are_computed() -> None:
    params = {"name": "wéather", "arguments": {"region": "eu", "on": False}}
    headers = mirrored("tools/call", params, "2026-07-28", param_headers_of(SCHEMA) or ())
    assert headers == [
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", encode_value("wéather")),
        (b"mcp-param-region", b"eu"),
        (b"mcp-param-on", b"false"),
    ]
    assert [name for name, _ in mirrored("tools/list", {}, "2026-07-28")] == [
        b"mcp-protocol-version",
        b"mcp-method",
    ]


def test_headers_that_repeat_the_body_are_known() -> None:
    assert is_mirrored(b"mcp-name")
    assert is_mirrored(b"mcp-param-x")
    assert not is_mirrored(b"mcp-session-id")
    assert not is_mirrored(b"accept")


@pytest.mark.parametrize(
    "text", ["", " ", "a\r\nx: y", "\u00e9", "x" * (MAX_COMPANION + 1), 7, None, ["a"]]
)
def test_only_what_can_be_a_header_travels_beside_the_trace(text: Any) -> None:
    params = {"_meta": {"baggage": text, "tracestate": "vendor=1"}}

    assert companion_headers(params) == [(b"tracestate", b"vendor=1")]


@pytest.mark.parametrize("params", [None, [], {}, {"_meta": None}, {"_meta": {}}])
def test_without_anything_beside_the_trace_there_is_no_header(params: Any) -> None:
    assert companion_headers(params) == []
