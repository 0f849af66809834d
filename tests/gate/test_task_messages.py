"""Tasks on the way between a shim and its service."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.json_values import json_objects, json_values

from thoughtgate.core.commands import AskPeople, AskTask, EndTask
from thoughtgate.core.events import (
    AgentSent,
    CallJudged,
    Event,
    TaskAnswered,
    TaskChanged,
    TaskMade,
    Ticked,
)
from thoughtgate.errors import PeerError
from thoughtgate.gate.task_messages import as_command, as_told, task_command, told_event
from thoughtgate.policy.call import DENY, FORWARD, Verdict

COMMANDS = (
    AskPeople(1, "run.1", "ops", 5.0, {"task": {}}, modern=True),
    AskTask("a", "tasks/get", {"taskId": "tg_1"}, modern=False, at=5.0),
    AskTask(2, "tasks/list", {}, modern=False, at=5.0, body={"result": {"tasks": []}}),
    EndTask("run.1", {"result": {}}, 5.0),
)

EVENTS = (
    TaskMade(1, {"result": {"task": {}}}, 5.0),
    TaskAnswered("a", {"result": {}}, 5.0),
    TaskAnswered("a", None, 5.0),
    TaskChanged({"taskId": "tg_1", "status": "completed"}, 5.0),
    CallJudged("run.1", Verdict(DENY, "approval", "task_cancelled"), "run.1", 5.0),
    AgentSent(b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', 5.0),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_arrives_as_it_was_sent(command: AskPeople | AskTask | EndTask) -> None:
    sent = json.loads(json.dumps(as_command(command)))

    assert task_command(sent, 5.0) == command


def test_the_time_is_the_services_own() -> None:
    found = task_command(as_command(COMMANDS[0]), 99.0)

    assert found is not None
    assert found.at == 99.0


def test_a_question_for_news_is_no_command() -> None:
    assert task_command({}, 5.0) is None


@pytest.mark.parametrize(
    "body",
    [
        {"command": "ToServer", "fields": {}},
        {"command": "AskTask", "fields": []},
        {"command": "AskTask", "fields": {"key": 1}},
        {"command": "AskTask", "fields": {"made": "up"}},
        {"command": "EndTask"},
    ],
)
def test_a_command_that_makes_no_sense_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(PeerError):
        task_command(body, 5.0)


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_arrives_as_it_was_told(event: Event) -> None:
    assert told_event(json.loads(json.dumps(as_told(event))), 5.0) == event


def test_what_is_not_about_tasks_is_not_told() -> None:
    with pytest.raises(TypeError):
        as_told(Ticked(1.0))


def test_an_unknown_kind_of_refusal_is_a_cancelled_task() -> None:
    event = told_event({"event": "refused", "call_id": "run.1", "kind": "made_up"}, 5.0)

    assert isinstance(event, CallJudged)
    assert event.verdict.kind == "task_cancelled"
    assert event.verdict.action == DENY


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        json_values(),
        json_objects(),
        st.fixed_dictionaries(
            {
                "event": st.sampled_from(["made", "answered", "refused", "cancel", "forward"]),
                "key": json_values(),
                "body": json_values(),
                "call_id": json_values(),
                "frame": json_values(),
                "kind": json_values(),
            }
        ),
    )
)
def test_whatever_a_service_says_nothing_is_forwarded(told: Any) -> None:
    """A shim never takes a verdict in favour of a call from this line."""
    event = told_event(told, 5.0)

    assert not isinstance(event, CallJudged) or event.verdict.action == DENY


@pytest.mark.parametrize("redact", [True, False])
def test_a_granted_call_arrives_with_its_verdict(*, redact: bool) -> None:
    verdict = Verdict(FORWARD, "", redact=redact, trace="00-aa")
    told = as_told(CallJudged(7, verdict, "run.1", 1.0))
    assert told_event(told, 2.0) == CallJudged("run.1", verdict, "run.1", 2.0)


def test_a_granted_call_that_says_nothing_of_masking_is_masked() -> None:
    event = told_event({"event": "granted", "call_id": "run.1", "trace": 5}, 2.0)
    assert event == CallJudged("run.1", Verdict(FORWARD, "", redact=True), "run.1", 2.0)
