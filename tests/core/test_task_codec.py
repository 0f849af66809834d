"""A task on the wire, in both revisions; the older one also as the official SDK reads it."""

import json
from typing import Any

import mcp.types
import pytest
from tests.support.approvals import NOW
from tests.support.tasks import a_task

from thoughtgate.core import task_codec as codec
from thoughtgate.core.task import CANCELLED, COMPLETED, EXTENSION, FAILED, RUNNING, advertise

RESULT = {"content": [{"type": "text", "text": "gone"}], "isError": False}
DONE = a_task(phase=COMPLETED, outcome=json.dumps({"result": RESULT}), note="done")
ERROR = {"code": -32007, "message": "refused", "data": {"kind": "approval_rejected"}}
REFUSED = a_task(phase=FAILED, outcome=json.dumps({"error": ERROR}))


def test_a_created_task_has_the_shape_of_2025_11_25() -> None:
    assert codec.created(a_task()) == {
        "result": {
            "task": {
                "taskId": "tg_1",
                "status": "working",
                "createdAt": "2027-01-15T08:00:00.000Z",
                "lastUpdatedAt": "2027-01-15T08:00:00.000Z",
                "ttl": 600_000,
                "pollInterval": 5000,
            }
        }
    }


def test_a_created_task_has_the_shape_of_the_extension() -> None:
    assert codec.created(a_task(modern=True, note="waiting")) == {
        "result": {
            "resultType": "task",
            "taskId": "tg_1",
            "status": "working",
            "statusMessage": "waiting",
            "createdAt": "2027-01-15T08:00:00.000Z",
            "lastUpdatedAt": "2027-01-15T08:00:00.000Z",
            "ttlMs": 600_000,
            "pollIntervalMs": 5000,
        }
    }


def test_the_official_sdk_reads_every_older_shape() -> None:
    for task in (a_task(note="waiting"), DONE, REFUSED, a_task(phase=CANCELLED)):
        mcp.types.CreateTaskResult.model_validate(codec.created(task)["result"])
        mcp.types.GetTaskResult.model_validate(codec.got(task, modern=False)["result"])
        mcp.types.CancelTaskResult.model_validate(codec.cancelled(task, modern=False)["result"])
        mcp.types.ListTasksResult.model_validate(codec.listed([task], "c")["result"])
    advertised = advertise({}, modern=False)["tasks"]
    assert mcp.types.ServerTasksCapability.model_validate(advertised).requests is not None


def test_an_older_caller_gets_the_task_flat_and_without_its_outcome() -> None:
    got = codec.got(DONE, modern=False)["result"]
    assert got["status"] == "completed"
    assert got["statusMessage"] == "done"
    assert "pollInterval" not in got
    assert "result" not in got
    assert "resultType" not in got


def test_a_modern_caller_gets_the_outcome_with_the_task() -> None:
    got = codec.got(DONE, modern=True)["result"]
    assert got["resultType"] == "complete"
    assert got["result"] == RESULT
    assert "pollIntervalMs" not in got
    failed = codec.got(REFUSED, modern=True)["result"]
    assert failed["status"] == "failed"
    assert failed["error"] == ERROR
    assert "result" not in codec.got(a_task(phase=RUNNING), modern=True)["result"]


def test_a_result_that_says_error_is_failed_for_older_callers_only() -> None:
    task = DONE._replace(is_error=True)
    assert codec.got(task, modern=False)["result"]["status"] == "failed"
    assert codec.got(task, modern=True)["result"]["status"] == "completed"


def test_the_result_is_what_the_call_would_have_said_and_names_its_task() -> None:
    body = codec.result_of(DONE)["result"]
    assert body.pop("_meta") == {"io.modelcontextprotocol/related-task": {"taskId": "tg_1"}}
    assert body == RESULT
    assert codec.result_of(REFUSED) == {"error": ERROR}


@pytest.mark.parametrize("meta", [{"x": 1}, "nonsense"])
def test_the_servers_own_meta_stays_beside_the_tasks(meta: Any) -> None:
    task = DONE._replace(outcome=json.dumps({"result": {"_meta": meta}}))
    shown = codec.result_of(task)["result"]["_meta"]
    assert shown["io.modelcontextprotocol/related-task"] == {"taskId": "tg_1"}
    assert shown.get("x") == (1 if meta == {"x": 1} else None)


def test_the_result_of_a_cancelled_task_is_an_error() -> None:
    error = codec.result_of(a_task(phase=CANCELLED))["error"]
    assert error["code"] == -32006
    assert error["data"]["kind"] == "task_cancelled"


def test_a_list_has_a_cursor_only_when_more_follows() -> None:
    assert codec.listed([], "") == {"result": {"tasks": []}}
    assert codec.listed([a_task()], "c")["result"]["nextCursor"] == "c"


def test_own_tasks_come_before_the_servers() -> None:
    theirs = {"result": {"tasks": [{"taskId": "theirs"}], "nextCursor": "n"}}
    merged = codec.merged_list(theirs, [a_task()])["result"]
    assert [task["taskId"] for task in merged["tasks"]] == ["tg_1", "theirs"]
    assert merged["nextCursor"] == "n"


@pytest.mark.parametrize("body", [{"error": {"code": -32601}}, {"result": {}}, {"result": []}])
def test_a_server_without_tasks_leaves_the_gates_own(body: dict[str, Any]) -> None:
    merged = codec.merged_list(body, [a_task()])["result"]
    assert [task["taskId"] for task in merged["tasks"]] == ["tg_1"]


def test_cancelling_answers_with_the_task_or_with_nothing() -> None:
    cancelled = a_task(phase=CANCELLED)
    assert codec.cancelled(cancelled, modern=False)["result"]["status"] == "cancelled"
    assert codec.cancelled(cancelled, modern=True) == {"result": {"resultType": "complete"}}


def test_a_refusal_names_the_tool_and_the_call() -> None:
    error = codec.refused("rate_limited", modern=True, task=a_task())["error"]
    assert error["code"] == -31009
    assert error["data"]["tool"] == "delete_file"
    assert error["data"]["correlation_id"] == "run.1"
    assert codec.refused("task_not_found", modern=False)["error"]["code"] == -32602


def test_a_request_without_the_extension_is_told_which_one_it_lacks() -> None:
    error = codec.missing_extension()["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


def test_what_is_forwarded_is_what_was_asked() -> None:
    assert codec.forwarded(a_task(), "g1") == {
        "jsonrpc": "2.0",
        "id": "g1",
        "method": "tools/call",
        "params": {"name": "delete_file", "arguments": {"path": "/tmp/x"}},
    }


def test_times_have_milliseconds() -> None:
    shown = codec.got(a_task(updated_at=NOW + 0.25), modern=False)["result"]
    assert shown["lastUpdatedAt"] == "2027-01-15T08:00:00.250Z"
