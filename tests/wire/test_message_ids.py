"""Exchanging ids."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message
from thoughtgate.wire.message_ids import with_id, with_result

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def message(raw: bytes) -> Message:
    read = read_frame(raw)
    assert isinstance(read, Message)
    return read


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            b'{"jsonrpc":"2.0","id":7,"result":{"x":1.10}}',
            b'{"jsonrpc":"2.0","id":"a","result":{"x":1.10}}',
        ),
        (
            b'{"result":{"id":7, "n":1e5},"jsonrpc":"2.0","id":7}',
            b'{"result":{"id":7, "n":1e5},"jsonrpc":"2.0","id":"a"}',
        ),
    ],
)
def test_a_reply_keeps_its_bytes_but_for_the_id(raw: bytes, expected: bytes) -> None:
    assert with_id(message(raw), "a").raw == expected


@given(result=st.dictionaries(st.text(max_size=5), values, max_size=4), place=st.integers(0, 2))
@settings(max_examples=200, deadline=None)
def test_another_id_changes_nothing_else(result: dict[str, Any], place: int) -> None:
    members: list[tuple[str, Any]] = [("jsonrpc", "2.0"), ("result", result)]
    members.insert(place, ("id", 12))
    raw = json.dumps(dict(members), ensure_ascii=False, separators=(",", ":")).encode()

    changed = with_id(message(raw), 99)

    assert json.loads(changed.raw) == {"jsonrpc": "2.0", "id": 99, "result": result}
    assert changed.body == {"jsonrpc": "2.0", "id": 99, "result": result}
    assert changed.id == 99


def test_a_reply_laid_out_otherwise_is_rendered_anew() -> None:
    changed = with_id(message(b'{ "id": 7, "jsonrpc": "2.0", "result": {} }'), 8)

    assert json.loads(changed.raw) == {"jsonrpc": "2.0", "id": 8, "result": {}}


def test_a_result_can_be_exchanged_too() -> None:
    changed = with_result(message(b'{"jsonrpc":"2.0","id":1,"result":{}}'), 2, {"a": 1})

    assert json.loads(changed.raw) == {"jsonrpc": "2.0", "id": 2, "result": {"a": 1}}
