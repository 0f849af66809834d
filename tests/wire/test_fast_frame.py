"""The quick reader says what the strict one says."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.wire.canonical import NotCanonical, canonical_json
from thoughtgate.wire.fast_frame import (
    canonical_quickly,
    dump_quickly,
    load_quickly,
    read_quickly,
)
from thoughtgate.wire.frame import MAX_DEPTH, read_frame
from thoughtgate.wire.lines import oversized
from thoughtgate.wire.message import Fault, Message

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(_JSON, st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_both_readers_agree(params: Any, separators: tuple[str, str], ascii_only: bool) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"arguments": params}}
    text = json.dumps(body, separators=separators, ensure_ascii=ascii_only)
    line = text.encode("utf-8", "surrogatepass")
    assert read_quickly(line) == read_frame(line)


@pytest.mark.promise("one-reading")
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":1}}',
        b'{"jsonrpc":"2.0","id":1e400,"method":"x"}',
        b'{"jsonrpc":"2.0","id":18446744073709551616,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x"} trailing',
        b'{"jsonrpc":"2.0",\r"id":1,"method":"x"}',
        b"\xff",
        b"[]",
        b"",
        b'{"a":' * 200 + b"1" + b"}" * 200,
    ],
)
def test_what_has_two_readings_is_refused_alike(line: bytes) -> None:
    assert read_quickly(line) == read_frame(line)


def test_a_duplicate_key_cannot_be_hidden_by_a_longer_number() -> None:
    fault = read_quickly(b'{"jsonrpc":"2.0","id":1,"id":100000,"method":"x","params":{"n":1E5}}')
    assert isinstance(fault, Fault)
    assert fault.check == "duplicate_key"


def test_line_separators_are_escaped_as_the_strict_reader_does() -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"t":"\u2028"}}'.encode()
    message = read_quickly(line)
    assert isinstance(message, Message)
    assert b"\\u2028" in message.raw


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize(
    "value",
    [{"t": "y" * 300_000}, {"rows": [{"n": number, "t": "{["} for number in range(3000)]}],
    ids=["long", "wide"],
)
def test_long_texts_are_read_too(value: Any, separators: tuple[str, str]) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": value}
    line = json.dumps(body, separators=separators).encode()
    message = read_quickly(line)
    assert isinstance(message, Message)
    assert message == read_frame(line)
    assert message.body == body


@given(st.integers(MAX_DEPTH - 4, MAX_DEPTH + 2), st.booleans(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_both_readers_find_the_same_texts_too_deep(depth: int, is_list: bool, wide: int) -> None:
    inner: Any = 1
    for _ in range(depth):
        inner = [*([[]] * wide), inner] if is_list else {"a": inner, **({"b": {}} if wide else {})}
    body = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"arguments": inner}}
    line = json.dumps(body, separators=(",", ":")).encode()
    read = read_quickly(line)
    assert read == read_frame(line)
    assert isinstance(read, Fault) == (depth + 2 + bool(wide) > MAX_DEPTH)


@pytest.mark.parametrize(
    "text",
    ['{"a":1}', '{"a": 1}', '{"n":36893488147419103232}', '"\\ud800"', '{"t":"€"}', "1e400"],
)
def test_json_is_loaded_as_json_does(text: str) -> None:
    assert load_quickly(text.encode()) == json.loads(text)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"{} {}"])
def test_what_is_not_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_quickly(data)


@pytest.mark.parametrize("value", [{"a": [1, "€"]}, {"n": 2**70}, "\ud800"])
def test_what_is_dumped_is_loaded_again(value: object) -> None:
    assert load_quickly(dump_quickly(value)) == value


def test_what_stands_for_a_longer_line_is_too_large_even_if_it_reads_like_json() -> None:
    whole = b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}'
    fault = read_quickly(oversized(whole, b"", 20_000_000))
    assert isinstance(fault, Fault)
    assert fault.check == "too_large"


@given(_JSON)
@settings(max_examples=300, deadline=None)
def test_the_canonical_text_is_the_one_text(value: Any) -> None:
    try:
        text = canonical_json(value)
    except NotCanonical:
        with pytest.raises(NotCanonical):
            canonical_quickly(value)
    else:
        assert canonical_quickly(value) == text


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": "\ud800"}, {"a": {1}}])
def test_what_has_no_canonical_text_is_refused_quickly_too(value: object) -> None:
    with pytest.raises(NotCanonical):
        canonical_quickly(value)
