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
