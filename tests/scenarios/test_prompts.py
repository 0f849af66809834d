"""Asking in the agent itself where many agents come to one gate: over HTTP, and before many servers."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest
from tests.support.http_agent import HttpAgent
from tests.support.stages import (
    VERSION,
    HttpStage,
    HttpToHttpStage,
    ServeHttpStage,
    ServeStage,
    Stage,
    StdioStage,
    kind_of,
    mark,
)
from tests.support.waiting import wait_for

from thoughtgate.channels.agent_prompt import identity

RULES: Final = """
schema: 1
default: forward
rules:
  - {tool: add, action: approve}
  - {tool: fail, action: approve, approval: silent}
approval:
  default: {channel: console, allow_elicitation: true}
  silent: {channel: console}
"""
APPROVE: Final = {"action": "accept", "content": {"decision": "approve", "reason": "go"}}
DENY: Final = {"action": "accept", "content": {"decision": "deny"}}
DECLINE: Final = {"action": "decline"}
DISMISS: Final = {"action": "cancel"}
FORMS: Final[Mapping[str, Any]] = {"elicitation": {}}
_META: Final = "io.modelcontextprotocol/"
METHOD: Final = "elicitation/create"


class ProxyStage(HttpStage):
    """``proxy`` before a stdio server, and an agent that shows forms."""

    capabilities = FORMS


class TwiceHttpStage(HttpToHttpStage):
    """``proxy`` before an HTTP server."""

    capabilities = FORMS


class HubHttpStage(ServeHttpStage):
    """``serve`` over HTTP."""

    capabilities = FORMS


class HubStage(ServeStage):
    """``serve`` on stdio."""

    capabilities = FORMS


STAGES: Final[dict[str, Callable[..., Stage]]] = {
    "proxy-http-stdio": ProxyStage,
    "proxy-http-http": TwiceHttpStage,
    "serve-http": HubHttpStage,
    "serve-stdio": HubStage,
}


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stage]]:
    with contextlib.ExitStack() as stack:
        opened: dict[str, Stage] = {}
        for name, make in STAGES.items():
            stage = make(tmp_path_factory.mktemp("prompts") / name, RULES)
            stack.callback(stage.close)
            stage.start()
            opened[name] = stage
        yield opened


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, stages: dict[str, Stage]) -> Stage:
    return stages[request.param]


@pytest.fixture(params=[name for name in STAGES if "http" in name])
def http(request: pytest.FixtureRequest, stages: dict[str, Stage]) -> HttpStage:
    found = stages[request.param]
    assert isinstance(found, HttpStage)
    return found


def prompt_about(stage: Stage, ident: int) -> dict[str, Any]:
    """Return the prompt about a call, once it is here."""

    def found() -> dict[str, Any] | None:
        asked = (each for each in stage.notices if each["method"] == METHOD)
        return next((each for each in asked if mark(ident) in each["params"]["message"]), None)

    while isinstance(stage, StdioStage) and found() is None:
        stage.notices.append(stage.gate.receive())
    return wait_for(found, what=f"the prompt about call {ident}")


def respond(stage: Stage, ident: str, result: Any) -> None:
    """Answer a prompt."""
    if isinstance(stage, HttpStage):
        assert stage.agent.respond(ident, result) == 202
    else:
        stage.send({"jsonrpc": "2.0", "id": ident, "result": result})


def decided_by(stage: Stage, ident: int) -> str:
    calls = {
        each["call"]["call_id"]
        for each in stage.records("tool_call_start")
        if mark(ident) in each["call"]["preview"]["args_preview"]
    }
    decided = [e for e in stage.records("approval_decided") if e["call"]["call_id"] in calls]
    return str(decided[-1]["approval"]["decided_by"])


def was_told(stage: Stage, text: str) -> bool:
    """Tell whether the server heard of something since its handshake."""
    lines = stage.log.read_text("utf-8").splitlines()
    return any(text in line for line in lines if '"initialize"' not in line)


# Up to 2025-11-25: a request to the agent while the call is held.


def test_the_person_in_front_of_the_agent_approves(stage: Stage) -> None:
    ident = stage.call()
    prompt = prompt_about(stage, ident)
    assert stage.ran(ident) == 0
    respond(stage, prompt["id"], APPROVE)
    assert "result" in stage.answer(ident)
    assert stage.ran(ident) == 1
    assert not was_told(stage, prompt["id"])
    by = decided_by(stage, ident)
    assert by.startswith("elicitation:")
    assert (by == identity()) == isinstance(stage, StdioStage), "a stranger has no login here"


@pytest.mark.parametrize("answer", [DENY, DECLINE])
def test_the_person_in_front_of_the_agent_refuses(stage: Stage, answer: dict[str, Any]) -> None:
    ident = stage.call()
    respond(stage, prompt_about(stage, ident)["id"], answer)
    assert kind_of(stage.answer(ident)) == "approval_rejected"
    assert stage.ran(ident) == 0


@pytest.mark.parametrize(
    "answer", [DISMISS, {"action": "accept"}, {"action": "accept", "content": {"decision": 1}}, []]
)
def test_what_decides_nothing_leaves_the_call_to_others(stage: Stage, answer: Any) -> None:
    ident = stage.call()
    respond(stage, prompt_about(stage, ident)["id"], answer)
    stage.ask("ping")
    assert stage.is_asked(ident)
    assert stage.ran(ident) == 0
    stage.decide(ident)
    assert "result" in stage.answer(ident)
    assert decided_by(stage, ident) == "terminal:ann"


def test_a_decision_elsewhere_takes_the_prompt_back_and_late_answers_change_nothing(
    stage: Stage,
) -> None:
    ident = stage.call()
    prompt = prompt_about(stage, ident)
    stage.decide(ident, approve=False)
    assert kind_of(stage.answer(ident)) == "approval_rejected"
    cancelled = [e["params"] for e in stage.notices if e["method"] == "notifications/cancelled"]
    assert prompt["id"] in [each["requestId"] for each in cancelled]
    late = {"jsonrpc": "2.0", "id": prompt["id"], "result": APPROVE}
    stage.send(late)
    stage.ask("ping")
    assert stage.ran(ident) == 0


def test_where_the_workflow_does_not_allow_it_the_agent_is_not_asked(stage: Stage) -> None:
    ident = stage.call("fail")
    stage.question(ident)
    stage.decide(ident, approve=False)
    assert kind_of(stage.answer(ident)) == "approval_rejected"
    assert not [e for e in stage.notices if mark(ident) in str(e)]


def test_a_caller_that_takes_a_task_gets_one_and_no_prompt(stage: Stage) -> None:
    ident = stage.call(task={})
    assert "task" in stage.answer(ident)["result"]
    stage.decide(ident, approve=False)
    stage.ask("ping")
    assert not [e for e in stage.notices if mark(ident) in str(e)]


def test_an_agent_that_reads_no_stream_is_not_asked(http: HttpStage) -> None:
    http.agent.accept = "application/json"
    try:
        ident = http.call()
        http.decide(ident)
        assert "result" in http.answer(ident)
    finally:
        http.agent.accept = "application/json, text/event-stream"
    assert not [e for e in http.notices if mark(ident) in str(e)]


def test_an_agent_that_shows_no_forms_is_not_asked(http: HttpStage) -> None:
    agent = HttpAgent(http.agent.port, http.token)
    agent.greet({"elicitation": {"url": {}}})
    mine, http.agent = http.agent, agent
    try:
        ident = http.call()
        http.decide(ident)
        assert "result" in http.answer(ident)
    finally:
        http.agent = mine
    assert agent.notices == []


def test_another_session_cannot_answer(http: HttpStage) -> None:
    ident = http.call()
    prompt = prompt_about(http, ident)
    other = HttpAgent(http.agent.port, http.token)
    other.greet(FORMS)
    other.respond(prompt["id"], APPROVE)
    HttpAgent(http.agent.port, http.token).respond(prompt["id"], APPROVE)
    HttpAgent(http.agent.port).respond(prompt["id"], APPROVE)
    http.ask("ping")
    assert http.is_asked(ident)
    assert http.ran(ident) == 0
    respond(http, prompt["id"], DECLINE)
    assert kind_of(http.answer(ident)) == "approval_rejected"


# From 2026-07-28 on: the call is answered with the prompt, and made again with the answer.


def modern(stage: Stage, marked: int, tool: str = "add", *, forms: bool = True, **more: Any) -> int:
    """Call as a modern agent, without waiting; the mark says which call it is."""
    ident = next(stage._ids)
    arguments = {"a": marked, "b": 1, "mark": mark(marked)}
    params = {"name": stage.prefix + tool, "arguments": arguments, **more}
    params["_meta"] = {
        f"{_META}protocolVersion": VERSION,
        f"{_META}clientInfo": {"name": "test", "version": "1"},
        f"{_META}clientCapabilities": FORMS if forms else {},
    }
    stage.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})
    return ident


def prompted(stage: Stage) -> tuple[int, str]:
    """Make a call that is answered with the prompt; return its mark and state."""
    marked = next(stage._ids)
    result = stage.answer(modern(stage, marked))["result"]
    assert result["resultType"] == "input_required"
    question = result["inputRequests"]["thoughtgate"]
    assert question["method"] == METHOD
    assert mark(marked) in question["params"]["message"]
    wait_for(lambda: not stage.is_asked(marked), what="the withdrawal")
    assert stage.ran(marked) == 0
    return marked, result["requestState"]


def again(stage: Stage, marked: int, state: Any, answer: Any, **more: Any) -> dict[str, Any]:
    """Make a call again, with a state and what the person said."""
    said = {"requestState": state, "inputResponses": {"thoughtgate": answer}}
    return stage.answer(modern(stage, marked, **{**said, **more}))


def test_a_modern_call_made_again_with_a_yes_runs_once(stage: Stage) -> None:
    marked, state = prompted(stage)
    assert "content" in again(stage, marked, state, APPROVE)["result"]
    assert stage.ran(marked) == 1
    assert decided_by(stage, marked).startswith("elicitation:")
    assert not was_told(stage, "requestState")
    assert not was_told(stage, "inputResponses")
    replayed = again(stage, marked, state, APPROVE)
    assert replayed["result"]["resultType"] == "input_required"
    assert stage.ran(marked) == 1


@pytest.mark.parametrize("answer", [DENY, DECLINE])
def test_a_modern_call_made_again_with_a_no_does_not_run(stage: Stage, answer: Any) -> None:
    marked, state = prompted(stage)
    assert kind_of(again(stage, marked, state, answer)) == "approval_rejected"
    assert stage.ran(marked) == 0
    assert again(stage, marked, state, APPROVE)["result"]["resultType"] == "input_required"
    assert stage.ran(marked) == 0


def test_a_tampered_state_stands_for_nothing(stage: Stage) -> None:
    marked, state = prompted(stage)
    middle = len(state) // 2
    swapped = "A" if state[middle] != "A" else "B"
    for other in (state[:-1], state + "A", state[:middle] + swapped + state[middle + 1 :], "tg1."):
        answer = again(stage, marked, other, APPROVE)
        assert answer["result"]["resultType"] == "input_required"
    assert stage.ran(marked) == 0
    assert "content" in again(stage, marked, state, APPROVE)["result"], "it was not used up"


def test_a_state_stands_for_no_other_call(stage: Stage) -> None:
    marked, state = prompted(stage)
    other = next(stage._ids)
    assert again(stage, other, state, APPROVE)["result"]["resultType"] == "input_required"
    assert stage.ran(other) == 0
    silent = modern(
        stage, marked, "fail", requestState=state, inputResponses={"thoughtgate": APPROVE}
    )
    stage.decide(marked, approve=False)
    assert kind_of(stage.answer(silent)) == "approval_rejected"
    assert stage.ran(marked) == 0


@pytest.mark.parametrize("answer", [DISMISS, None, {"action": "accept"}])
def test_a_modern_prompt_that_decides_nothing_leaves_the_call_to_others(
    stage: Stage, answer: Any
) -> None:
    marked, state = prompted(stage)
    said: dict[str, Any] = {"requestState": state, "inputResponses": {"thoughtgate": answer}}
    held = modern(stage, marked, **said)
    stage.decide(marked)
    assert "content" in stage.answer(held)["result"]
    assert decided_by(stage, marked) == "terminal:ann"


def test_a_modern_agent_that_shows_no_forms_waits_for_others(stage: Stage) -> None:
    marked = next(stage._ids)
    held = modern(stage, marked, forms=False)
    stage.decide(marked, approve=False)
    assert kind_of(stage.answer(held)) == "approval_rejected"


class AddressedProxy(HttpStage):
    """Agents are known by where they call from: two of them are two principals."""

    auth = '{type: ip_allowlist, allow: ["127.0.0.0/8"]}'


class AddressedServe(ServeHttpStage):
    """As above, before many servers."""

    auth = AddressedProxy.auth


@pytest.mark.parametrize("make", [AddressedProxy, AddressedServe])
def test_a_state_is_its_principals_own_and_outlives_the_gate(
    make: Callable[..., HttpStage], tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage = make(tmp_path_factory.mktemp("addressed"), RULES)
    with contextlib.closing(stage):
        stage.start()
        marked, state = prompted(stage)
        mine, stage.agent = stage.agent, HttpAgent(stage.agent.port, source="127.0.0.2")
        assert again(stage, marked, state, APPROVE)["result"]["resultType"] == "input_required"
        stage.agent = mine
        assert stage.ran(marked) == 0
        stage.stop()
        stage.start()
        assert "content" in again(stage, marked, state, APPROVE)["result"]
        assert stage.ran(marked) == 1


class WorkersStage(HttpToHttpStage):
    """Two processes on one port."""

    def command(self) -> list[str]:
        """``proxy --workers``."""
        return [*super().command(), "--workers", "2"]


def test_a_state_stands_for_its_call_once_over_all_workers(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    stage = WorkersStage(tmp_path_factory.mktemp("workers"), RULES)
    with contextlib.closing(stage):
        stage.start()
        for _ in range(6):
            marked, state = prompted(stage)
            assert "content" in again(stage, marked, state, APPROVE)["result"]
            for _ in range(3):
                replayed = again(stage, marked, state, APPROVE)
                assert replayed["result"]["resultType"] == "input_required"
            assert stage.ran(marked) == 1
