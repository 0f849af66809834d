"""Large requests that wait keep their bytes only, and get the same body back."""

import json
from typing import Any

import pytest

from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message
from thoughtgate.wire.packed_message import MAX_PARSED, PackedBody, pack, unpack

LONG = "x" * (MAX_PARSED + 1)


def _request(**params: Any) -> Message:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    message = read_frame(json.dumps(body).encode())
    assert isinstance(message, Message)
    return message


@pytest.mark.parametrize(
    "params",
    [
        {"name": "a", "arguments": {"text": LONG}},
        {"name": "a", "arguments": {}, "_meta": {"note": LONG}, "other": [1.5, True, None, "é"]},
    ],
)
def test_a_large_request_keeps_its_bytes_and_gets_its_body_back(params: dict[str, Any]) -> None:
    message = _request(**params)

    packed = pack(message)

    assert packed.body == {}
    assert packed.raw is message.raw
    assert unpack(packed) == message
    assert type(unpack(packed).body) is dict


def test_a_renamed_request_keeps_its_new_name() -> None:
    message = _request(name="one.a", arguments={"text": LONG})
    renamed = message._replace(
        body={**message.body, "params": {**message.body["params"], "name": "a"}}
    )

    packed = pack(renamed)

    assert packed.body == {"name": "a"}
    assert unpack(packed) == renamed


def test_a_small_request_stays_as_it_is() -> None:
    small = _request(name="a", arguments={"text": "x" * 1000})
    assert pack(small) is small
    assert unpack(small) is small


def test_a_large_response_keeps_only_its_bytes() -> None:
    answer = read_frame(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"t": LONG}}).encode())
    assert isinstance(answer, Message)
    packed = pack(answer)
    assert packed.body == {}
    assert unpack(packed) == answer
    other = answer._replace(body={**answer.body, "id": 2})
    assert pack(other) is other, "its bytes do not restore it"


def test_a_request_that_its_bytes_do_not_restore_stays_as_it_is() -> None:
    message = _request(name="a", arguments={"text": LONG})
    body, params = message.body, message.body["params"]
    changed = (
        {**body, "params": {**params, "more": 1}},
        {**body, "params": {"name": "a"}},
        {**body, "params": {**params, "arguments": {"text": LONG + "y"}}},
        {**body, "id": 2},
        {name: value for name, value in body.items() if name != "params"},
    )

    for one in changed:
        assert type(pack(message._replace(body=one)).body) is not PackedBody
