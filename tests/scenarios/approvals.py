"""What must be true of held calls wherever the gate stands: one list, run on every stage.

Each scenario takes a stage that others have used and will use, and leaves it so. Those in
``LAST`` end their stage.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.support.stages import DRIFTED, RULES, Stage, kind_of, mark
from tests.support.waiting import wait_for

from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.core.grant import Remember

Scenario = Callable[[Stage], None]

OVERDUE_S: Final = 30.0
"""Longer than the longest timeout in the stages' config."""


def refusal(said: Approval | Refusal) -> str:
    """Return why a decision did not count."""
    assert isinstance(said, Refusal), said
    return said.text


# Calls whose callers wait.


def approved(stage: Stage) -> None:
    """An approved call runs once, and its approval is spent."""
    ident = stage.call()
    question = stage.question(ident)
    assert question.tool == "add"
    assert mark(ident) in question.arguments
    assert stage.ran(ident) == 0
    stage.vote(question)
    assert "result" in stage.answer(ident)
    assert stage.ran(ident) == 1
    assert "already used" in refusal(stage.vote(question))
    assert stage.outcome(ident) == "approved"


def refused(stage: Stage) -> None:
    """A refused call is answered and never runs; the person's words stay with the person."""
    ident = stage.call()
    stage.decide(ident, approve=False)
    answer = stage.answer(ident)
    assert (answer["error"]["code"], kind_of(answer)) == (-32007, "approval_rejected")
    assert "as the test says" not in str(answer)
    assert stage.ran(ident) == 0


def cancelled(stage: Stage) -> None:
    """A cancellation takes the question back; whoever approves then is told so."""
    ident = stage.call()
    question = stage.question(ident)
    params = {"requestId": ident, "reason": "changed my mind"}
    stage.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    wait_for(lambda: not stage.is_asked(ident), what="the withdrawal")
    assert "withdrawn" in refusal(stage.vote(question))
    assert stage.ran(ident) == 0
    wait_for(lambda: stage.outcome(ident) == "withdrawn", what="the outcome on record")


def others_flow(stage: Stage) -> None:
    """One held call stops nobody: pings, lists and other calls go on."""
    ident = stage.call()
    stage.question(ident)
    assert stage.ask("ping")["result"] == {}
    assert stage.ask("tools/list")["result"]["tools"]
    other = stage.call("echo")
    assert "result" in stage.answer(other)
    assert stage.ran(ident) == 0
    stage.decide(ident, approve=False)
    stage.answer(ident)


def remembered(stage: Stage) -> None:
    """A remembered approval lets the next such call through, once, without a question."""
    first = stage.call()
    stage.decide(first, remember=Remember("once", "tool"))
    stage.answer(first)
    second = stage.call()
    assert "result" in stage.answer(second)
    third = stage.call()
    stage.decide(third, approve=False)
    assert kind_of(stage.answer(third)) == "approval_rejected"
    assert (stage.ran(second), stage.ran(third)) == (1, 0)


def judged_again(stage: Stage) -> None:
    """What a call would be refused for by now, it is refused for although it was approved."""
    first, second = stage.call("fail"), stage.call("fail")
    stage.question(second)
    stage.decide(first)
    assert "result" in stage.answer(first)
    stage.decide(second)
    assert kind_of(stage.answer(second)) == "budget"
    assert (stage.ran(first), stage.ran(second)) == (1, 0)


def drifted(stage: Stage) -> None:
    """Rules that changed while a call was held decide over the approval."""
    ident = stage.call()
    question = stage.question(ident)
    stage.write_rules(DRIFTED)
    wait_for(lambda: stage.records("policy_changed"), what="the new rules")
    stage.vote(question)
    assert kind_of(stage.answer(ident)) == "policy_drift"
    assert stage.ran(ident) == 0
    before = len(stage.records("policy_changed"))
    stage.write_rules(RULES)

    def is_noticed() -> bool:
        """Rules are looked at as calls are judged."""
        stage.answer(stage.call("echo"))
        return len(stage.records("policy_changed")) > before

    wait_for(is_noticed, what="the old rules")


# Tasks.


def _task(stage: Stage, *, modern: bool) -> tuple[int, str]:
    """Call as a caller that takes a task; return the call and the task."""
    ident = stage.call(modern=True) if modern else stage.call(task={"ttl": 60_000})
    result = stage.answer(ident)["result"]
    task = result if modern else result["task"]
    assert task["status"] == "working"
    assert result.get("resultType") == ("task" if modern else None)
    return ident, task["taskId"]


def _becomes(stage: Stage, task_id: str, status: str, *, modern: bool) -> dict[str, Any]:
    def looked() -> dict[str, Any] | None:
        found: dict[str, Any] = stage.about("tasks/get", task_id, modern=modern)["result"]
        return found if found["status"] == status else None

    return wait_for(looked, what=f"a task that is {status}")


def task_approved(stage: Stage) -> None:
    """2025-11-25: a task at once; the call runs when approved, not when its result is fetched."""
    ident, task_id = _task(stage, modern=False)
    stage.decide(ident)
    _becomes(stage, task_id, "completed", modern=False)
    assert stage.ran(ident) == 1
    result = stage.about("tasks/result", task_id)["result"]
    assert "content" in result
    assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task_id}
    assert stage.ran(ident) == 1


def task_waited_for(stage: Stage) -> None:
    """2025-11-25: ``tasks/result`` blocks until the call has ended."""
    ident, task_id = _task(stage, modern=False)
    waiter = next(stage._ids)
    params = {"taskId": task_id}
    stage.send({"jsonrpc": "2.0", "id": waiter, "method": "tasks/result", "params": params})
    stage.decide(ident)
    assert "content" in stage.answer(waiter)["result"]


def task_refused(stage: Stage) -> None:
    """2025-11-25: a refusal ends the task, and its result says why."""
    ident, task_id = _task(stage, modern=False)
    stage.decide(ident, approve=False)
    _becomes(stage, task_id, "failed", modern=False)
    assert kind_of(stage.about("tasks/result", task_id)) == "approval_rejected"
    assert stage.ran(ident) == 0


def task_cancelled(stage: Stage) -> None:
    """2025-11-25: a cancelled task takes its question back and stays cancelled."""
    ident, task_id = _task(stage, modern=False)
    question = stage.question(ident)
    assert stage.about("tasks/cancel", task_id)["result"]["status"] == "cancelled"
    wait_for(lambda: not stage.is_asked(ident), what="the withdrawal")
    refusal(stage.vote(question))
    again = stage.about("tasks/cancel", task_id)
    assert again["error"]["code"] == -32602
    assert stage.ran(ident) == 0


def modern_task_approved(stage: Stage) -> None:
    """2026-07-28: the gate volunteers a task; its result comes with ``tasks/get``."""
    ident, task_id = _task(stage, modern=True)
    stage.decide(ident)
    found = _becomes(stage, task_id, "completed", modern=True)
    assert "content" in found["result"]
    assert found["resultType"] == "complete"
    assert stage.ran(ident) == 1


def modern_task_refused(stage: Stage) -> None:
    """2026-07-28: a refusal is the task's error."""
    ident, task_id = _task(stage, modern=True)
    stage.decide(ident, approve=False)
    found = _becomes(stage, task_id, "failed", modern=True)
    assert found["error"]["data"]["kind"] == "approval_rejected"
    assert stage.ran(ident) == 0


def modern_task_cancelled(stage: Stage) -> None:
    """2026-07-28: cancelling is acknowledged, also when it comes twice."""
    ident, task_id = _task(stage, modern=True)
    stage.question(ident)
    for _ in range(2):
        answer = stage.about("tasks/cancel", task_id, modern=True)
        assert answer["result"]["resultType"] == "complete"
    wait_for(lambda: not stage.is_asked(ident), what="the withdrawal")
    _becomes(stage, task_id, "cancelled", modern=True)
    assert stage.ran(ident) == 0


def masked_task(stage: Stage) -> None:
    """A rule's ``redact: true`` holds where the result of a task surfaces."""
    secret = "ghp_" + "a1B2" * 10
    ident = next(stage._ids)
    arguments = {"a": f"{mark(ident)} {secret} ", "b": "end"}
    params = {"name": f"{stage.prefix}add", "arguments": arguments, "task": {}}
    stage.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})
    task_id = stage.answer(ident)["result"]["task"]["taskId"]
    stage.decide(ident)
    _becomes(stage, task_id, "completed", modern=False)
    said = str(stage.about("tasks/result", task_id))
    assert "end" in said
    assert secret not in said
    assert secret in stage.log.read_text("utf-8")


# Calls that are made when the stage opens, because what becomes of them takes time.


def send_timed(stage: Stage) -> dict[str, int]:
    """Make the calls whose outcome time decides."""
    return {
        "strict": stage.call("transfer"),
        "lenient": stage.call("write_note"),
        "patient": stage.call("delete_note", token="the-callers-own"),
    }


def timed_out(stage: Stage, timed: dict[str, int]) -> None:
    """Silence ends a call with an error that says that it may be tried again."""
    answer = stage.answer(timed["strict"], OVERDUE_S)
    assert (answer["error"]["code"], kind_of(answer)) == (-32008, "approval_timeout")
    assert "tried again" in answer["error"]["message"]
    assert stage.ran(timed["strict"]) == 0
    assert not stage.is_asked(timed["strict"])


def timed_to_yes(stage: Stage, timed: dict[str, int]) -> None:
    """Where the workflow says so, silence means yes."""
    assert "result" in stage.answer(timed["lenient"], OVERDUE_S)
    assert stage.ran(timed["lenient"]) == 1


def told_progress(stage: Stage, timed: dict[str, int]) -> None:
    """A held call tells progress with the token that its caller gave."""
    assert kind_of(stage.answer(timed["patient"], OVERDUE_S)) == "approval_timeout"
    told = [each["params"] for each in stage.notices if each["method"] == "notifications/progress"]
    assert {each["progressToken"] for each in told} == {"the-callers-own"}
    numbers = [each["progress"] for each in told]
    assert numbers == sorted(set(numbers)), "progress only grows"
    for part in ("waits for a person's approval", "thoughtgate approvals watch"):
        assert part in told[0]["message"]


# The end of a stage.


def caller_gone(stage: Stage) -> None:
    """A caller that is gone runs nothing: its question is taken back, and that is on record."""
    ident = stage.call()
    question = stage.question(ident)
    stage.leave(ident)
    wait_for(lambda: not stage.is_asked(ident), what="the withdrawal")
    refusal(stage.vote(question))
    wait_for(lambda: stage.outcome(ident) == "withdrawn", what="the withdrawal on record")
    assert stage.ran(ident) == 0


def stopped(stage: Stage) -> None:
    """The 33rd held call is refused; a gate that stops takes all its questions back."""
    held = [stage.call() for _ in range(32)]
    for ident in held:
        stage.question(ident)
    late = stage.call()
    assert kind_of(stage.answer(late)) == "service_unavailable"
    questions = [stage.question(ident) for ident in held]
    stage.stop()
    assert not any(stage.is_asked(ident) for ident in held)
    assert "withdrawn" in refusal(stage.vote(questions[0]))
    assert sum(map(stage.ran, [*held, late])) == 0


def _listed(*scenarios: Scenario, **proves: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(
            each,
            id=each.__name__,
            marks=[pytest.mark.requirement(*proves[each.__name__])]
            if each.__name__ in proves
            else [],
        )
        for each in scenarios
    ]


SHARED: Final = _listed(
    approved,
    refused,
    cancelled,
    others_flow,
    remembered,
    judged_again,
    drifted,
    task_approved,
    task_waited_for,
    task_refused,
    task_cancelled,
    modern_task_approved,
    modern_task_refused,
    modern_task_cancelled,
    masked_task,
    approved=("S004-LIVE-1",),
    refused=("S004-LIVE-5",),
    cancelled=("EC-STDIO-031",),
)
