"""The engine of the hub: its own tasks, and nothing sent on that is not on record."""

import resource
from pathlib import Path
from typing import Any

import pytest
from tests.support.frames import call, request
from tests.support.http_agent import HttpAgent
from tests.support.hub import Served, modern, sample, serving
from tests.support.stages import EXTENSION, TOKEN, ServeHttpStage, envelope
from tests.support.waiting import wait_for

prlimit = getattr(resource, "prlimit", None)


def wish(ident: int, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    body = call(ident, tool, arguments)
    body["params"]["task"] = {"ttl": 60_000}
    return body


def status(hub: Served, ident: int, task_id: str) -> str:
    answer = hub.ask(request(ident, "tasks/get", {"taskId": task_id}))
    return str(answer["result"]["status"])


def test_tasks_are_offered_in_each_era_as_that_era_has_them(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        legacy = hub.open()["capabilities"]
        tools = hub.tools()
    (tmp_path / "again").mkdir()
    with serving(tmp_path / "again", {"one": sample()}) as hub:
        later = hub.ask(modern(1, "server/discover"))["result"]["capabilities"]
        entries = hub.ask(modern(2, "tools/list"))["result"]["tools"]

    assert legacy["tasks"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert {tool["execution"]["taskSupport"] for tool in tools} == {"optional"}
    assert "tasks" not in later
    assert later["extensions"] == {EXTENSION: {}}
    assert not any("execution" in tool for tool in entries)


def test_a_call_that_nobody_must_approve_becomes_a_task_all_the_same(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        task = hub.ask(wish(1, "one.echo", {"text": "hello"}))["result"]["task"]
        result = hub.ask(request(2, "tasks/result", {"taskId": task["taskId"]}))
        listed = hub.ask(request(3, "tasks/list"))["result"]["tasks"]

    assert task["status"] == "working"
    assert result["result"]["content"][0]["text"] == "hello"
    assert [(each["taskId"], each["status"]) for each in listed] == [(task["taskId"], "completed")]


def test_a_running_task_is_cancelled_at_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path, {"one": sample("--log", str(log))}) as hub:
        hub.open()
        task = hub.ask(wish(1, "one.slow", {"seconds": 30}))["result"]["task"]
        wait_for(lambda: "slow" in log.read_text("utf-8"), what="the call at the server")
        answer = hub.ask(request(2, "tasks/cancel", {"taskId": task["taskId"]}))
        wait_for(lambda: "notifications/cancelled" in log.read_text("utf-8"))
        after = status(hub, 3, task["taskId"])

    assert answer["result"]["status"] == after == "cancelled"


def test_a_call_that_is_denied_is_no_task(tmp_path: Path) -> None:
    rules = [{"tool": "echo", "action": "deny"}]
    with serving(tmp_path, {"one": sample()}, rules=rules) as hub:
        hub.open()
        answer = hub.ask(wish(1, "one.echo"))

    assert answer["error"]["data"]["kind"] == "governance_denied"


def test_a_wish_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        body = wish(1, "one.echo")
        body["params"]["task"]["ttl"] = "long"
        answer = hub.ask(body)
        unknown = hub.ask(request(2, "tasks/get", {"taskId": "tg_nobody"}))

    assert answer["error"]["code"] == unknown["error"]["code"] == -32602


def test_a_modern_request_about_tasks_must_declare_the_extension(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        answer = hub.ask(modern(1, "tasks/get", {"taskId": "tg_nobody"}))
        gone = hub.ask(modern(2, "tasks/result", {"taskId": "tg_nobody"}))

    assert answer["error"]["code"] == -32021
    assert gone["error"]["code"] == -32601


def test_over_http_a_task_outlives_its_session_and_is_nobody_elses(tmp_path: Path) -> None:
    stage = ServeHttpStage(tmp_path)
    try:
        stage.start()
        ident = stage.call(task={"ttl": 60_000})
        task_id = stage.answer(ident)["result"]["task"]["taskId"]
        stage.agent = HttpAgent(stage.agent.port, TOKEN)
        stage.agent.greet()
        assert stage.about("tasks/get", task_id)["result"]["status"] == "working"
        stage.decide(ident)
        assert "content" in stage.about("tasks/result", task_id)["result"]
        modern_ident = stage.call(modern=True)
        other = stage.answer(modern_ident)["result"]
        stage.decide(modern_ident)
        params = {"taskId": other["taskId"], "_meta": envelope()}
        wait_for(lambda: stage.ask("tasks/get", params)["result"]["status"] == "completed")
        assert (stage.ran(ident), stage.ran(modern_ident)) == (1, 1)
    finally:
        stage.close()


@pytest.mark.skipif(prlimit is None, reason="this system cannot limit another process")
def test_nothing_is_sent_on_while_the_record_cannot_be_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path, {"one": sample("--log", str(log))}) as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "before"})
        assert prlimit is not None
        free = prlimit(hub.pid, resource.RLIMIT_FSIZE)
        # From now on no file of the hub may grow, as on a full disk.
        prlimit(hub.pid, resource.RLIMIT_FSIZE, (1, free[1]))
        refused = hub.ask(call(2, "one.echo", {"text": "unrecorded"}))
        pong = hub.ask(request(3, "ping"))
        prlimit(hub.pid, resource.RLIMIT_FSIZE, free)
        after = hub.text(4, "one.echo", {"text": "after"})
        hub.close_stdin()
        hub.wait()
        run_end = hub.records()[-1]

    assert refused["error"]["data"]["kind"] == "service_unavailable"
    assert refused["error"]["data"]["server"] == "one"
    assert "unrecorded" not in log.read_text()
    assert pong["result"] == {}
    assert after == "after"
    assert run_end["run"]["summary"]["calls_allowed"] == 2
