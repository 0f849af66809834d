"""``serve --http``: sessions for legacy clients, none for modern ones, many at once."""

import http.client
import json
import re
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.commands import thoughtgate
from tests.support.frames import call, envelope, initialize, notification, request, result
from tests.support.http_gate import Gate
from tests.support.http_hub import ACCEPT, HttpHub, serving_http
from tests.support.http_upstream import free_port
from tests.support.hub import odd, sample, write_config
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

from thoughtgate.core.commands import NOTICE, ToAgent
from thoughtgate.hub.backend import MAX_WAITING, MAX_WAITING_BYTES, ClientStream, with_companions
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message

ONE = {"one": sample("--tools", "echo,add,slow,roots,env")}


def test_a_legacy_client_has_a_session(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:
        session = hub.open_session()
        named = {"Mcp_Session_Id": session}
        accepted = hub.post(notification("notifications/initialized"), **named)
        listed = hub.post(request(1, "tools/list"), **named)
        called = hub.post(call(2, "one.echo", {"text": "hi"}), **named)
        without = hub.post(request(3, "tools/list"))
        unknown = hub.post(request(4, "tools/list"), Mcp_Session_Id="nope")
        ended = hub.send("DELETE", **named)
        after = hub.post(request(5, "tools/list"), **named)

    assert accepted.status == 202
    assert listed.messages[0]["result"]["tools"][0]["name"] == "one.echo"
    assert called.messages[0]["result"]["content"][0]["text"] == "hi"
    assert (without.status, unknown.status, ended.status, after.status) == (400, 404, 204, 404)


def test_a_modern_client_needs_no_session(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:
        discovered = hub.modern(1, "server/discover")
        called = hub.modern(2, "tools/call", {"name": "one.add", "arguments": {"a": 1, "b": 2}})
        gone = hub.modern(3, "ping")
        unknown = hub.modern(4, "no/such")
        notified = hub.post(
            notification("notifications/cancelled"), MCP_Protocol_Version="2026-07-28"
        )

    assert discovered.messages[0]["result"]["supportedVersions"] == ["2026-07-28"]
    assert called.messages[0]["result"]["content"][0]["text"] == "3"
    assert "mcp-session-id" not in called.headers
    assert (gone.status, unknown.status) == (404, 404)
    assert notified.status == 202


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Mcp_Method": "tools/list"}, 400),
        ({"Mcp_Name": "one.other"}, 400),
        ({"MCP_Protocol_Version": "2025-11-25"}, 400),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content_Type": "text/plain"}, 415),
        ({"Accept": "text/html"}, 406),
    ],
)
def test_a_head_that_contradicts_or_does_not_belong_here_is_refused(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    with serving_http(tmp_path, ONE) as hub:
        right = {
            "MCP_Protocol_Version": "2026-07-28",
            "Mcp_Method": "tools/call",
            "Mcp_Name": "one.echo",
        }
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = call(1, "one.echo", {"text": "x"})
        body["params"]["_meta"] = meta

        assert hub.post(body, **right).status == 200
        assert hub.post(body, **{**right, **headers}).status == status


def test_bodies_that_are_no_message_are_refused(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:
        batch = hub.post([request(1, "ping")])
        array = hub.post("text")
        put = hub.send("PUT")
        nowhere = hub.send("GET", path="/other")
        health = hub.send("GET", path="/health")
        stream = hub.send("GET")

    assert batch.status == 400
    assert batch.messages[0]["error"]["code"] == -32600
    assert array.status == 400
    assert (put.status, nowhere.status, health.status, stream.status) == (405, 404, 200, 405)


def test_a_separate_admin_port_keeps_the_pages_off_the_agents_one(tmp_path: Path) -> None:
    port = free_port()
    with serving_http(tmp_path, ONE, listen={"admin_port": port}) as hub:
        beside = [hub.send("GET", path=path).status for path in ("/metrics", "/ready", "/health")]
        called = hub.modern(1, "tools/call", {"name": "one.add", "arguments": {"a": 1, "b": 2}})
        hub.port, agents_port = port, hub.port
        pages = [hub.send("GET", path=path).status for path in ("/metrics", "/ready", "/health")]
        elsewhere = [hub.send("GET", path="/mcp").status, hub.send("POST", path="/ready").status]
        metrics = hub.send("GET", path="/metrics").body.decode()
        hub.port = agents_port

    assert beside == [404, 404, 200]
    assert called.status == 200
    assert pages == [200, 200, 200]
    assert elsewhere == [404, 405]
    assert 'mcp_requests_total{method="tools/call",status="success"} 1.0' in metrics


def test_an_admin_port_in_use_is_told(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        config = write_config(tmp_path / "c.yaml", ONE, listen={"admin_port": port})
        command = thoughtgate("serve", "--http", "127.0.0.1:0", "-c", str(config))
        with StdioPeer(command, env={"THOUGHTGATE_STATE_DIR": str(tmp_path)}) as peer:
            assert peer.wait() != 0
            wait_for(lambda: f"cannot listen on 127.0.0.1:{port}" in peer.stderr)


def test_progress_makes_the_answer_a_stream(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:
        named = {"Mcp_Session_Id": hub.open_session()}
        body = call(1, "one.slow", {"seconds": 0.2})
        body["params"]["_meta"] = {"progressToken": "t"}
        answer = hub.post(body, **named)
        plain = hub.post(body | {"id": 2}, **named, Accept="application/json")

    assert answer.headers["content-type"] == "text/event-stream"
    assert [message.get("method") for message in answer.messages] == [
        *["notifications/progress"] * 3,
        None,
    ]
    assert plain.headers["content-type"] == "application/json"


def test_questions_reach_the_session_they_belong_to(tmp_path: Path) -> None:
    servers = {"one": sample("--era", "legacy", isolation="session")}
    opening = initialize(0)
    opening["params"]["capabilities"] = {"roots": {}}
    with serving_http(tmp_path, servers) as hub:
        sessions = [hub.post(opening).headers["mcp-session-id"] for _ in range(2)]

        def ask_roots(session: str, root: str) -> str:
            with hub.connection() as link:
                headers = {
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    "Mcp-Session-Id": session,
                }
                link.request("POST", "/mcp", json.dumps(call(1, "one.roots")), headers)
                stream = link.getresponse()
                asked = _next_message(stream)
                hub.post(result(asked["id"], {"roots": [{"uri": root}]}), Mcp_Session_Id=session)
                return str(_next_message(stream)["result"]["content"][0]["text"])

        with ThreadPoolExecutor(2) as pool:
            told = list(pool.map(ask_roots, sessions, ["file:///a", "file:///b"]))

    assert "file:///a" in told[0]
    assert "file:///b" in told[1]


def _next_message(stream: http.client.HTTPResponse) -> dict[str, Any]:
    while True:
        line = stream.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data:"):
            message: dict[str, Any] = json.loads(line[5:])
            return message


def test_changes_come_on_the_get_stream(tmp_path: Path) -> None:
    with serving_http(tmp_path, {"one": sample()}) as hub:
        named = {"Mcp_Session_Id": hub.open_session()}
        hub.post(request(1, "tools/list"), **named)
        with hub.connection() as link:
            headers = {"Accept": "text/event-stream", "Mcp-Session-Id": named["Mcp_Session_Id"]}
            link.request("GET", "/mcp", headers=headers)
            stream = link.getresponse()
            hub.post(call(2, "one.grow", {"name": "new"}), **named)
            told = _next_message(stream)

    assert told["method"] == "notifications/tools/list_changed"


def test_a_second_get_stream_takes_the_place_of_the_first(tmp_path: Path) -> None:
    with serving_http(tmp_path, {"one": sample()}) as hub:
        named = {"Mcp_Session_Id": hub.open_session()}
        headers = {"Accept": "text/event-stream", "Mcp-Session-Id": named["Mcp_Session_Id"]}
        hub.post(request(1, "tools/list"), **named)
        with hub.connection() as first, hub.connection() as second:
            first.request("GET", "/mcp", headers=headers)
            ended = first.getresponse()
            second.request("GET", "/mcp", headers=headers)
            stream = second.getresponse()
            hub.post(call(2, "one.grow", {"name": "new"}), **named)
            told = _next_message(stream)
            rest = ended.read()

    assert told["method"] == "notifications/tools/list_changed"
    assert b"data:" not in rest


def test_a_modern_client_that_leaves_cancels_its_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving_http(tmp_path, {"one": sample("--log", str(log))}) as hub:
        hub.modern(1, "tools/list")
        body = call(2, "one.slow", {"seconds": 60})
        body["params"]["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "one.slow",
        }
        with hub.connection() as link:
            link.request("POST", "/mcp", json.dumps(body), headers)
            wait_for(lambda: "seconds" in log.read_text())
        wait_for(lambda: "notifications/cancelled" in log.read_text())


def test_many_clients_share_one_server(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:

        def session_of_calls(number: int) -> list[str]:
            named = {"Mcp_Session_Id": hub.open_session()}
            return [
                hub.post(call(n, "one.echo", {"text": f"{number}.{n}"}), **named).messages[0][
                    "result"
                ]["content"][0]["text"]
                for n in range(5)
            ]

        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(session_of_calls, range(8)))

        assert told == [[f"{number}.{n}" for n in range(5)] for number in range(8)]
        assert len(hub.peer.descendants()) <= 2


def test_agents_that_must_show_a_token_are_turned_away_without(tmp_path: Path) -> None:
    listen = {
        "transport": "http",
        "host": "127.0.0.1",
        "port": 8080,
        "auth": {"type": "bearer", "token_env": "AGENT_TOKEN"},
    }
    secret = "a-very-secret-token-of-some-length"
    with serving_http(tmp_path, ONE, listen=listen, env={"AGENT_TOKEN": secret}) as hub:
        without = hub.post(initialize(0))
        wrong = hub.post(initialize(0), Authorization="Bearer nope")
        right = hub.post(initialize(0), Authorization=f"Bearer {secret}")
        named = {
            "Mcp_Session_Id": right.headers["mcp-session-id"],
            "Authorization": f"Bearer {secret}",
        }
        told = hub.post(call(1, "one.env"), **named).messages[0]

        record = (hub.state / "audit.jsonl").read_text()
    assert (without.status, wrong.status, right.status) == (401, 401, 200)
    assert secret not in record
    assert secret not in json.dumps(told)
    assert record.count("agent_auth_rejected") == 2


def test_an_address_beyond_this_machine_needs_authentication(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", ONE)
    command = thoughtgate("serve", "--http", "0.0.0.0:0", "-c", str(config))
    with StdioPeer(command, env={"THOUGHTGATE_STATE_DIR": str(tmp_path / "s")}) as peer:
        assert peer.wait() == 1

    assert "listen.auth" in peer.stderr


def test_who_was_meant_for_somebody_else_is_on_record(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:
        assert hub.send("GET", path="/metrics", host="evil.example").status == 421
        refused = '"agent":{"method":"host","reason":"the Host header names somebody else",'
        wait_for(lambda: refused in (hub.state / "audit.jsonl").read_text())


def test_readiness_and_metrics_are_told(tmp_path: Path) -> None:
    servers = {"one": sample("--start-delay", "1", eager=True)}
    with serving_http(tmp_path, servers) as hub:
        first = hub.send("GET", path="/ready")
        wait_for(lambda: hub.send("GET", path="/ready").body == b'{"status":"ready"}')
        hub.modern(1, "tools/call", {"name": "one.echo", "arguments": {"text": "x"}})
        metrics = hub.send("GET", path="/metrics")
        rebound = hub.send("GET", path="/metrics", host="evil.example")

    assert rebound.status == 421
    assert (first.status, json.loads(first.body)["degraded"]) == (200, ["servers"])
    assert metrics.status == 200
    assert b"# TYPE" in metrics.body


HELD = "thoughtgate_approvals_pending 1.0"
PREVENTED = "thoughtgate_zombie_execution_prevented_total 1.0"


def _page(port: int) -> str:
    """Read the metrics."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request("GET", "/metrics")
    text = link.getresponse().read().decode()
    link.close()
    return text


def _busy_page(port: int, prefix: str) -> str:
    """Make calls that end in every way, the last by hanging up, and read the metrics."""
    headers = dict(ACCEPT)
    for body in (
        initialize(0),
        request(1, "tools/list"),
        call(2, f"{prefix}echo", {"text": "x"}),
        call(3, f"{prefix}add", {"a": 1, "b": 2}),
        {"jsonrpc": "2.0"},
        call(4, f"{prefix}env"),
    ):
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        link.request("POST", "/mcp", json.dumps(body), headers)
        if body.get("id") == 4:
            wait_for(lambda: HELD in _page(port), what="a held call")
        else:
            answer = link.getresponse()
            answer.read()
            session = answer.getheader("mcp-session-id")
            headers |= {"Mcp-Session-Id": session} if session else {}
        link.close()
    wait_for(lambda: PREVENTED in _page(port), what="a call that is not made")
    return _page(port)


def _names(page: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))


def test_the_hub_counts_under_the_names_that_the_proxy_has(tmp_path: Path) -> None:
    rules = [{"tool": "add", "action": "deny"}, {"tool": "env", "action": "approve"}]
    for name in ("hub", "proxy"):
        (tmp_path / name).mkdir()
    with serving_http(tmp_path / "hub", ONE, rules=rules) as hub:
        first = _page(hub.port)
        ours = _busy_page(hub.port, "one.")
        config = hub.config.read_text()
    with Gate(tmp_path / "proxy", config) as gate:
        theirs = _busy_page(gate.port, "")

    assert "mcp_connections_active 1.0" in first
    assert "thoughtgate_zombie_execution_prevented_total 0.0" in first
    assert _names(ours) == _names(theirs)


def test_what_a_sessions_own_server_logs_is_its_clients_alone(tmp_path: Path) -> None:
    servers = {"odd": odd("chatty", isolation="session")}
    with serving_http(tmp_path, servers) as hub:
        mine, other = hub.open_session(), hub.open_session()
        hub.post(call(1, "odd.work"), Mcp_Session_Id=mine)
        heard = []
        for session in (mine, other):
            with hub.connection() as link:
                headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session}
                link.request("GET", "/mcp", headers=headers)
                stream = link.getresponse()
                if session == mine:
                    heard.append(_next_message(stream)["method"])
                else:
                    hub.post(call(2, "odd.work"), Mcp_Session_Id=other)
                    told = _next_message(stream)
                    heard.append(told["method"])
        refused = (hub.state / "audit.jsonl").read_text()

    assert heard == ["notifications/message", "notifications/message"]
    assert refused.count('"method":"notifications/message"') == 4


def test_both_eras_are_served_at_the_same_address(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:
        named = {"Mcp_Session_Id": hub.open_session()}
        legacy = _tools(hub.post(request(1, "tools/list"), **named).messages)
        modern = _tools(hub.modern(1, "tools/list").messages)

    assert legacy == modern


def _tools(messages: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in messages[0]["result"]["tools"]]


def test_calls_that_a_stopping_hub_leaves_end_on_the_record_before_the_run(tmp_path: Path) -> None:
    log = tmp_path / "log"
    servers = {"one": sample("--log", str(log))}
    listen = {"transport": "http", "drain": "0s"}
    with serving_http(tmp_path, servers, listen=listen) as hub, hub.connection() as link:
        named = {"Mcp-Session-Id": hub.open_session()}
        body = json.dumps(call(2, "one.slow", {"seconds": 60}))
        link.request("POST", "/mcp", body, {**ACCEPT, **named})
        wait_for(lambda: log.exists() and "seconds" in log.read_text())
    lines = (tmp_path / "state" / "audit.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    kinds = [one["type"] for one in events]
    assert kinds.count("tool_call_end") == 1
    assert kinds[-1] == "run_end"
    assert events[-1]["run"]["summary"]["calls_total"] == 1


def test_what_is_said_before_a_stream_is_open_waits_within_bounds() -> None:
    stream = ClientStream()
    for number in range(2000):
        stream.take(ToAgent(b"%d" % number, None, NOTICE))
    assert stream.waiting == (MAX_WAITING, 4 * MAX_WAITING)
    for _ in range(5):
        stream.take(ToAgent(b"x" * (MAX_WAITING_BYTES // 2), None, NOTICE))
    assert stream.waiting == (2, MAX_WAITING_BYTES)
    stream.keep_alive()
    stream.close()

    assert stream.waiting == (2, MAX_WAITING_BYTES)


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


QUICK = """
import runpy
from thoughtgate.front import post
from thoughtgate.hub import backend
post.KEEP_ALIVE_S = backend.SILENCE_S = 0.1
runpy.run_module("thoughtgate", run_name="__main__")
"""


def _until(stream: http.client.HTTPResponse, wanted: bytes) -> bytes:
    said = b""
    while wanted not in said:
        line = stream.readline()
        assert line, f"the stream has ended after {said!r}"
        said += line
    return said


def test_calls_listens_and_streams_that_are_silent_are_kept_alive(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"one": sample()}, listen={"drain": "0s"})
    words = ["serve", "--http", "127.0.0.1:0", "-c", str(config)]
    environ = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    with StdioPeer([sys.executable, "-c", QUICK, *words], env=environ) as peer:
        hub = HttpHub(peer, tmp_path / "state", config)
        session = {"Mcp-Session-Id": hub.open_session()}
        modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": envelope()}
        with hub.connection() as calling, hub.connection() as listening, hub.connection() as open_:
            slow = json.dumps(call(1, "one.slow", {"seconds": 60}))
            calling.request("POST", "/mcp", slow, {**ACCEPT, **session})
            ear = json.dumps(request(2, "subscriptions/listen", wanted))
            listening.request("POST", "/mcp", ear, {**ACCEPT, **modern})
            open_.request("GET", "/mcp", headers={"Accept": "text/event-stream", **session})
            streams = [one.getresponse() for one in (calling, listening, open_)]
            said = [_until(stream, b": still here") for stream in streams]
            headers = [stream.getheader("mcp-session-id") for stream in streams]
        peer.signal(15)
        assert peer.wait() == 0

    assert headers == [None, None, None]
    assert b"notifications/subscriptions/acknowledged" in said[1]


def test_refusals_have_the_statuses_of_the_newest_revision(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:
        listen = {"notifications": {"resourceSubscriptions": 1}}
        found = {
            "wrong listen": hub.modern(1, "subscriptions/listen", listen).status,
            "no extension": hub.modern(2, "tasks/get", {"taskId": "tg_nobody"}).status,
            "removed": hub.modern(3, "tasks/result", {"taskId": "tg_nobody"}).status,
            "no name": hub.modern(4, "tools/call", {}).status,
            "cursor": hub.modern(5, "tools/list", {"cursor": "odd"}).status,
            "hidden": hub.modern(6, "tools/call", {"name": "one.nothing"}).status,
        }

    assert found == {
        "wrong listen": 400,
        "no extension": 400,
        "removed": 404,
        "no name": 400,
        "cursor": 400,
        "hidden": 200,
    }


def test_only_the_answer_to_initialize_names_the_session(tmp_path: Path) -> None:
    with serving_http(tmp_path, ONE) as hub:
        opened = hub.post(initialize(0))
        named = {"Mcp_Session_Id": opened.headers["mcp-session-id"]}
        slow = call(1, "one.slow", {"seconds": 0.2})
        slow["params"]["_meta"] = {"progressToken": "t"}
        others = [
            hub.post(request(2, "tools/list"), **named),
            hub.post(slow, **named),
            hub.post(request(3, "no/such"), **named),
        ]

    assert ["mcp-session-id" in one.headers for one in others] == [False, False, False]
    assert others[1].headers["content-type"] == "text/event-stream"


def test_a_client_that_listens_does_not_hold_a_stop_up(tmp_path: Path) -> None:
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
    wanted = {"notifications": {"toolsListChanged": True}, "_meta": envelope()}
    with (
        serving_http(tmp_path, ONE, listen={"drain": "300s"}) as hub,
        hub.connection() as link,
    ):
        body = json.dumps(request(1, "subscriptions/listen", wanted))
        link.request("POST", "/mcp", body, {**ACCEPT, **headers})
        stream = link.getresponse()
        assert _next_message(stream)["method"] == "notifications/subscriptions/acknowledged"
        hub.peer.signal(15)
        assert hub.peer.wait() == 0
        assert stream.read().strip() == b""


@pytest.mark.promise("bounded-memory")
def test_a_call_that_a_client_has_left_takes_no_place(tmp_path: Path) -> None:
    servers = {"one": sample("--never-answer", "echo")}
    with serving_http(tmp_path, servers, listen={"max_concurrent": 1}) as hub:
        named = {"Mcp_Session_Id": hub.open_session()}
        with hub.connection() as link:
            headers = {**ACCEPT, "mcp-session-id": named["Mcp_Session_Id"]}
            link.request("POST", "/mcp", json.dumps(call(1, "one.echo", {"text": "x"})), headers)
            record = hub.state / "audit.jsonl"
            wait_for(lambda: '"tool_call_start"' in record.read_text(), what="the call")
        wait_for(lambda: hub.post(request(2, "ping"), **named).status == 200, what="a place")
