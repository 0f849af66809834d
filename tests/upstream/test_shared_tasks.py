"""Tasks of a stdio server that all agents share: each agent sees its own."""

import json
import socket
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.http_gate import Gate, config_for, read_until
from tests.support.http_upstream import HttpUpstream, Received, Reply, result
from tests.support.sign_in import AUDIENCE, ISSUER, running_issuer, token

from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.server_tasks import ServerTaskStore
from thoughtgate.upstream.shared_tasks import RELATED, SharedTasks, StoredTasks
from thoughtgate.wire.methods import LISTEN

SERVER = """
import json, sys
tasks = []
for line in sys.stdin:
    said = json.loads(line)
    method, params = said.get("method"), said.get("params") or {}
    if "id" not in said or not method:
        continue
    result = {}
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/call":
        tasks.append({"taskId": f"task-{len(tasks)}", "status": "working"})
        result = {"task": tasks[-1]}
        about = {"method": "notifications/tasks/status", "params": tasks[-1]}
        print(json.dumps({"jsonrpc": "2.0", **about}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    elif method == "tasks/list":
        result = {"tasks": tasks}
    elif method.startswith("tasks/"):
        result = {"taskId": params["taskId"], "content": "private"}
    print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}), flush=True)
"""


class _Driver:
    def __init__(self, principal: str) -> None:
        self.principal = principal


def _driver(principal: str) -> SessionDriver:
    return cast("SessionDriver", _Driver(principal))


@pytest.mark.parametrize("created", [{"task": {"taskId": "t"}}, {"taskId": "t"}])
def test_a_task_is_used_only_by_the_principal_that_got_it(created: dict[str, Any]) -> None:
    tasks, ann, bob = SharedTasks(), _driver("ann"), _driver("bob")
    assert tasks.answered(ann, "tools/call", created) == created
    tasks.answered(bob, "tools/call", created)  # the first keeps it
    tasks.answered(bob, "tasks/get", {"taskId": "u"})  # only a new task gets an owner
    for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
        assert tasks.may_use(ann, method, {"taskId": "t"})
        assert tasks.may_use(_driver("ann"), method, {"taskId": "t"})
        for other in ({"taskId": "t"}, {"taskId": "u"}, {"taskId": 1}, {}):
            assert not tasks.may_use(bob, method, other)
    assert tasks.may_use(bob, "tools/call", {"taskId": "t"})
    abouts: list[Any] = [{"taskId": "t"}, {"taskId": "u"}, {"taskID": "t"}, {}, "t"]
    for about in (*abouts, {"taskId": "b", "TaskId": "t"}):
        assert not tasks.may_use(bob, "tools/call", {"name": "x", "_meta": {RELATED: about}})
    assert tasks.may_use(ann, "tools/call", {"name": "x", "_meta": {RELATED: {"taskId": "t"}}})
    odd: list[Any] = [["t"], "t", [["t"]]]
    for named in odd:
        assert not tasks.may_use(bob, LISTEN, {"notifications": {"taskIds": named}})
    plain: list[dict[str, Any]] = [{"notifications": {"taskIds": ["t"]}}, {"notifications": 1}, {}]
    assert all(tasks.may_use(ann, LISTEN, params) for params in plain)


def test_a_list_has_the_tasks_of_its_session() -> None:
    tasks, one, other = SharedTasks(), _driver("ann"), _driver("ann")
    tasks.answered(one, "tools/call", {"task": {"taskId": "t"}})
    listed = {"tasks": [{"taskId": "t"}, {"taskId": "u"}, "odd", {}], "nextCursor": "c"}
    assert tasks.answered(one, "tasks/list", listed) == {**listed, "tasks": [{"taskId": "t"}]}
    assert tasks.answered(other, "tasks/list", listed) == {**listed, "tasks": []}
    assert tasks.answered(other, "tasks/list", "odd") == "odd"


def test_a_notification_about_a_task_concerns_its_session() -> None:
    tasks, one, other = SharedTasks(), _driver("ann"), _driver("ann")
    tasks.answered(one, "tools/call", {"task": {"taskId": "t"}})
    for params in ({"taskId": "t"}, {"_meta": {RELATED: {"taskId": "t"}}}):
        assert tasks.concerns(one, params) is True
        assert tasks.concerns(other, params) is False
    assert tasks.concerns(one, {"_meta": {}}) is None


def test_the_oldest_task_is_forgotten() -> None:
    tasks, ann = SharedTasks(limit=1), _driver("ann")
    for ident in ("a", "b"):
        tasks.answered(ann, "tools/call", {"taskId": ident})
    assert [tasks.may_use(ann, "tasks/get", {"taskId": one}) for one in "ab"] == [False, True]


def _ask(gate: Gate, session: dict[str, str], method: str, params: dict[str, Any]) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return gate.post(body, session).json


def test_an_agent_sees_no_task_of_another(tmp_path: Path) -> None:
    command = f"command: {json.dumps(sys.executable)}, args: {json.dumps(['-c', SERVER])}"
    config = f"schema: 1\ndefault: forward\nservers:\n  kid: {{{command}}}\n"
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
    with Gate(tmp_path, config) as gate:
        opened = [
            gate.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
            for _ in range(2)
        ]
        mine, theirs = ({"mcp-session-id": one.headers["mcp-session-id"]} for one in opened)
        with socket.create_connection(("127.0.0.1", gate.port), 10) as stream:
            head = f"GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{gate.port}\r\naccept: */*\r\n"
            stream.sendall(f"{head}mcp-session-id: {theirs['mcp-session-id']}\r\n\r\n".encode())
            read_until(stream, b": open")
            called = _ask(gate, mine, "tools/call", {"name": "x", "arguments": {}, "task": {}})
            assert called["result"]["task"]["taskId"] == "task-0"
            assert b"task-0" not in read_until(stream, b"list_changed")
        assert _ask(gate, theirs, "tasks/list", {})["result"]["tasks"] == []
        assert len(_ask(gate, mine, "tasks/list", {})["result"]["tasks"]) == 1
        named = {"taskId": "task-0"}
        assert _ask(gate, mine, "tasks/result", named)["result"]["content"] == "private"
        unknown = _ask(gate, mine, "tasks/result", {"taskId": "task-9"})
        assert unknown["error"]["data"]["kind"] == "task_not_found"
        # A server would make the call part of the task, and give what it asks to the task's caller.
        part = {"name": "x", "arguments": {}, "_meta": {RELATED: named}}
        assert _ask(gate, mine, "tools/call", part)["result"]["task"]["taskId"] == "task-1"
        part["_meta"] = {RELATED: {"taskId": "task-9"}}
        refused = _ask(gate, mine, "tools/call", part)["error"]
        assert refused["data"]["kind"] == "task_not_found"


def _answers_as_a_server_with_tasks(received: Received) -> Reply:
    message = received.message
    if received.method != "POST" or "id" not in message:
        return Reply(202)
    method, params = message["method"], message.get("params") or {}
    if method == "tools/call":
        made = {"taskId": params["arguments"]["task"], "status": "working"}
        return result(received, {"task": made} if "task" in params else made)
    if method == "tasks/list":
        listed = [{"taskId": each, "status": "working"} for each in ("of-ann", "of-bob", "early")]
        return result(received, {"tasks": listed})
    return result(received, {"content": "private", **params})


def test_a_task_of_a_server_over_http_belongs_to_the_principal_that_got_it(tmp_path: Path) -> None:
    with HttpUpstream(_answers_as_a_server_with_tasks) as server, running_issuer() as issuer:
        config = config_for(
            server.url,
            "listen:\n  transport: http\n  auth:\n    type: jwt\n"
            f"    jwks_url: {issuer.url}\n    issuer: {ISSUER}\n    audience: {AUDIENCE}\n",
        )
        for is_new in (True, False):  # a gate that starts again knows the owners
            with Gate(tmp_path, config) as gate:
                ann, bob = (
                    partial(_ask, gate, {"authorization": f"Bearer {token(sub=name)}"})
                    for name in ("ann", "bob")
                )
                if is_new:
                    ann("tools/call", {"name": "x", "arguments": {"task": "of-ann"}, "task": {}})
                    bob("tools/call", {"name": "x", "arguments": {"task": "of-bob"}})
                    # A server cannot hand a task over by giving its id to another principal.
                    bob("tools/call", {"name": "x", "arguments": {"task": "of-ann"}})
                before = len(server.received)
                for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
                    for ident in ("of-ann", "early", 5, None):
                        refused = bob(method, {"taskId": ident})["error"]
                        assert refused["data"]["kind"] == "task_not_found"
                for wanted in (["of-bob", "of-ann"], "of-ann"):
                    said = {"notifications": {"taskIds": wanted}}
                    assert "error" in bob("subscriptions/listen", said)
                part = {"name": "x", "arguments": {}, "_meta": {RELATED: {"taskId": "of-ann"}}}
                assert bob("tools/call", part)["error"]["data"]["kind"] == "task_not_found"
                assert bob("Tasks/get", {"taskId": "of-ann"})["error"]
                assert bob("subscriptions/listen", {"notifications": {"TaskIds": ["of-ann"]}})[
                    "error"
                ]
                assert len(server.received) == before
                for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
                    assert ann(method, {"taskId": "of-ann"})["result"]["content"] == "private"
                for who, own in ((ann, "of-ann"), (bob, "of-bob")):
                    listed = who("tasks/list", {})["result"]["tasks"]
                    assert [one["taskId"] for one in listed] == [own]


def test_answers_that_no_server_should_give_make_no_owner(tmp_path: Path) -> None:
    with closing(open_database(StoreLocation(tmp_path))) as database:
        tasks = StoredTasks(ServerTaskStore(database), "up")
        for answer in (b"no JSON", b"[1]", b'{"result": 5}', b'{"result": {"task": 1}}'):
            tasks.answered("ann", answer)
        odd: list[dict[str, Any]] = [{}, {"result": []}, {"result": {"tasks": 5}}]
        assert [tasks.listed("ann", one) for one in odd] == odd
    tasks.answered("ann", b'{"result": {"taskId": "t"}}')  # the store is closed
    assert not tasks.may_use("ann", "tasks/get", {"taskId": "t"})
