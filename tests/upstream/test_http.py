"""An upstream over HTTP: credentials, notices, streams."""

import json
from pathlib import Path

import pytest
from tests.support.http_gate import Gate, call_of, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, result, text_result
from tests.support.waiting import wait_for

SECRET = "upstream-token-value"


@pytest.mark.requirement("FR14", "FR15")
def test_the_gates_own_token_goes_with_every_request_and_nowhere_else(tmp_path: Path) -> None:
    def script(received: Received) -> Reply:
        if received.method != "POST" or "id" not in received.message:
            return Reply(202)
        reply = text_result(received, "x")
        reply.headers = {"mcp-session-id": "s"}
        return reply

    auth = ", auth: {type: bearer, token_env: UP_TOKEN}, headers: {X-Team: blue}"
    environ = {"UP_TOKEN": SECRET}
    with (
        HttpUpstream(script) as upstream,
        Gate(tmp_path, config_for(upstream.url, server=auth), environ=environ) as gate,
    ):
        headers = {"authorization": "Bearer agents-own"}
        opened = gate.post({"jsonrpc": "2.0", "id": 0, "method": "initialize"}, headers)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        gate.post(call_of("echo"), {**headers, **session})
        gate.post({"jsonrpc": "2.0", "method": "notifications/x"}, session)
        gate.request("DELETE", headers=session)
        assert len(upstream.received) == 4
        for received in upstream.received:
            assert received.headers["authorization"] == f"Bearer {SECRET}"
            assert received.headers["x-team"] == "blue"
    assert SECRET not in json.dumps(gate.records())


def test_a_call_that_timed_out_is_cancelled_at_an_older_server(tmp_path: Path) -> None:
    import threading

    never = threading.Event()

    def script(received: Received) -> Reply:
        if received.message.get("method") == "initialize":
            reply = result(received, {"protocolVersion": "2025-06-18"})
            reply.headers = {"mcp-session-id": "s"}
            return reply
        return Reply(wait=never) if received.tool else Reply(202)

    with (
        HttpUpstream(script) as upstream,
        Gate(tmp_path, config_for(upstream.url, server=", timeout: 1s")) as gate,
    ):
        opened = gate.post({"jsonrpc": "2.0", "id": 0, "method": "initialize"})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        assert gate.post(call_of("echo", ident=9), session).error["code"] == -32001
        told = wait_for(
            lambda: [one for one in upstream.received if b"notifications/cancelled" in one.body],
            what="the cancellation",
        )[0]
        assert told.message["params"]["requestId"] == 9
        assert told.headers["mcp-session-id"] == "s"
        never.set()


def test_a_session_that_the_server_will_not_end_goes_on(tmp_path: Path) -> None:
    def script(received: Received) -> Reply:
        if received.method == "DELETE":
            return Reply(405)
        reply = text_result(received, "x")
        reply.headers = {"mcp-session-id": "s"}
        return reply

    with HttpUpstream(script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        opened = gate.post({"jsonrpc": "2.0", "id": 0, "method": "initialize"})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        assert gate.request("DELETE", headers=session).status == 405
        assert gate.post(call_of("echo"), session).status == 200


def test_a_stream_to_a_server_that_is_gone_is_a_bad_gateway(tmp_path: Path) -> None:
    def script(received: Received) -> Reply:
        if received.method == "GET":
            return Reply(raw=b"")
        reply = text_result(received, "x")
        reply.headers = {"mcp-session-id": "s"}
        return reply

    with HttpUpstream(script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        opened = gate.post({"jsonrpc": "2.0", "id": 0, "method": "initialize"})
        headers = {
            "mcp-session-id": opened.headers["mcp-session-id"],
            "accept": "text/event-stream",
        }
        assert gate.request("GET", headers=headers).status == 502
