"""Taking batches apart and putting answers together."""

import json

import pytest

from thoughtgate.wire.batch import is_batch, join_replies, one_line, split_batch
from thoughtgate.wire.message import Fault, Message


def test_an_array_is_told_from_an_object() -> None:
    assert is_batch(b' \n[{"a":1}]')
    assert not is_batch(b' {"a":[1]}')


@pytest.mark.requirement("S004-F-007.1")
def test_each_element_is_read_like_a_message_of_its_own() -> None:
    body = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"n"},7]'
    first, second, third = split_batch(body)  # type: ignore[misc]  # a list here
    assert isinstance(first, Message)
    assert (first.id, first.method) == (1, "ping")
    assert json.loads(first.raw) == {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert isinstance(second, Message)
    assert second.shape == "notification"
    assert isinstance(third, Fault)


@pytest.mark.parametrize(
    ("body", "kind", "check"),
    [
        (b"[]", "invalid_request", "empty_batch"),
        (b"[1", "parse_error", "malformed_json"),
        (b"[\xff]", "parse_error", "invalid_utf8"),
        (b'[{"a":1,"a":2}]', "invalid_request", "duplicate_key"),
        (b"[" + b"1," * 100 + b"1]", "invalid_request", "too_large"),
    ],
)
def test_a_batch_that_cannot_be_read_is_refused_as_a_whole(
    body: bytes, kind: str, check: str
) -> None:
    fault = split_batch(body)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.check) == (kind, check)


def test_a_session_cannot_begin_in_a_batch() -> None:
    body = b'[{"jsonrpc":"2.0","id":1,"method":"initialize"},{"jsonrpc":"2.0","id":2,"method":"x"}]'
    first, second = split_batch(body)  # type: ignore[misc]  # a list here
    assert isinstance(first, Fault)
    assert (first.id, first.check) == (1, "batched_initialize")
    assert isinstance(second, Message)


def test_answers_make_one_array() -> None:
    assert json.loads(join_replies([b'{"id":1}', b'{"id":2}'])) == [{"id": 1}, {"id": 2}]


def test_a_text_over_several_lines_becomes_one_line() -> None:
    pretty = b'{\r\n  "text": "a\\nb",\n  "n": [1,\n 2]\n}'
    assert one_line(pretty) == b'{"text":"a\\nb","n":[1,2]}'
    assert one_line(b'{"a": 1}') == b'{"a": 1}'
    assert one_line(b"{\n") == b"{\n"


@pytest.mark.promise("one-reading")
def test_what_is_rendered_again_is_sent_on_as_it_was_read() -> None:
    body = b'{"jsonrpc":"2.0","id":1,\n"result":{"a":0.10000000000000000001}}'
    assert one_line(body) == b'{"jsonrpc":"2.0","id":1,"result":{"a":0.1}}'
    (message,) = split_batch(
        b'[{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":0.10000000000000000001}}]'
    )  # type: ignore[misc]
    assert isinstance(message, Message)
    assert message.raw == b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":0.1}}'
