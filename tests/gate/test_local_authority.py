"""Judging in this process, for one session or for many."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.drivers import Listener, Workbench, open_driver
from tests.support.frames import call, line, request
from tests.support.shim_bench import Ledger, NobodyThere, SlowDesk

from thoughtgate.core.commands import (
    AskPeople,
    InspectAnswer,
    JudgeCall,
    PersonAnswered,
    ScreenList,
    Withdraw,
)
from thoughtgate.core.elicitation import HoldNotice
from thoughtgate.core.envelope import Run
from thoughtgate.core.events import (
    AgentSent,
    AnswerInspected,
    CallJudged,
    ListScreened,
    PersonAsked,
)
from thoughtgate.core.judge import Judge
from thoughtgate.core.record_events import message_seen
from thoughtgate.core.session_replies import CALLER_GONE
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import HELD_S, IDLE_S, LOOK_S, LocalAuthority
from thoughtgate.gate.session_driver import HTTP, SessionDriver
from thoughtgate.policy.call import APPROVE, FORWARD, Verdict
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import BLOCK, Exposure, Visibility
from thoughtgate.wire.methods import Named


def _authority(default: str, desk: SlowDesk | None = None) -> tuple[LocalAuthority, Ledger]:
    ledger = Ledger()
    policy = Policy(default=default, visibility=Visibility({"*": Exposure.of(BLOCK, ["hidden"])}))
    judge = Judge(policy, "run")
    judge.tools.learn("srv", ({"name": "x"},))
    governor = Governor(judge, ledger, Run("run"), approvals=desk or NobodyThere())
    return LocalAuthority(governor), ledger


def _judge(authority: LocalAuthority, driver: SessionDriver, key: int = 1) -> CallJudged:
    named = (Named("tool", "x", {}),)
    command = JudgeCall(key, "tools/call", named, {}, 10, modern=False, at=1.0)
    event = authority.judge(driver, command)
    assert event is not None
    return event


class _Agent(Listener):
    """An agent that is alone on its connection, with the driver that serves it."""

    def __init__(self, authority: LocalAuthority, **more: Any) -> None:
        super().__init__()
        self.workbench = Workbench(authority)
        self.driver = self.workbench.driver(**more)
        self.driver.agent = self

    def says(self, body: dict[str, Any], at: float = 1.0) -> None:
        """Send a frame through the gate."""
        self.driver.feed(AgentSent(line(body), at), self)
        self.workbench.outbox.flush()

    @property
    def sent_on(self) -> list[Any]:
        """The ids of the requests that went to the server."""
        self.workbench.outbox.flush()
        return [frame.key for frame in self.forwarded]


def test_a_call_is_judged_at_once_and_recorded_with_its_principal() -> None:
    authority, ledger = _authority(FORWARD)
    judged = _judge(authority, open_driver(authority))

    assert (judged.key, judged.verdict.action, judged.call_id) == (1, FORWARD, "run.1")
    assert authority.flush()
    start = ledger.entries[0][1].body["call"]
    assert (start["principal"], start["transport"]) == ("me", "mcp_stdio")


def test_the_call_of_a_resumed_task_is_held_although_the_rules_forward_it() -> None:
    authority, _ = _authority(FORWARD)
    driver = open_driver(authority)
    driver.resumes = "task-1"

    assert _judge(authority, driver).verdict.action == APPROVE


def test_sessions_of_one_gate_are_judged_each_in_its_own_name() -> None:
    authority, ledger = _authority(FORWARD)
    workbench = Workbench(authority)
    _judge(authority, workbench.driver(principal="ann"))
    _judge(authority, workbench.driver(principal="bob", transport=HTTP))

    assert authority.flush()
    started = [one.body["call"] for one in ledger.of("recorded") if one.type == "tool_call_start"]
    assert [(one["principal"], one["transport"]) for one in started] == [
        ("ann", "mcp_stdio"),
        ("bob", "mcp_http"),
    ]


def test_a_question_carries_what_is_known_of_the_caller() -> None:
    authority, _ = _authority(FORWARD)
    driver = open_driver(authority)
    driver.trace, driver.claims = "00-aa-bb-01", {"team": "ops"}
    command = JudgeCall(1, "tools/call", (Named("tool", "x", {}),), {"a": 1}, 10, False, 1.0)
    question = authority.call_request(driver, command)

    assert (question.server, question.session, question.principal) == ("srv", "1", "me")
    assert (question.trace, question.claims, question.params) == (
        "00-aa-bb-01",
        {"team": "ops"},
        {"a": 1},
    )


def test_a_list_is_screened_at_once() -> None:
    authority, _ = _authority(FORWARD)
    command = ScreenList(3, "tools/list", ({"name": "hidden"}, {"name": "x"}), 1.0)

    screened = authority.screen(open_driver(authority), command)
    assert screened == ListScreened(3, frozenset({"hidden"}), 1.0)


def test_an_answer_is_masked_at_once() -> None:
    authority, _ = _authority(FORWARD)
    rules = RuleSet([Rule("r", FORWARD, redact=True)])
    governor = authority.governor
    governor.judge.replace_policy(replace(governor.policy, rules=rules))
    secret = "ghp_" + "a1B2" * 9
    body = {"jsonrpc": "2.0", "id": 3, "result": {"text": secret}}
    masked = authority.inspect(open_driver(authority), InspectAnswer(3, "", body, 1.0))

    assert isinstance(masked, AnswerInspected)
    assert masked.body is not None
    assert (masked.key, masked.at, masked.body["id"]) == (3, 1.0, 3)
    assert secret not in json.dumps(masked.body)


def test_a_record_that_cannot_be_written_is_told() -> None:
    authority, ledger = _authority(FORWARD)
    authority.note(message_seen(1.0, "srv", "1", "agent_to_server", "request", "ping", 5))
    ledger.broken = True

    assert not authority.flush()
    assert authority.flush()


def test_without_anybody_to_ask_a_held_call_is_refused_at_once() -> None:
    authority, _ = _authority(APPROVE)
    driver = open_driver(authority)
    judged = _judge(authority, driver)
    (event,) = authority.ask(driver, AskPeople(1, judged.call_id, "default", 1.0))

    assert isinstance(event, CallJudged)
    assert event.verdict.kind == "approval_timeout"
    assert authority.interval_s == IDLE_S


def test_a_persons_answer_comes_with_a_tick_and_only_once() -> None:
    desk = SlowDesk()
    authority, _ = _authority(APPROVE, desk)
    agent = _Agent(authority)
    agent.says(call(7, "x"))
    assert agent.happened == [("held", 7)]
    assert authority.interval_s == HELD_S
    assert authority.tick(2.0) == []
    assert agent.sent_on == []
    desk.decide(0, approved=True)
    assert authority.tick(3.0) == []

    assert agent.sent_on == [7]
    assert authority.interval_s == IDLE_S
    desk.decide(0, approved=True)
    assert authority.tick(4.0) == []
    assert agent.sent_on == [7]


def test_however_often_the_loop_turns_decisions_are_looked_for_at_a_pace() -> None:
    desk = SlowDesk()
    authority, _ = _authority(APPROVE, desk)
    agent = _Agent(authority)
    agent.says(call(7, "x"))
    authority.tick(2.0)
    desk.decide(0, approved=True)
    authority.tick(2.0 + LOOK_S / 2)
    assert agent.sent_on == []
    authority.tick(2.0 + 2 * LOOK_S)
    assert agent.sent_on == [7]


def test_a_clock_that_was_set_back_does_not_stop_the_looking() -> None:
    desk = SlowDesk()
    authority, _ = _authority(APPROVE, desk)
    agent = _Agent(authority)
    agent.says(call(7, "x"), 100.0)
    authority.tick(101.0)
    desk.decide(0, approved=True)
    authority.tick(50.0)
    assert agent.sent_on == [7]


def test_a_withdrawn_call_is_not_judged_any_more() -> None:
    desk = SlowDesk()
    authority, _ = _authority(APPROVE, desk)
    agent = _Agent(authority)
    agent.says(call(1, "x"))
    authority.withdraw(agent.driver, Withdraw(1, desk.asked[0], "gone"), 2.0)
    desk.decide(0, approved=True)

    assert authority.tick(3.0) == []
    assert (agent.sent_on, len(authority.held), authority.interval_s) == ([], 0, IDLE_S)


def test_calls_that_are_not_made_because_their_caller_left_are_counted() -> None:
    authority, _ = _authority(APPROVE, SlowDesk())
    driver = open_driver(authority)
    for reason in ("the caller cancelled", CALLER_GONE):
        authority.withdraw(driver, Withdraw(1, "run.1", reason), 2.0)

    assert authority.held.prevented == 1


class _Prompter(SlowDesk):
    """Lets the agent's own prompt ask."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[PersonAnswered] = []

    def notice(self, call_id: str) -> HoldNotice:
        """Ask about every call."""
        return HoldNotice(prompt=f"May {call_id} run?")

    def answer(self, command: PersonAnswered) -> None:
        """Keep what the person said."""
        self.answers.append(command)


@pytest.mark.parametrize("can_be_asked", [True, False])
def test_only_a_caller_that_can_be_asked_is_prompted(can_be_asked: bool) -> None:
    authority, _ = _authority(APPROVE, _Prompter())
    driver = open_driver(authority)
    driver.agent = Listener(can_be_asked=can_be_asked)
    judged = _judge(authority, driver)
    events = authority.ask(driver, AskPeople(1, judged.call_id, "default", 1.0))

    assert [one.text for one in events if isinstance(one, PersonAsked)] == (
        ["May run.1 run?"] if can_be_asked else []
    )
    assert len(authority.held) == 1


@pytest.mark.parametrize(("transport", "person"), [(HTTP, "ann"), ("mcp_stdio", "")])
def test_a_prompt_is_answered_by_the_principal_or_by_the_login_of_this_process(
    transport: str, person: str
) -> None:
    desk = _Prompter()
    authority, _ = _authority(APPROVE, desk)
    driver = Workbench(authority).driver(principal="ann", transport=transport)
    authority.person_answered(driver, PersonAnswered("run.1", approve=True, reason="", at=1.0))

    assert [(one.call_id, one.by) for one in desk.answers] == [("run.1", person)]


def _asks_for_task(ident: int) -> dict[str, Any]:
    body = call(ident, "x")
    body["params"]["task"] = {"ttl": 60_000}
    return body


def _task_id(agent: _Agent) -> str:
    made = json.loads(agent.taken[-1].data)
    task_id: str = made["result"]["task"]["taskId"]
    return task_id


def test_a_task_is_made_and_answered_for_in_its_own_session() -> None:
    desk = SlowDesk()
    authority, _ = _authority(APPROVE, desk)
    ann, bob = _Agent(authority), _Agent(authority, principal="bob")
    ann.says(_asks_for_task(1))
    task_id = _task_id(ann)
    ann.says(request(2, "tasks/get", {"taskId": task_id}))
    bob.says(request(2, "tasks/get", {"taskId": task_id}))

    assert json.loads(ann.taken[-1].data)["result"]["taskId"] == task_id
    assert json.loads(bob.taken[-1].data)["error"]["data"]["kind"] == "task_not_found"
    assert ann.driver.name != bob.driver.name


def test_tasks_are_offered_if_people_may_be_asked() -> None:
    for default, offered in ((FORWARD, False), (APPROVE, True)):
        authority, _ = _authority(default)
        screened = authority.screen(open_driver(authority), ScreenList(3, "initialize", (), 1.0))
        assert screened == ListScreened(3, frozenset(), 1.0, offered)


@pytest.mark.parametrize(
    ("support", "sent"),
    [("forbidden", ["tg-run.1"]), ("optional", [1]), ("required", [1])],
)
def test_the_gate_makes_the_task_that_a_server_cannot_make(support: str, sent: list[Any]) -> None:
    authority, _ = _authority(FORWARD)
    rule = Rule("ask", APPROVE, Selector(names=compile_globs(["other"])))
    authority.governor.judge.policy = replace(authority.governor.policy, rules=RuleSet([rule]))
    entry = {"name": "x", "execution": {"taskSupport": support}}
    authority.governor.judge.tools.learn("srv", (entry,))
    agent = _Agent(authority)
    agent.says(_asks_for_task(1))

    assert agent.sent_on == sent
    (frame,) = agent.forwarded
    assert ("task" in json.loads(frame.data)["params"]) == (sent == [1])
    if sent != [1]:
        assert _task_id(agent)


def test_without_approvals_the_task_is_left_to_the_server() -> None:
    authority, _ = _authority(FORWARD)
    agent = _Agent(authority)
    agent.says(_asks_for_task(1))

    assert agent.sent_on == [1]


def test_a_cancelled_task_is_told_to_the_session_that_runs_it() -> None:
    desk = SlowDesk()
    authority, _ = _authority(APPROVE, desk)
    agent = _Agent(authority)
    agent.says(_asks_for_task(1))
    task_id = _task_id(agent)
    desk.decide(0, approved=True)
    authority.tick(2.0)
    assert agent.sent_on == ["tg-run.1"]
    agent.says(request(2, "tasks/cancel", {"taskId": task_id}), 3.0)

    assert [json.loads(one.data).get("method") for one in agent.forwarded] == [
        "tools/call",
        "notifications/cancelled",
    ]
    assert json.loads(agent.forwarded[-1].data)["params"]["requestId"] == "tg-run.1"


def test_a_session_that_is_gone_is_told_nothing() -> None:
    authority, _ = _authority(APPROVE, SlowDesk())
    agent = _Agent(authority)
    name = authority.name_of(agent.driver)
    assert authority.name_of(agent.driver) == name
    event = CallJudged(1, Verdict(FORWARD, "rules"), "run.1", 1.0)
    authority.tell([("nobody", event)])
    assert agent.workbench.scheduled == []
    authority.tell([(name, event)])
    assert len(agent.workbench.scheduled) == 1


def test_there_is_nothing_to_poll() -> None:
    authority, ledger = _authority(FORWARD)

    assert authority.descriptors() == {}
    assert authority.stop_reason == ""
    with pytest.raises(AssertionError):
        authority.ready(5, 1, 0.0)
    authority.finish("SUCCEEDED", 5.0)
    assert ledger.entries[-1][1].type == "run_end"
