"""Statuses of answers over HTTP."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from thoughtgate.hub.post import (
    MAX_WAITING,
    MAX_WAITING_BYTES,
    HttpStream,
    status_of,
    with_companions,
)
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', 200),
        (b'{"jsonrpc":"2.0","id":1,"result":{"text":"\\"error\\""}}', 200),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":""}}', 404),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":""}}', 400),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":""}}', 400),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-31003,"message":""}}', 200),
        (b'{"jsonrpc":"2.0","id":1,"error":"odd"}', 200),
    ],
)
def test_the_status_follows_from_the_error(data: bytes, status: int) -> None:
    assert status_of(data) == status


def test_what_is_said_before_a_stream_is_open_waits_within_bounds() -> None:
    stream = HttpStream()
    for number in range(2000):
        stream.put(b"%d" % number)
    assert stream.waiting == (MAX_WAITING, 4 * MAX_WAITING)
    for _ in range(5):
        stream.put(b"x" * (MAX_WAITING_BYTES // 2))
    assert stream.waiting == (2, MAX_WAITING_BYTES)
    stream.keep_alive()
    stream.close()

    assert not stream.is_open


def _carried(params: str, *headers: tuple[bytes, bytes]) -> Any:
    message = read_frame(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % params.encode())
    assert isinstance(message, Message)
    exchange = cast("Exchange", SimpleNamespace(wire_headers=list(headers)))
    return with_companions(message, exchange).body["params"]


def test_what_the_head_says_beside_the_trace_is_carried_in_the_message() -> None:
    state, more = (b"tracestate", b"a=1"), (b"tracestate", b"b=2")
    said = _carried('{"_meta":{"tracestate":"old","kept":1}}', state, more, (b"baggage", b"u=x"))

    assert said == {"_meta": {"tracestate": "a=1,b=2", "baggage": "u=x", "kept": 1}}


@pytest.mark.parametrize(
    ("params", "header"), [("{}", b"\xe9"), ("{}", b""), ('{"_meta":7}', b"u=x")]
)
def test_what_cannot_be_carried_changes_nothing(params: str, header: bytes) -> None:
    assert _carried(params, (b"baggage", header)) == _carried(params)
