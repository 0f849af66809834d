"""Listening: the address, the admin port, what authentication needs, and the end."""

import http.client
import json
import shutil
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import Authority
from tests.support.http_gate import Gate, call_of, config_for, http_post, read_until
from tests.support.http_upstream import HttpUpstream, Received, Reply, free_port, small_server
from tests.support.waiting import wait_for

from thoughtgate.config.listen_settings import ListenSettings
from thoughtgate.errors import ConfigError, ThoughtGateError
from thoughtgate.front.http_front import check_address, metadata_url
from thoughtgate.transports.tls import LOOK_EVERY_S, client_context


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


@pytest.mark.parametrize("base", ["https://mcp.example.com", "http://127.0.0.1:80/mcp-gate"])
def test_the_metadata_is_below_the_base_of_the_endpoint(base: str) -> None:
    expected = f"{base}/.well-known/oauth-protected-resource/mcp"
    assert metadata_url(f"{base}/mcp") == expected


def test_an_address_in_use_is_told_by_its_name(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        address = f"127.0.0.1:{held.getsockname()[1]}"
        gate = Gate(tmp_path, config_for("http://127.0.0.1:9/mcp"), listen=address)
        with pytest.raises(
            ThoughtGateError, match=f"cannot listen on {address}: .*; choose another address"
        ):
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


# TLS.


def _tls_gate(tmp_path: Path, upstream: HttpUpstream, authority: Authority, more: str) -> Gate:
    authority.issue("127.0.0.1", file="gate")
    for name in ("gate.cert.pem", "gate.key.pem", "ca.pem"):
        shutil.copy(authority.file.with_name(name), tmp_path)
    tls = "cert: gate.cert.pem, key: gate.key.pem"
    listen = f"listen: {{transport: http, tls: {{{tls}{more}}}}}\n"
    listen = listen.replace("AUTH}}", "}, auth: {type: mtls}}")
    return Gate(tmp_path, config_for(upstream.url, listen))


def _post(gate: Gate, context: ssl.SSLContext, message: Any) -> tuple[int, Any, str]:
    """POST over TLS; return the status, the body and the serial number of the gate's certificate."""
    connection = http.client.HTTPSConnection("127.0.0.1", gate.port, timeout=10, context=context)
    try:
        connection.connect()
        shown: Any = connection.sock.getpeercert()
        body = json.dumps(message).encode()
        connection.request("POST", "/mcp", body, {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null"), shown["serialNumber"]
    finally:
        connection.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


def test_a_listener_speaks_tls_and_takes_new_certificates_while_it_runs(
    tmp_path: Path, authority: Authority
) -> None:
    trusting = client_context(str(authority.file))
    with (
        HttpUpstream(small_server) as upstream,
        _tls_gate(tmp_path, upstream, authority, "") as gate,
    ):
        status, body, first = _post(gate, trusting, call_of("echo", {"a": 1}))
        assert (status, "result" in body) == (200, True)
        with gate.raw() as plain:
            plain.sendall(http_post(call_of("echo")))
            assert b"HTTP/1.1" not in read_until(plain, b"never")
        with socket.create_connection(("127.0.0.1", gate.port), 10) as early:
            kept = trusting.wrap_socket(early, server_hostname="127.0.0.1")

            authority.issue("127.0.0.1", file="next")
            for kind in ("cert", "key"):
                source = authority.file.with_name(f"next.{kind}.pem")
                shutil.copy(source, tmp_path / f"gate.{kind}.pem")
            wait_for(
                lambda: _post(gate, trusting, call_of("echo"))[2] != first,
                10 + LOOK_EVERY_S,
                what="the new certificate",
            )
            # The connection that was open before is not dropped.
            kept.sendall(http_post(call_of("echo", {"kept": 1})))
            assert b"kept" in kept.recv(65_536)
            kept.close()
    assert gate.records("run_start")


def test_clients_need_a_certificate_and_are_known_by_it(
    tmp_path: Path, authority: Authority
) -> None:
    files = [str(file) for file in authority.issue("bot-7")]
    stranger = Authority(tmp_path / "other")
    strange = [str(file) for file in stranger.issue("bot-7")]
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}},
    }

    def script(received: Received) -> Reply:
        reply = small_server(received)
        if received.message and received.message.get("method") == "initialize":
            reply.headers["mcp-session-id"] = "s"
        return reply

    with (
        HttpUpstream(script) as upstream,
        _tls_gate(tmp_path, upstream, authority, ", client_ca: ca.pemAUTH") as gate,
    ):
        known = client_context(str(authority.file), *files)
        assert _post(gate, known, initialize)[0] == 200
        for context in (
            client_context(str(authority.file)),
            client_context(str(authority.file), *strange),
        ):
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                _post(gate, context, initialize)
    assert len(upstream.received) == 1
    (connected,) = gate.records("agent_connected")
    assert connected["agent"]["method"] == "mtls"
    assert connected["agent"]["identity"] == "cert:CN=bot-7,O=Example"


def test_a_missing_certificate_stops_the_gate_before_it_starts(tmp_path: Path) -> None:
    listen = "listen: {transport: http, tls: {cert: no.pem, key: none.pem}}\n"
    with pytest.raises(ConfigError) as found:
        Gate(tmp_path, config_for("http://127.0.0.1:9/mcp", listen))

    keys = [problem.key for problem in found.value.problems]
    assert keys == ["listen.tls.cert", "listen.tls.key"]
