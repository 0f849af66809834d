"""Calls whose callers took a task and went on."""

import json
from typing import Any

from tests.support.frames import line

from thoughtgate.core.commands import Command, EndTask, ToAgent, ToServer
from thoughtgate.core.session_replies import PendingRequest
from thoughtgate.core.task_calls import TaskCalls
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message


def held(call_id: str = "run.1", **params: Any) -> PendingRequest:
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add", **params}}
    message = read_frame(line(body))
    assert isinstance(message, Message)
    return PendingRequest(
        message, "tools/call", "add", 1.0, modern=False, token=None, call_id=call_id
    )


def test_nothing_is_tasked_at_first() -> None:
    calls = TaskCalls()

    assert not calls.is_used
    assert calls.take("run.1") is None
    assert calls.take_all() == []


def test_a_held_call_is_given_back_once() -> None:
    calls = TaskCalls()
    asked = held()
    calls.hold(asked)
    assert calls.is_used

    assert calls.take("run.1") is asked
    assert calls.take("run.1") is None


def test_all_held_calls_are_given_back_at_once() -> None:
    calls = TaskCalls()
    calls.hold(held("run.1"))
    calls.hold(held("run.2"))

    assert [asked.call_id for asked in calls.take_all()] == ["run.1", "run.2"]


def test_a_call_runs_under_an_id_of_the_gates_own_and_without_its_task() -> None:
    calls = TaskCalls()
    message = calls.run(held(task={"ttl": 5}, arguments={"a": 1}))
    sent = json.loads(message.raw)

    assert sent == message.body
    assert sent["id"] == message.id == "tg-run.1"
    assert sent["params"] == {"name": "add", "arguments": {"a": 1}}
    assert sent["method"] == "tools/call"
    assert calls.is_used


def test_what_the_server_says_of_a_task_never_reaches_the_agents_line() -> None:
    calls = TaskCalls()
    ident = calls.run(held()).id
    answer = line({"jsonrpc": "2.0", "id": ident, "result": {"content": []}})

    assert calls.divert([ToAgent(answer, ident)], 9.0) == [
        EndTask("run.1", {"jsonrpc": "2.0", "id": ident, "result": {"content": []}}, 9.0)
    ]


def test_other_commands_are_left_alone() -> None:
    calls = TaskCalls()
    ident = calls.run(held()).id
    others: list[Command] = [
        ToServer(b"{}", ident),
        ToAgent(b"{}"),
        ToAgent(b"{}", 7),
        ToAgent(b"{}", "tg-run.2"),
    ]

    assert calls.divert(list(others), 9.0) == others
    assert calls.is_used


def test_a_task_ends_once() -> None:
    calls = TaskCalls()
    ident = calls.run(held()).id
    answer = ToAgent(line({"jsonrpc": "2.0", "id": ident, "result": {}}), ident)
    first, second = calls.divert([answer, answer], 9.0)

    assert isinstance(first, EndTask)
    assert second is answer
