"""Tasks in both forms: 2025-11-25, where the agent asks for one, and 2026-07-28."""

from typing import Any

import pytest
from tests.faces.agents import SPEC, Agent, envelope
from tests.faces.face import Gate
from tests.faces.outcomes import MESSAGES, text_of
from tests.faces.people import decide, wait_until_asked, wait_until_withdrawn
from tests.faces.record_view import CallRecord, check_calls
from tests.faces.test_holds import by_person

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])


def start_task(agent: Agent, arguments: dict[str, Any], *, modern: bool) -> str:
    """Call a tool that a person must approve, as an agent that takes a task."""
    if modern:
        answer = agent.call("asked", arguments, modern=True, _meta=envelope(tasks=True))
        task = answer["result"]
        assert task["resultType"] == "task"
    else:
        answer = agent.call("asked", arguments, task={"ttl": 60_000})
        task = answer["result"]["task"]
    assert task["status"] == "working"
    return str(task["taskId"])


def about(agent: Agent, method: str, task: str, *, modern: bool) -> dict[str, Any]:
    """Ask about a task."""
    params: dict[str, Any] = {"taskId": task}
    if modern:
        params["_meta"] = envelope(tasks=True)
    return agent.ask(method, params, modern=modern)


def wait_for_status(
    gate: Gate, agent: Agent, task: str, status: str, *, modern: bool
) -> dict[str, Any]:
    """Wait until a task has a status."""

    def found() -> dict[str, Any] | None:
        result = about(agent, "tasks/get", task, modern=modern)["result"]
        return result if result["status"] == status else None

    waited: dict[str, Any] = gate.wait(found, f"a task that is {status}")
    return waited


def task_record(mark: str, *, modern: bool) -> CallRecord:
    """Return the start of a call's record; in 2026-07-28 the agent does not ask for a task."""
    arguments = {"mark": mark}
    return CallRecord("asked", arguments) if modern else CallRecord("asked", arguments, task=True)


@ERAS
def test_task_approved(gate: Gate, *, modern: bool) -> None:
    agent = gate.agent()
    mark = f"tasks/approved/{modern}"
    task = start_task(agent, {"mark": mark}, modern=modern)
    decide(gate, mark, approve=True)
    found = wait_for_status(gate, agent, task, "completed", modern=modern)
    assert len(gate.received(mark)) == 1
    if modern:
        assert found["result"]["content"][0]["text"] == "done"
    else:
        answer = about(agent, "tasks/result", task, modern=False)
        assert text_of(answer) == "done"
        assert answer["result"]["_meta"][f"{SPEC}related-task"] == {"taskId": task}
    record = task_record(mark, modern=modern).held("people")
    record.answered("approved", executes=True, kind=None, **by_person(approve=True))
    check_calls(gate, mark, record.ended("OK"))


@ERAS
def test_task_rejected(gate: Gate, *, modern: bool) -> None:
    agent = gate.agent()
    mark = f"tasks/rejected/{modern}"
    task = start_task(agent, {"mark": mark}, modern=modern)
    decide(gate, mark, approve=False)
    found = wait_for_status(gate, agent, task, "failed", modern=modern)
    error = found["error"] if modern else about(agent, "tasks/result", task, modern=False)["error"]
    assert error["data"]["kind"] == "approval_rejected"
    assert gate.received(mark) == []
    record = task_record(mark, modern=modern).held("people")
    more = by_person(approve=False)
    record.answered("rejected", executes=False, kind="approval_rejected", **more)
    check_calls(gate, mark, record.refused("approval_rejected", MESSAGES["approval_rejected"]))


@ERAS
def test_task_cancelled(gate: Gate, *, modern: bool) -> None:
    agent = gate.agent()
    mark = f"tasks/cancelled/{modern}"
    task = start_task(agent, {"mark": mark}, modern=modern)
    wait_until_asked(gate, mark)
    assert "result" in about(agent, "tasks/cancel", task, modern=modern)
    wait_until_withdrawn(gate, mark)
    wait_for_status(gate, agent, task, "cancelled", modern=modern)
    assert gate.received(mark) == []
    record = task_record(mark, modern=modern).held("people")
    record.withdrawn("the caller cancelled")
    check_calls(gate, mark, record.refused("task_cancelled", "the task was cancelled"))


@ERAS
def test_unknown_task(gate: Gate, *, modern: bool) -> None:
    agent = gate.agent()
    answer = about(agent, "tasks/get", "tg_there_is_no_such_task", modern=modern)
    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize(
    "task", [5, "x", [], True, {"ttl": "60000"}, {"ttl": -1}, {"ttl": 1.5}, {"ttl": True}]
)
@pytest.mark.parametrize("tool", ["echo", "asked", "denied"])
def test_a_wish_for_a_task_that_makes_no_sense(gate: Gate, tool: str, task: Any) -> None:
    mark = f"tasks/wrong/{tool}/{task}"
    answer = gate.agent().call(tool, {"mark": mark}, task=task)
    error = answer["error"]
    assert (error["code"], error["data"]["kind"]) == (-32602, "invalid_params")
    assert "params.task" in error["message"]
    assert error["data"]["correlation_id"]
    assert gate.received(mark) == []


def test_the_end_of_a_task_is_told_to_who_listens(gate: Gate) -> None:
    agent = gate.agent()
    mark = "tasks/told"
    task = start_task(agent, {"mark": mark}, modern=False)

    def told() -> list[str]:
        return [
            one["params"]["status"]
            for one in agent.inbox.messages
            if one["method"] == "notifications/tasks/status" and one["params"]["taskId"] == task
        ]

    decide(gate, mark, approve=True)
    gate.wait(told, "the notification")
    assert told() == ["completed"]


def test_the_handshake_offers_tasks(gate: Gate) -> None:
    result = gate.agent().handshake
    assert result["protocolVersion"] == "2025-11-25"
    assert result["capabilities"]["tasks"]["requests"]["tools"]["call"] == {}
    assert result["capabilities"]["tasks"]["cancel"] == {}


def test_discovery_offers_tasks(gate: Gate) -> None:
    answer = gate.agent().ask("server/discover", {"_meta": envelope()}, modern=True)
    assert answer["result"]["capabilities"]["extensions"][f"{SPEC}tasks"] == {}


def test_tools_say_that_calls_may_be_tasks(gate: Gate) -> None:
    agent = gate.agent()
    agent.open()  # On a pipe of its own, serve goes by what the agent said last.
    tools = agent.ask("tools/list", {})["result"]["tools"]
    said = {one["name"].removeprefix(agent.prefix): one.get("execution", {}) for one in tools}
    assert said["asked"] == {"taskSupport": "optional"}
    assert said["echo"] == {"taskSupport": "optional"}


def test_a_call_that_nobody_must_approve_becomes_a_task(gate: Gate) -> None:
    """The server knows no tasks, so the gate keeps the task and makes the call without it."""
    agent = gate.agent()
    mark = "tasks/granted"
    answer = agent.call("echo", {"mark": mark}, task={"ttl": 60_000})
    task = answer["result"]["task"]["taskId"]
    wait_for_status(gate, agent, task, "completed", modern=False)
    assert text_of(about(agent, "tasks/result", task, modern=False)) == "done"
    (received,) = gate.received(mark)
    assert "task" not in received["params"]
