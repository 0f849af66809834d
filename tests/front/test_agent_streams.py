"""Streams on which a server speaks unasked: opened, replaced, ended by either side."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Any, cast

import pytest
from tests.support.http_gate import Gate, call_of, config_for, read_until
from tests.support.http_upstream import HttpUpstream, Received, Reply, event, result
from tests.support.waiting import wait_for

from thoughtgate.front.agent_streams import PushStream

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}},
}


def _child(tmp_path: Path) -> str:
    args = '["-m", "thoughtgate.testing.sample_server"]'
    server = f'command: "{sys.executable}", args: {args}'
    del tmp_path
    return f"schema: 1\ndefault: forward\nservers:\n  kid: {{{server}}}\n"


def _open(gate: Gate) -> dict[str, str]:
    opened = gate.post(INITIALIZE)
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    gate.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    return session


@contextmanager
def _listen(gate: Gate, session: dict[str, str]) -> Iterator[socket]:
    with gate.raw() as connection:
        head = f"GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{gate.port}\r\naccept: text/event-stream\r\n"
        head += f"mcp-session-id: {session['mcp-session-id']}\r\n\r\n"
        connection.sendall(head.encode())
        yield connection


def test_a_stream_to_a_stdio_server_is_open_at_once_and_replaced_by_the_next(
    tmp_path: Path,
) -> None:
    with Gate(tmp_path, _child(tmp_path)) as gate:
        session = _open(gate)
        with _listen(gate, session) as first:
            opened = read_until(first, b": open")
            with _listen(gate, session) as second:
                read_until(second, b": open")
                rest = read_until(first, b"0\r\n\r\n")
                gate.post(call_of("grow", {"name": "new"}), session)
                told = read_until(second, b"list_changed")

    assert b"200 OK" in opened
    assert b"text/event-stream" in opened
    assert b"list_changed" in told
    assert rest.endswith(b"0\r\n\r\n")
    assert b"list_changed" not in rest


def test_a_stopping_gate_ends_the_streams(tmp_path: Path) -> None:
    with Gate(tmp_path, _child(tmp_path)) as gate:
        session = _open(gate)
        with _listen(gate, session) as connection:
            read_until(connection, b": open")
            gate.stop()
            assert read_until(connection, b"0\r\n\r\n").endswith(b"0\r\n\r\n")


class _Streams:
    """A server over HTTP with a stream that stays open."""

    def __init__(self) -> None:
        self.end = threading.Event()

    def __call__(self, received: Received) -> Reply:
        if received.method == "GET":
            return Reply(parts=[event(CHANGED), b": last\n\n"], wait=self.end)
        if received.method == "DELETE":
            return Reply(204)
        if "id" not in received.message:
            return Reply(202)
        reply = result(received, {"protocolVersion": "2025-06-18", "capabilities": {}})
        reply.headers = {"mcp-session-id": "s"}
        return reply


@pytest.fixture
def streams() -> _Streams:
    return _Streams()


@pytest.fixture
def upstream(streams: _Streams) -> Iterator[HttpUpstream]:
    with HttpUpstream(streams) as running:
        yield running
        streams.end.set()


def test_a_servers_own_stream_is_passed_on_to_its_end(
    tmp_path: Path, upstream: HttpUpstream, streams: _Streams
) -> None:
    with Gate(tmp_path, config_for(upstream.url)) as gate:
        session = _open(gate)
        with _listen(gate, session) as connection:
            assert b"list_changed" in read_until(connection, b"list_changed")
            streams.end.set()
            assert b": last" in read_until(connection, b"0\r\n\r\n")


def test_an_agent_that_leaves_its_stream_is_left_by_the_gate_at_the_server(
    tmp_path: Path, upstream: HttpUpstream
) -> None:
    with Gate(tmp_path, config_for(upstream.url)) as gate:
        session = _open(gate)
        with _listen(gate, session) as connection:
            read_until(connection, b"list_changed")
        wait_for(lambda: upstream.broken, what="the end of the stream at the server")


class _Agent:
    """The agent's end of a stream."""

    on_gone: Any = None

    def start(self, status: int, headers: bytes) -> None:
        """Ignore the head."""

    def write(self, data: bytes) -> None:
        """Ignore the data."""

    def end(self) -> None:
        """Ignore the end."""


class _Ends:
    """A session and an upstream that keep which stream has ended."""

    def __init__(self) -> None:
        self.ended: list[object] = []

    def stream_ended(self, sink: object) -> None:
        """Keep it."""
        self.ended.append(sink)

    def unlisten(self, listener: object) -> None:
        """Ignore it."""


@pytest.mark.parametrize("by_agent", [True, False])
def test_a_session_hears_that_its_stream_has_ended(by_agent: bool) -> None:
    agent, ends = _Agent(), _Ends()
    stream = PushStream(cast("Any", agent), cast("Any", ends), ends)
    assert ends.ended == []
    (agent.on_gone if by_agent else stream.close)()
    assert ends.ended == [stream]
