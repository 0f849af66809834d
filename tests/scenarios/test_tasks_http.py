"""Tasks over HTTP belong to who made them; their number is bounded for each caller."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_agent import HttpAgent
from tests.support.stages import RULES, HttpStage, ServeHttpStage, kind_of
from tests.support.waiting import wait_for

LIMITED = RULES + "tasks: {per_principal: 2}\n"


class AddressedProxy(HttpStage):
    """Agents are known by where they call from: two of them are two principals."""

    auth = '{type: ip_allowlist, allow: ["127.0.0.0/8"]}'


class AddressedServe(ServeHttpStage):
    """As above, before many servers."""

    auth = AddressedProxy.auth


@pytest.fixture(params=[AddressedProxy, AddressedServe], ids=["proxy", "serve"], scope="module")
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpStage]:
    make: Callable[..., HttpStage] = request.param
    made = make(tmp_path_factory.mktemp("stage"), LIMITED)
    made.start()
    yield made
    made.close()


def stranger(stage: HttpStage) -> HttpAgent:
    agent = HttpAgent(stage.agent.port, source="127.0.0.2")
    agent.greet()
    return agent


def ask(agent: HttpAgent, ident: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return agent.ask({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})


def make_task(stage: HttpStage) -> tuple[int, str]:
    ident = stage.call(task={})
    return ident, stage.answer(ident)["result"]["task"]["taskId"]


def finish(stage: HttpStage, ident: int, task_id: str) -> None:
    stage.decide(ident, approve=False)
    wait_for(lambda: stage.about("tasks/get", task_id)["result"]["status"] == "failed")


def test_a_foreign_task_is_as_unknown_as_one_that_never_was(stage: HttpStage) -> None:
    ident, task_id = make_task(stage)
    other = stranger(stage)
    for number, method in enumerate(("tasks/get", "tasks/result", "tasks/cancel"), 1):
        foreign = ask(other, number * 2, method, {"taskId": task_id})
        unknown = ask(other, number * 2 + 1, method, {"taskId": task_id[:-1] + "_"})
        # Each refusal has its own id; nothing else may tell them apart.
        assert foreign["error"]["data"].pop("correlation_id")
        assert unknown["error"]["data"].pop("correlation_id")
        assert foreign["error"] == unknown["error"]
        assert foreign["error"]["code"] == -32602
    assert ask(other, 90, "tasks/list", {})["result"]["tasks"] == []
    listed = [task["taskId"] for task in stage.ask("tasks/list")["result"]["tasks"]]
    assert task_id in listed
    assert stage.about("tasks/get", task_id)["result"]["status"] == "working"
    finish(stage, ident, task_id)


def test_one_caller_cannot_take_all_the_tasks(stage: HttpStage) -> None:
    made = [make_task(stage) for _ in range(2)]
    third = stage.call(task={})
    assert kind_of(stage.answer(third)) == "rate_limited"
    assert not stage.is_asked(third)
    other = stranger(stage)
    params = {"name": f"{stage.prefix}add", "arguments": {"a": 1, "b": 2}, "task": {}}
    task = ask(other, 1, "tools/call", params)["result"]["task"]
    ask(other, 2, "tasks/cancel", {"taskId": task["taskId"]})
    for ident, task_id in made:
        finish(stage, ident, task_id)
    assert stage.ran(third) == 0


def test_tasks_are_offered_where_calls_may_be_held(stage: HttpStage) -> None:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    agent = HttpAgent(stage.agent.port)
    said = ask(agent, 1, "initialize", params)["result"]["capabilities"]
    assert said["tasks"]["requests"] == {"tools": {"call": {}}}


def test_unauthenticated_tasks_end_with_the_gate(tmp_path: Path) -> None:
    class Open(HttpStage):
        def write_rules(self, rules: str) -> None:
            self.config.write_text(rules + self.server(), "utf-8")

    stage = Open(tmp_path)
    try:
        stage.start()
        ident, task_id = make_task(stage)
        stage.question(ident)
        stage.stop()
        assert not stage.is_asked(ident)
        stage.start()
        assert stage.about("tasks/get", task_id)["error"]["code"] == -32602
        assert stage.ran(ident) == 0
    finally:
        stage.close()
