"""``/servers/ID/mcp``: one server of the namespace by itself, under the same rules."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.frames import call, envelope, initialize, request
from tests.support.http_hub import ACCEPT, HttpHub, serving_http
from tests.support.http_upstream import HttpUpstream, Received, Reply, small_server
from tests.support.hub import sample, write_config
from tests.support.waiting import wait_for

TWO = {"one": sample("--tools", "echo,add,slow,grow"), "two": sample("--tools", "echo")}
RULES = [{"tool": "add", "action": "deny"}]
ONE = "/servers/one/mcp"


def named(session: str) -> dict[str, str]:
    return {"Mcp_Session_Id": session}


def tools(hub: HttpHub, path: str, **headers: str) -> list[str]:
    answer = hub.post(request(1, "tools/list"), path=path, **headers)
    return [tool["name"] for tool in answer.messages[0]["result"]["tools"]]


def text(answer: Any) -> str:
    said: str = answer.messages[0]["result"]["content"][0]["text"]
    return said


def records(hub: HttpHub, kind: str) -> list[dict[str, Any]]:
    lines = (hub.state / "audit.jsonl").read_text("utf-8").splitlines()
    return [one for one in map(json.loads, lines) if one["type"] == kind]


@contextmanager
def listening(hub: HttpHub, path: str, session: str) -> Iterator[http.client.HTTPResponse]:
    with hub.connection() as link:
        headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session}
        link.request("GET", path, headers=headers)
        stream = link.getresponse()
        assert stream.status == 200
        assert stream.readline() == b": open\n"
        yield stream


def test_names_have_no_prefix_and_the_handshake_is_the_servers_own(tmp_path: Path) -> None:
    with serving_http(tmp_path, TWO) as hub:
        opened = hub.post(initialize(0), path=ONE)
        session = named(opened.headers["mcp-session-id"])
        listed = tools(hub, ONE, **session)
        called = hub.post(call(2, "echo", {"text": "hi"}), path=ONE, **session)
        prefixed = hub.post(call(3, "one.echo", {"text": "hi"}), path=ONE, **session)
        other = hub.post(call(4, "echo", {"text": "bare"}), path="/servers/two/mcp")

    assert opened.messages[0]["result"]["serverInfo"]["name"] != "thoughtgate"
    assert listed == ["echo", "add", "slow", "grow"]
    assert text(called) == "hi"
    assert "mcp-session-id" not in called.headers
    assert "echo" not in str(prefixed.messages[0].get("result", {}).get("content"))
    assert text(other) == "bare"


def test_a_modern_client_needs_no_session_here_either(tmp_path: Path) -> None:
    body = call(1, "add", {"a": 1, "b": 2})
    body["params"]["_meta"] = envelope()
    headers = {
        "MCP_Protocol_Version": "2026-07-28",
        "Mcp_Method": "tools/call",
        "Mcp_Name": "add",
    }
    with serving_http(tmp_path, TWO) as hub:
        answer = hub.post(body, path=ONE, **headers)
        contradicts = hub.post(body, path=ONE, **{**headers, "Mcp_Name": "echo"})

    assert text(answer) == "3"
    assert contradicts.status == 400


def test_verdicts_and_record_are_those_of_the_catalogue(tmp_path: Path) -> None:
    servers = {"one": sample("--tools", "echo,add,slow", expose={"block": ["slow"]})}
    found: list[list[Any]] = []
    with serving_http(tmp_path, servers, rules=RULES) as hub:
        for path, prefix in (("/mcp", "one."), (ONE, "")):
            session = named(hub.open_session(path=path))
            hub.post(request(1, "tools/list"), path=path, **session)
            kinds = []
            for ident, tool in enumerate(("echo", "add", "slow"), 2):
                body = call(ident, f"{prefix}{tool}", {"text": "x"})
                answer = hub.post(body, path=path, **session).messages[0]
                kinds.append(answer.get("error", {}).get("data", {}).get("kind", "result"))
            found.append(kinds)
        decided = [
            (
                one["call"]["server_name"],
                one["call"]["tool_name"],
                one["call"]["args_hash"],
                one["decision"]["action"],
                one["decision"]["rule_id"],
            )
            for one in records(hub, "tool_call_decision")
        ]
        ends = [one["status"] for one in records(hub, "tool_call_end")]

    assert found[0] == found[1] == ["result", "governance_denied", "not_exposed"]
    assert decided[:3] == decided[3:]
    assert ends[: len(ends) // 2] == ends[len(ends) // 2 :]


def test_a_server_that_is_not_offered_is_404_but_only_for_agents_that_may_know(
    tmp_path: Path,
) -> None:
    servers = {**TWO, "off": sample(enabled=False), "apart": sample()}
    listen = {"transport": "http", "auth": {"type": "bearer", "token_env": "AGENT_TOKEN"}}
    token = {"Authorization": "Bearer a-very-secret-token-of-some-length"}
    asked = ["nobody", "off", "apart", "thoughtgate", "one%00", "*"]
    with serving_http(
        tmp_path,
        servers,
        listen=listen,
        namespaces={"work": ["one", "two", "off"]},
        env={"AGENT_TOKEN": token["Authorization"].partition(" ")[2]},
    ) as hub:
        body = call(1, "echo", {"text": "x"})
        unknown = [hub.post(body, path=f"/servers/{one}/mcp", **token).status for one in asked]
        without = [hub.post(body, path=f"/servers/{one}/mcp").status for one in (*asked, "one")]
        known = hub.post(body, path=ONE, **token).status
        foreign = hub.post(body, path=ONE, Origin="http://evil.example", **token).status
        checks = [one["frame"]["check"] for one in records(hub, "frame_refused")]

    assert checks == ["unknown_path"] * len(asked)
    assert unknown == [404] * len(asked)
    assert without == [401] * (len(asked) + 1)
    assert known == 200
    assert foreign == 403


def test_a_session_belongs_to_the_server_that_it_was_opened_at(tmp_path: Path) -> None:
    with serving_http(tmp_path, TWO) as hub:
        one, whole = hub.open_session(path=ONE), hub.open_session()
        body = call(1, "echo", {"text": "x"})
        elsewhere = [
            hub.post(body, path="/servers/two/mcp", **named(one)).status,
            hub.post(body, **named(one)).status,
            hub.post(body, path=ONE, **named(whole)).status,
        ]
        here = hub.post(body, path=ONE, **named(one))
        ended = hub.send("DELETE", path=ONE, **named(one)).status
        after = hub.post(body, path=ONE, **named(one)).status

    assert elsewhere == [404, 404, 404]
    assert text(here) == "x"
    assert (ended, after) == (204, 404)


def test_with_a_process_for_each_session_a_session_is_needed(tmp_path: Path) -> None:
    servers = {"one": sample("--tools", "echo", isolation="session")}
    with serving_http(tmp_path, servers) as hub:
        refused = hub.post(call(1, "echo", {"text": "x"}), path=ONE)
        session = named(hub.open_session(path=ONE))
        called = hub.post(call(2, "echo", {"text": "x"}), path=ONE, **session)
        checks = [one["frame"]["check"] for one in records(hub, "frame_refused")]

    assert refused.status == 400
    assert checks == ["missing_session"]
    assert text(called) == "x"


def test_sessions_of_all_endpoints_count_towards_one_limit(tmp_path: Path) -> None:
    places = ("/mcp", ONE, "/servers/two/mcp")
    servers = {name: sample("--tools", "echo", isolation="session") for name in ("one", "two")}
    with serving_http(tmp_path, servers, listen={"transport": "http", "max_sessions": 2}) as hub:
        sessions = [named(hub.open_session(path=path)) for path in places]
        found = [
            hub.post(request(1, "tools/list"), path=path, **session).status
            for path, session in zip(places, sessions, strict=True)
        ]
    assert found == [404, 200, 200]


def test_a_batch_whose_server_is_taken_out_of_the_config_is_answered(tmp_path: Path) -> None:
    answers: list[Any] = []
    with serving_http(tmp_path, TWO) as hub:
        session = named(hub.open_session(path=ONE))
        batch = [call(1, "slow", {"seconds": 30}), call(2, "echo", {"text": "x"})]
        caller = threading.Thread(
            target=lambda: answers.append(hub.post(batch, path=ONE, **session))
        )
        caller.start()
        wait_for(lambda: len(records(hub, "tool_call_decision")) == 2, what="both verdicts")
        write_config(hub.config, {"two": TWO["two"]})
        hub.peer.signal(1)
        caller.join(20)
        ended = len(records(hub, "tool_call_end"))
        hub.peer.signal(15)
        hub.peer.wait()
        left = hub.peer.descendants()
    (answer,) = answers[0].messages
    assert sorted(one["id"] for one in answer) == [1, 2]
    assert ended == 2
    assert left == []  # its process ended before the gate, although it was still working


def test_a_server_taken_out_of_the_config_is_disconnected_and_404(tmp_path: Path) -> None:
    with serving_http(tmp_path, TWO, reload="auto") as hub:
        idle = len(hub.peer.descendants())
        session = hub.open_session(path=ONE)
        with listening(hub, ONE, session) as stream:
            write_config(hub.config, {"two": TWO["two"]}, reload="auto")
            rest = stream.read()
        body = call(1, "echo", {"text": "x"})
        gone = hub.post(body, path=ONE, **named(session)).status
        wait_for(lambda: len(hub.peer.descendants()) == idle, what="the end of the process")
        write_config(hub.config, TWO)
        wait_for(lambda: hub.post(body, path=ONE).status == 200, what="the server to be back")
        old = hub.post(body, path="/servers/two/mcp").status

    assert b"data:" not in rest
    assert gone == 404
    assert old == 200


def test_a_change_that_leaves_the_connection_alone_leaves_its_sessions_alone(
    tmp_path: Path,
) -> None:
    with serving_http(tmp_path, TWO) as hub:
        session = named(hub.open_session(path=ONE))
        hub.post(call(1, "grow", {"name": "kept"}), path=ONE, **session)
        before = hub.peer.descendants()
        changed = {**TWO, "one": {**TWO["one"], "timeout": "1s"}}
        write_config(hub.config, changed, rules=RULES)

        def denied() -> bool:
            answer = hub.post(call(2, "add", {"a": 1, "b": 2}), path=ONE, **session)
            return "error" in answer.messages[0]

        wait_for(denied, what="the new rules")
        listed = tools(hub, ONE, **session)
        assert hub.peer.descendants() == before
        # A session that begins now has the new timeout.
        late = hub.post(call(3, "slow", {"seconds": 60}), path=ONE)

    assert "kept" in listed
    assert late.messages[0]["error"]["data"]["kind"] == "tool_call_timeout"


def test_streams_of_single_servers_do_not_hold_a_stop_up(tmp_path: Path) -> None:
    listen = {"transport": "http", "drain": "300s"}
    with (
        serving_http(tmp_path, TWO, listen=listen) as hub,
        listening(hub, ONE, hub.open_session(path=ONE)) as stream,
    ):
        hub.peer.signal(15)
        assert hub.peer.wait() == 0
        assert stream.read() == b"\n"


def test_calls_to_single_servers_count_towards_the_limit_of_concurrency(tmp_path: Path) -> None:
    log = tmp_path / "log"
    servers = {"one": sample("--log", str(log))}
    listen = {"transport": "http", "max_concurrent": 1, "drain": "0s"}
    with serving_http(tmp_path, servers, listen=listen) as hub, hub.connection() as link:
        link.request("POST", ONE, json.dumps(call(1, "slow", {"seconds": 60})), ACCEPT)
        wait_for(lambda: log.exists() and "seconds" in log.read_text())
        refused = hub.modern(2, "tools/list").status

    assert refused == 503


def test_a_call_that_asks_for_a_task_is_the_servers_to_take(tmp_path: Path) -> None:
    body = call(1, "echo", {"text": "x"})
    body["params"]["task"] = {"ttl": 60_000}
    with serving_http(tmp_path, TWO) as hub:
        session = named(hub.open_session(path=ONE))
        answer = hub.post(body, path=ONE, **session)

    assert "task" not in answer.messages[0]["result"]


@pytest.mark.parametrize("status", [200, 500])
def test_a_server_over_http_is_passed_through(tmp_path: Path, status: int) -> None:
    def script(received: Received) -> Reply:
        return small_server(received) if status == 200 else Reply(status)

    with HttpUpstream(script) as upstream:
        servers = {"far": {"url": upstream.url, "headers": {"X-Team": "blue"}}}
        with serving_http(tmp_path, servers, rules=RULES) as hub:
            path = "/servers/far/mcp"
            answer = hub.post(call(1, "echo", {"text": "x"}), path=path, X_Custom="kept")
            denied = hub.post(call(2, "add"), path=path)
        (sent,) = upstream.calls()

    assert (sent.headers["x-custom"], sent.headers["x-team"]) == ("kept", "blue")
    assert denied.messages[0]["error"]["data"]["kind"] == "governance_denied"
    assert ("result" in answer.messages[0]) == (status == 200)
