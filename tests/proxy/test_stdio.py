"""An agent on stdio before an HTTP server, and before a stdio one, as real processes."""

import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import with_state
from tests.support.http_gate import MODERN_META, Gate, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, event, result, text_result
from tests.support.log_lines import verdicts
from tests.support.proxy_process import environment, proxy_command, read_records, sample_server
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

from thoughtgate.channels.agent_prompt import identity
from thoughtgate.core.approval import PENDING, Vote
from thoughtgate.gate.approvals.queue import open_store

RULES = "rules:\n  - {tool: 'delete_*', action: deny}\n"


def _call(tool: str, ident: Any = 1, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


def _peer(directory: Path, config: str) -> StdioPeer:
    path = directory / "thoughtgate.yaml"
    path.write_text(config, "utf-8")
    command = with_state(proxy_command("-c", str(path), "--stdio"))
    return StdioPeer(command, env=environment(directory))


def _script(received: Received) -> Reply:
    message = received.message
    if received.method != "POST":
        note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        return Reply(parts=[event(note)]) if received.method == "GET" else Reply(204)
    if message.get("method") == "initialize":
        reply = result(received, {"protocolVersion": "2025-06-18", "capabilities": {}})
        reply.headers = {"mcp-session-id": "s-1"}
        return reply
    if "id" not in message or "method" not in message:
        return Reply(202)
    return _answer(received)


def _answer(received: Received) -> Reply:
    message = received.message
    if message["method"] == "tools/list":
        return result(received, {"tools": [{"name": "echo"}]})
    if received.tool == "stream":
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
        done = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        return Reply(parts=[event(progress), event(done)])
    if received.tool == "gone":
        return Reply(raw=b"")
    return text_result(received, received.tool)


@pytest.mark.requirement("FR1", "FR10", "FR13")
def test_an_agent_on_stdio_talks_to_an_http_server(tmp_path: Path) -> None:
    with HttpUpstream(_script) as upstream:
        with _peer(tmp_path, config_for(upstream.url, RULES)) as peer:
            opened = peer.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
            assert opened["result"]["protocolVersion"] == "2025-06-18"
            peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            assert peer.receive()["method"] == "notifications/tools/list_changed"
            assert peer.ask(_call("echo", 1))["result"]["content"][0]["text"] == "echo"
            assert peer.ask(_call("delete_x", 2))["error"]["code"] == -32014
            peer.send(_call("stream", "3"))
            assert peer.receive()["method"] == "notifications/progress"
            assert peer.receive()["id"] == "3"
            assert peer.ask(_call("gone", 4))["error"]["code"] == -32000
            peer.write_line(b"not json")
            assert peer.receive()["error"]["code"] == -32700
            assert peer.finish() == 0
        assert upstream.calls("delete_x") == []
        sent = upstream.calls("echo")[0]
        assert sent.headers["mcp-session-id"] == "s-1"
        assert sent.headers["mcp-protocol-version"] == "2025-06-18"
        wait_for(lambda: upstream.received[-1].method == "DELETE", what="the end of the session")
    kinds = [one["type"] for one in read_records(tmp_path)]
    assert kinds[0] == "run_start"
    assert kinds[-1] == "run_end"


def test_questions_come_from_a_file_and_answers_go_to_one(tmp_path: Path) -> None:
    (tmp_path / "questions").write_text(json.dumps(_call("echo")) + "\n", "utf-8")
    with HttpUpstream(_script) as upstream:
        command = proxy_command("--stdio", "--upstream", upstream.url)
        command += ["--state-dir", str(tmp_path / "state")]
        with (
            (tmp_path / "questions").open("rb") as questions,
            (tmp_path / "answers").open("wb") as answers,
        ):
            ended = subprocess.run(
                command,
                stdin=questions,
                stdout=answers,
                env=environment(tmp_path),
                cwd=tmp_path,
                timeout=30,
                check=False,
            )
    assert ended.returncode == 0
    answer = json.loads((tmp_path / "answers").read_text("utf-8"))
    assert answer["result"]["content"][0]["text"] == "echo"


def test_the_newest_revision_has_its_headers_computed(tmp_path: Path) -> None:
    with HttpUpstream(_script) as upstream, _peer(tmp_path, config_for(upstream.url)) as peer:
        message = _call("wéather", 1)
        message["params"]["_meta"] = MODERN_META
        assert peer.ask(message)["id"] == 1
        headers = upstream.calls()[0].headers
        assert headers["mcp-protocol-version"] == "2026-07-28"
        assert headers["mcp-method"] == "tools/call"
        assert headers["mcp-name"].startswith("=?base64?")
        assert "mcp-session-id" not in headers
        assert peer.finish() == 0


def test_a_stream_that_breaks_off_is_resumed(tmp_path: Path) -> None:
    def script(received: Received) -> Reply:
        if received.method == "GET" and received.headers.get("last-event-id") == "e1":
            done = {"jsonrpc": "2.0", "id": 5, "result": {"content": []}}
            return Reply(parts=[event(done, "id: e2\n")])
        if received.tool:
            return Reply(parts=[b"id: e1\nretry: 10\ndata:\n\n"])
        return _script(received)

    with HttpUpstream(script) as upstream, _peer(tmp_path, config_for(upstream.url)) as peer:
        peer.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        assert "result" in peer.ask(_call("echo", 5))
        assert peer.finish() == 0


def test_what_the_server_asks_is_answered_over_http(tmp_path: Path) -> None:
    def script(received: Received) -> Reply:
        if received.tool:
            ask = {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}
            done = {"jsonrpc": "2.0", "id": received.message["id"], "result": {"content": []}}
            return Reply(parts=[event(ask), event(done)])
        return _script(received)

    with HttpUpstream(script) as upstream, _peer(tmp_path, config_for(upstream.url)) as peer:
        peer.send(_call("echo", 1))
        assert peer.receive()["method"] == "roots/list"
        peer.send({"jsonrpc": "2.0", "id": "q", "result": {"roots": []}})
        assert peer.receive()["id"] == 1
        wait_for(
            lambda: any(b'"roots"' in one.body for one in upstream.received), what="the answer"
        )
        assert peer.finish() == 0


@pytest.mark.requirement("FR23")
def test_a_signal_ends_it_with_0(tmp_path: Path) -> None:
    import signal

    with HttpUpstream(_script) as upstream, _peer(tmp_path, config_for(upstream.url)) as peer:
        assert "result" in peer.ask(_call("echo", 1))
        peer.signal(signal.SIGTERM)
        assert peer.wait() == 0


@pytest.mark.requirement("FR10", "FR12")
def test_an_agent_on_stdio_talks_to_a_stdio_server(tmp_path: Path) -> None:
    command = sample_server("--log", str(tmp_path / "log"))
    words = json.dumps(command[1:])
    config = f"schema: 1\ndefault: forward\nservers:\n  kid: {{command: '{command[0]}', args: {words}}}\n{RULES}"
    with _peer(tmp_path, config) as peer:
        opened = peer.ask(
            {
                "jsonrpc": "2.0",
                "id": 0,
                "method": "initialize",
                "params": {"protocolVersion": "2025-06-18", "capabilities": {}},
            }
        )
        assert opened["result"]["protocolVersion"] == "2025-06-18"
        assert "result" in peer.ask(_call("echo", 1, text="hi"))
        assert peer.ask(_call("delete_note", 2, name="x"))["error"]["code"] == -32014
        assert peer.finish() == 0
        peer.assert_nothing_left()
    assert "delete_note" not in (tmp_path / "log").read_text()


@pytest.mark.requirement("ADAPT-002")
def test_stdio_and_http_give_the_same_verdicts_and_the_same_hashes(tmp_path: Path) -> None:
    calls = [_call("echo", 1, b=1.0, a=[1e21, {"z": "é", "y": None}]), _call("delete_x", 2, n=-0.5)]
    found = []
    with HttpUpstream(_script) as upstream:
        config = config_for(upstream.url, RULES)
        over_stdio = tmp_path / "stdio"
        over_stdio.mkdir()
        with _peer(over_stdio, config) as peer:
            for call in calls:
                peer.ask(call)
            assert peer.finish() == 0
        over_http = tmp_path / "http"
        over_http.mkdir()
        with Gate(over_http, config) as gate:
            for call in calls:
                gate.post(call)
        for directory in (over_stdio, over_http):
            decisions = read_records(directory, "tool_call_decision")
            found.append(
                [
                    (
                        one["call"]["args_hash"],
                        one["decision"]["action"],
                        one["decision"]["rule_id"],
                    )
                    for one in decisions
                ]
            )
    assert found[0] == found[1]
    assert [action for _, action, _ in found[0]] == ["ALLOW", "BLOCK"]


HELD = "rules: [{tool: drop, action: approve}]\napproval: {default: {allow_elicitation: true}}\n"


def _decide(directory: Path, *, approve: bool) -> None:
    """Answer the one question at another terminal, once it is asked."""
    with contextlib.closing(open_store(str(directory / "state"))) as store:
        (asked,) = wait_for(lambda: store.listed(PENDING), what="the question")
        store.vote(asked.id, [Vote("terminal:ann", approve, time.time(), "")], time.time())


def test_a_held_call_of_an_agent_on_stdio_is_answered_whatever_people_say(tmp_path: Path) -> None:
    with (
        HttpUpstream(_script) as upstream,
        _peer(tmp_path, config_for(upstream.url, HELD)) as peer,
    ):
        peer.send(_call("drop", 1))
        _decide(tmp_path, approve=False)
        assert peer.receive()["error"]["data"]["kind"] == "approval_rejected"
        assert upstream.calls("drop") == []
        peer.send(_call("drop", 2))
        _decide(tmp_path, approve=True)
        assert peer.receive()["result"]["content"][0]["text"] == "drop"
        assert peer.finish() == 0


@pytest.mark.parametrize("approve", [True, False])
def test_an_agent_on_stdio_is_asked_itself(tmp_path: Path, approve: bool) -> None:
    with (
        HttpUpstream(_script) as upstream,
        _peer(tmp_path, config_for(upstream.url, HELD)) as peer,
    ):
        can: dict[str, Any] = {"capabilities": {"elicitation": {}}}
        peer.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": can})
        peer.send(_call("drop", 1))
        prompt = peer.receive()
        assert prompt["method"] == "elicitation/create"
        decision = "approve" if approve else "deny"
        said = {"action": "accept", "content": {"decision": decision}}
        peer.send({"jsonrpc": "2.0", "id": prompt["id"], "result": said})
        assert ("result" in peer.receive()) is approve
        assert len(upstream.calls("drop")) == approve
        assert peer.finish() == 0
    (decided,) = [e for e in read_records(tmp_path) if e["type"] == "approval_decided"]
    assert decided["approval"]["decided_by"] == identity()


@pytest.mark.parametrize("form", ["human", "json"])
@pytest.mark.parametrize("kind", ["http", "stdio"])
def test_log_lines_are_written_when_the_config_wants_json(
    tmp_path: Path, kind: str, form: str
) -> None:
    with HttpUpstream(lambda one: text_result(one, "x")) as upstream:
        command, *args = sample_server()
        server = {"url": upstream.url} if kind == "http" else {"command": command, "args": args}
        config = {
            "schema": 1,
            "default": "deny",
            "telemetry": {"log_format": form},
            "servers": {"one": server},
        }
        (tmp_path / "thoughtgate.yaml").write_text(json.dumps(config), "utf-8")
        done = subprocess.run(
            with_state(proxy_command("-c", str(tmp_path / "thoughtgate.yaml"), "--stdio")),
            input=json.dumps(_call("echo", text="x")) + "\n",
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    said = [line["governance_decision"] for line in verdicts(done.stderr, "proxy")]
    assert said == (["deny"] if form == "json" else [])
