"""Every error that an agent is told has an id, and ``audit show`` finds it on the record."""

import http.client
import json
from typing import Any

import pytest
from tests.faces.agents import HttpAgent, envelope
from tests.faces.face import STDIO_AGENT, Gate
from tests.support.warm_command import run_warm

HTTP_ONLY = pytest.mark.not_for("the agent does not use HTTP", *STDIO_AGENT)


def id_of(answer: dict[str, Any]) -> str:
    """Return the correlation id of an error."""
    found = answer["error"]["data"]["correlation_id"]
    assert isinstance(found, str)
    return found


def check_found(gate: Gate, ident: str) -> dict[str, Any]:
    """Fail unless ``audit show`` finds an id; return what it says."""
    record = gate.state / "audit.jsonl"

    def found() -> Any:
        done = run_warm("audit", "show", ident, "--record", str(record), "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    (one,) = gate.wait(found, f"{ident} on the record")
    return dict(one)


def test_a_denied_call_is_found_by_its_id(gate: Gate) -> None:
    ident = id_of(gate.agent().call("denied", {"mark": "id-denied"}))
    assert check_found(gate, ident)["call_id"] == ident


@pytest.mark.parametrize(
    ("frame", "ident"),
    [
        (b'{"jsonrpc":"2.0","id":"c-1","method":"tools/call","params":{"name":5}}', "c-1"),
        (b'{"id":"c-2","method":"ping"}', "c-2"),
        (b"{nonsense", None),
    ],
    ids=["params", "version", "parse"],
)
def test_a_refused_frame_is_found_by_its_id(gate: Gate, frame: bytes, ident: str | None) -> None:
    agent = gate.agent()
    agent.send_raw(frame)
    told = agent.inbox.answer(ident)
    assert check_found(gate, id_of(told))["frame"]["correlation_id"] == id_of(told)


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
def test_an_unknown_task_is_found_by_its_id(gate: Gate, *, modern: bool) -> None:
    params: dict[str, Any] = {"taskId": f"tg_unknown_{modern}"}
    if modern:
        params["_meta"] = envelope(tasks=True)
    ident = id_of(gate.agent().ask("tasks/get", params, modern=modern))
    found = check_found(gate, ident)
    assert found["type"] == "request_failed"
    assert found["request"] == {
        "method": "tasks/get",
        "kind": "task_not_found",
        "correlation_id": ident,
    }


@HTTP_ONLY
@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/nowhere", {}, 404),
        ("POST", "/mcp", {"content-type": "text/plain"}, 415),
        ("POST", "/mcp", {"accept": "image/png"}, 406),
        ("POST", "/mcp", {"host": "elsewhere.example"}, 421),
        ("POST", "/mcp", {"origin": "https://elsewhere.example"}, 403),
        ("POST", "/mcp", {"mcp-session-id": "unknown"}, 404),
        ("PUT", "/mcp", {}, 405),
        ("GET", "/mcp", {}, 405),
        ("GET", "/mcp", {"mcp-session-id": "unknown"}, 404),
    ],
)
def test_a_refused_http_request_is_found_by_its_id(
    gate: Gate, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    agent = gate.agent()
    assert isinstance(agent, HttpAgent)
    connection = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=agent.inbox.patience_s)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) if method == "POST" else None
    usual = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    connection.request(method, path, body, {**usual, **headers})
    response = connection.getresponse()
    told = json.loads(response.read())
    connection.close()
    assert response.status == status
    found = check_found(gate, id_of(told))
    said = found.get("frame") or found["agent"]
    assert said["address"] == "127.0.0.1"
