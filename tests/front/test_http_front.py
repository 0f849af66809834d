"""Listening: the address, the admin port, what authentication needs, and the end."""

import socket
import threading
from pathlib import Path

import pytest
from tests.support.http_gate import Gate, call_of, config_for, http_post, read_until
from tests.support.http_upstream import HttpUpstream, Received, Reply, free_port, small_server
from tests.support.waiting import wait_for

from thoughtgate.config.listen_settings import ListenSettings
from thoughtgate.errors import ConfigError, ThoughtGateError
from thoughtgate.front.http_front import check_address


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_this_machine_needs_no_authentication(host: str) -> None:
    check_address(ListenSettings(transport="http", host=host), "thoughtgate.yaml")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "example.com"])
def test_other_machines_do_and_the_message_says_where_to_configure_it(host: str) -> None:
    with pytest.raises(ConfigError) as found:
        check_address(ListenSettings(transport="http", host=host), "thoughtgate.yaml")

    (problem,) = found.value.problems
    assert (problem.key, problem.file) == ("listen.auth", "thoughtgate.yaml")
    assert host in problem.message
    check_address(ListenSettings(transport="stdio", host=host), "thoughtgate.yaml")


def test_an_address_in_use_is_told_by_its_name(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        address = f"127.0.0.1:{held.getsockname()[1]}"
        gate = Gate(tmp_path, config_for("http://127.0.0.1:9/mcp"), listen=address)
        with pytest.raises(ThoughtGateError, match=f"cannot listen on {address}"):
            gate.__enter__()


def test_a_token_that_is_not_set_is_a_wrong_config(tmp_path: Path) -> None:
    listen = "listen: {transport: http, auth: {type: bearer, token_env: NOT_SET}}\n"
    with pytest.raises(ConfigError, match="NOT_SET"):
        Gate(tmp_path, config_for("http://127.0.0.1:9/mcp", listen)).__enter__()


def test_an_admin_port_takes_the_pages_over(tmp_path: Path) -> None:
    port = free_port()
    listen = f"listen: {{transport: http, admin_port: {port}}}\n"
    with (
        HttpUpstream(small_server) as upstream,
        Gate(tmp_path, config_for(upstream.url, listen)) as gate,
    ):
        wait_for(lambda: gate.proxy is not None and gate.proxy.admin_port == port)
        beside = [gate.request("GET", path).status for path in ("/metrics", "/health")]
        agents, gate.port = gate.port, port
        wait_for(lambda: gate.request("GET", "/ready").status == 200, what="readiness")
        assert gate.request("GET", "/metrics").status == 200
        assert gate.request("POST", "/mcp", b"{}").status == 404
        gate.port = agents
    assert beside == [404, 200]


def test_a_stopping_gate_lets_calls_under_way_finish(tmp_path: Path) -> None:
    go = threading.Event()

    def slow(received: Received) -> Reply:
        reply = small_server(received)
        reply.wait = go
        return reply

    with (
        HttpUpstream(slow) as upstream,
        Gate(tmp_path, config_for(upstream.url)) as gate,
        gate.raw() as calling,
    ):
        calling.sendall(http_post(call_of("echo", {"text": "last words"})))
        wait_for(lambda: upstream.received, what="the call")
        stopping = threading.Thread(target=gate.stop)
        stopping.start()
        wait_for(lambda: gate.proxy is not None and gate.proxy._stop.is_set())
        go.set()
        assert b"last words" in read_until(calling, b"last words")
        stopping.join(20)
        assert gate.records()[-1]["type"] == "run_end"


def test_a_session_of_one_server_is_not_known_at_another(tmp_path: Path) -> None:

    def server(received: Received) -> Reply:
        reply = small_server(received)
        reply.headers = {"mcp-session-id": "s"}
        return reply

    with HttpUpstream(server) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
        ident = gate.post(opening).headers["mcp-session-id"]
        assert gate.post(call_of("echo"), {"mcp-session-id": ident}).status == 200
        config = config_for(upstream.url).replace("up:", "other:")
    with HttpUpstream(server) as upstream, Gate(tmp_path, config) as other:
        assert other.post(call_of("echo"), {"mcp-session-id": ident}).status == 404
        assert upstream.received == []
