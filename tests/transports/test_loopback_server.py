"""The service's socket: on the loopback, and gone when it ends."""

import asyncio
import socket

import pytest
from tests.support.waiting import run_async

from thoughtgate.errors import UsageError
from thoughtgate.transports.asgi import Receive, Scope, Send
from thoughtgate.transports.loopback_server import open_listener, serve_app


async def _hello(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.mark.requirement("S000-F-008")
def test_the_port_is_any_free_one_on_the_loopback() -> None:
    with open_listener(0) as listener:
        host, port = listener.getsockname()

    assert host == "127.0.0.1"
    assert port > 0


def test_a_taken_port_is_named_with_what_to_do() -> None:
    with open_listener(0) as listener:
        port = listener.getsockname()[1]
        with (
            pytest.raises(UsageError, match=f"--governance-port {port} .*choose another"),
            open_listener(port),
        ):
            pass


def test_a_port_can_be_used_again_at_once() -> None:
    with open_listener(0) as listener:
        port = listener.getsockname()[1]
    with open_listener(port) as again:
        assert again.getsockname()[1] == port


def test_open_connections_do_not_hold_up_the_end() -> None:
    async def run() -> None:
        with open_listener(0) as listener:
            async with serve_app(_hello, listener):
                reader, writer = await asyncio.open_connection(*listener.getsockname())
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await reader.readuntil(b"hello")
        # The service is gone: whoever is connected sees the end.
        await asyncio.wait_for(reader.read(), 10)
        assert reader.at_eof()
        writer.close()

    run_async(run())


def test_nothing_listens_elsewhere() -> None:
    with open_listener(0) as listener:
        port = listener.getsockname()[1]
        other = socket.socket()
        other.bind(("127.0.0.2", port))
        other.close()


def test_small_answers_are_not_held_back() -> None:
    # asyncio switches Nagle's algorithm off only for sockets that say that they are TCP.
    with open_listener(0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
