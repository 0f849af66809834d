"""Tasks of the newest revision: the call runs alone, with the headers that it needs."""

from pathlib import Path
from typing import Any

from tests.support.http_gate import Gate, config_for, decide, modern_call_of, modern_headers
from tests.support.http_upstream import HttpUpstream, Received, Reply, text_result
from tests.support.waiting import wait_for

RULES = "rules:\n  - {tool: 'pay*', action: approve}\n"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def _modern(tool: str) -> dict[str, Any]:
    message = modern_call_of(tool)
    meta = {**message["params"]["_meta"], "io.modelcontextprotocol/clientCapabilities": TASKS}
    message["params"]["_meta"] = meta
    return message


def _get(gate: Gate, task_id: str) -> dict[str, Any]:
    message = _modern("x")
    params = {"taskId": task_id, "_meta": message["params"]["_meta"]}
    ask = {"jsonrpc": "2.0", "id": 9, "method": "tasks/get", "params": params}
    result: dict[str, Any] = gate.post(ask, modern_headers(task_id, "tasks/get")).json["result"]
    return result


def test_a_task_of_the_newest_revision_runs_once_it_is_approved(tmp_path: Path) -> None:
    def script(received: Received) -> Reply:
        return text_result(received, "paid")

    with HttpUpstream(script) as upstream, Gate(tmp_path, config_for(upstream.url, RULES)) as gate:
        created = gate.post(_modern("pay"), modern_headers("pay")).json["result"]
        assert created["resultType"] == "task"
        assert upstream.received == []
        decide(gate, approve=True)
        done = wait_for(
            lambda: (
                found if (found := _get(gate, created["taskId"]))["status"] == "completed" else None
            ),
            what="the end of the task",
        )
        assert done["result"]["content"][0]["text"] == "paid"
        headers = upstream.calls("pay")[0].headers
        assert headers["mcp-method"] == "tools/call"
        assert headers["mcp-name"] == "pay"
        assert len(upstream.calls("pay")) == 1


def test_a_task_whose_server_is_gone_fails(tmp_path: Path) -> None:
    with (
        HttpUpstream(lambda _: Reply(raw=b"")) as upstream,
        Gate(tmp_path, config_for(upstream.url, RULES)) as gate,
    ):
        created = gate.post(_modern("pay"), modern_headers("pay")).json["result"]
        decide(gate, approve=True)
        wait_for(
            lambda: _get(gate, created["taskId"])["status"] == "failed", what="the task's failure"
        )
