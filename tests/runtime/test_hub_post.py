"""Statuses of answers over HTTP."""

import pytest

from thoughtgate.runtime.hub_post import MAX_WAITING, MAX_WAITING_BYTES, HttpStream, status_of


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
