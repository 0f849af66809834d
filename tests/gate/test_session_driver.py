"""Every command of a session is carried out, whichever loop moves the bytes."""

import json
from typing import Any

import pytest
from tests.support.drivers import Listener, Workbench
from tests.support.frames import call, line, notification, request, result
from tests.support.session_play import SETUP
from tests.support.shim_bench import Ledger, NobodyThere, SlowDesk

from thoughtgate.core import session_replies
from thoughtgate.core.commands import (
    ANSWER,
    NOTICE,
    PROMPT,
    AskPeople,
    Command,
    InspectAnswer,
    JudgeCall,
    PersonAnswered,
    ScreenList,
)
from thoughtgate.core.elicitation import HoldNotice
from thoughtgate.core.envelope import Run
from thoughtgate.core.events import (
    AgentSent,
    AnswerInspected,
    CallerGone,
    CallJudged,
    ListScreened,
    ServerSent,
)
from thoughtgate.core.judge import Judge
from thoughtgate.gate import session_driver
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.session_driver import HTTP, STDIO, SessionDriver
from thoughtgate.policy.call import APPROVE, DENY, DEVELOPMENT, FORWARD, PRODUCTION, Verdict
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.visibility import BLOCK, Exposure, Visibility
from thoughtgate.wire.fast_frame import read_quickly


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


class _Bench:
    """A session, its authority, and a caller for each of its requests."""

    def __init__(
        self, default: str = FORWARD, *, transport: str = STDIO, profile: str = PRODUCTION
    ) -> None:
        self.ledger = Ledger()
        self.desk = _Prompter()
        hidden = Visibility({"*": Exposure.of(BLOCK, ["hidden"])})
        policy = Policy(
            default=default, visibility=hidden, profile=profile, server_requests=default
        )
        judge = Judge(policy, "run")
        judge.tools.learn("srv", ({"name": "x"},))
        self.authority = LocalAuthority(
            Governor(judge, self.ledger, Run("run"), approvals=self.desk)
        )
        self.workbench = Workbench(self.authority)
        self.driver = self.workbench.driver(transport=transport)

    def call(self, ident: int, caller: Listener | None = None, **params: Any) -> Listener:
        """Call a tool by a caller that waits for the answer."""
        caller = caller if caller is not None else Listener()
        self.driver.callers[ident] = caller
        body = call(ident, "x")
        body["params"].update(params)
        self.driver.feed(AgentSent(line(body), 1.0), caller)
        return caller

    def flush(self) -> None:
        """End the turn."""
        self.workbench.outbox.flush()

    def decide(self, number: int, *, approved: bool) -> None:
        """Have a person decide."""
        self.desk.decide(number, approved=approved)
        self.authority.held.poll(2.0)
        self.flush()

    def types(self) -> list[str]:
        """Return the types of the events on record."""
        return [one.type for one in self.ledger.of("recorded")]


def test_there_is_a_way_for_every_command() -> None:
    assert set(session_driver._CARRIERS) == set(Command.__args__)


# Frames.


def test_a_call_goes_on_once_the_record_is_written_and_its_answer_comes_back() -> None:
    bench = _Bench()
    caller = bench.call(1)
    assert (caller.forwarded, bench.types()) == ([], [])
    bench.flush()
    assert [(one.key, json.loads(one.data)) for one in caller.forwarded] == [(1, call(1, "x"))]
    assert bench.types() == ["tool_call_start", "tool_call_decision"]
    sent = caller.forwarded[0].message
    assert sent is not None
    assert sent.method == "tools/call"

    assert bench.driver.feed(ServerSent(line(result(1)), 2.0), caller) == 1
    assert [(one.key, one.carries, one.error) for one in caller.taken] == [(1, ANSWER, "")]
    bench.flush()
    assert bench.types()[-1] == "tool_call_end"


def test_a_refusal_names_its_kind_and_its_gate_and_nothing_goes_on() -> None:
    bench = _Bench(DENY)
    caller = bench.call(1)
    bench.flush()

    assert [(one.key, one.carries, one.error) for one in caller.taken] == [
        (1, ANSWER, "governance_denied")
    ]
    assert caller.taken[0].gate
    assert caller.forwarded == []


def test_how_many_frames_the_agent_gets_is_told() -> None:
    bench, agent = _Bench(DENY), Listener()

    assert bench.driver.feed(AgentSent(line(notification("notifications/x")), 1.0), agent) == 0
    assert bench.driver.feed(AgentSent(line(call(1, "x")), 1.0), agent) == 1
    assert bench.driver.feed(AgentSent(b"nonsense", 1.0), agent) == 1
    assert [one.error for one in agent.taken] == ["governance_denied", "parse_error"]


def test_without_a_sink_a_frame_goes_to_the_caller_of_its_request_or_to_the_agent() -> None:
    bench = _Bench()
    first, second, agent = bench.call(1), bench.call(2), Listener()
    bench.flush()
    bench.driver.feed(ServerSent(line(result(2)), 2.0), None)
    assert (first.taken, [one.key for one in second.taken]) == ([], [2])

    said = ServerSent(line(notification("notifications/x")), 2.0)
    asked = ServerSent(line(request("s1", "roots/list")), 2.0)
    assert bench.driver.feed(said, None) == 0
    bench.driver.agent = agent
    assert bench.driver.feed(said, None) == 1
    assert bench.driver.feed(asked, None) == 1
    assert [(one.key, one.carries) for one in agent.taken] == [(None, NOTICE), (None, PROMPT)]


def test_a_frame_that_no_caller_carries_is_sent_by_the_engine() -> None:
    bench = _Bench()
    data = line(notification("notifications/x"))
    bench.driver.feed(AgentSent(data, 1.0), None)
    assert bench.workbench.notified == []
    bench.flush()

    assert [(one is bench.driver, frame.data) for one, frame in bench.workbench.notified] == [
        (True, data)
    ]
    assert bench.workbench.detached == []


def test_a_call_that_no_caller_waits_for_is_run_by_the_engine_once_it_is_recorded() -> None:
    bench = _Bench()
    bench.driver.feed(AgentSent(line(call(1, "x")), 1.0), None)
    assert bench.workbench.detached == []
    bench.flush()

    assert [(one is bench.driver, frame.key) for one, frame in bench.workbench.detached] == [
        (True, 1)
    ]
    assert bench.workbench.notified == []


def test_a_call_that_no_caller_waits_for_is_not_run_without_a_record() -> None:
    bench = _Bench()
    bench.driver.feed(AgentSent(line(call(1, "x")), 1.0), None)
    bench.ledger.broken = True
    bench.flush()

    assert bench.workbench.detached == []
    assert bench.driver.session.is_idle


# What the authority is asked.


def test_a_list_is_learned_from_before_it_is_screened() -> None:
    bench, agent = _Bench(), Listener()
    entries = [{"name": "hidden"}, {"name": "x"}]
    bench.driver.feed(AgentSent(line(request(1, "tools/list")), 1.0), agent)
    bench.flush()
    bench.driver.feed(ServerSent(line(result(1, {"tools": entries})), 2.0), agent)

    assert bench.workbench.lists == [("tools/list", tuple(entries))]
    assert json.loads(agent.taken[0].data)["result"]["tools"] == [{"name": "x"}]


class _Later(LocalAuthority):
    """Answers nothing at once."""

    def judge(self, driver: SessionDriver, command: JudgeCall) -> CallJudged | None:
        """Keep the caller waiting."""
        del driver, command
        return None

    def screen(self, driver: SessionDriver, command: ScreenList) -> ListScreened | None:
        """Keep the caller waiting."""
        del driver, command
        return None

    def inspect(self, driver: SessionDriver, command: InspectAnswer) -> AnswerInspected | None:
        """Keep the caller waiting."""
        del driver, command
        return None


def test_an_answer_of_the_authority_may_come_later() -> None:
    governor = Governor(
        Judge(Policy(default=FORWARD), "run"), Ledger(), Run("run"), approvals=NobodyThere()
    )
    workbench, agent = Workbench(_Later(governor)), Listener()
    driver = workbench.driver()
    driver.feed(AgentSent(line(call(1, "x")), 1.0), agent)
    driver.feed(AgentSent(line(request(2, "tools/list")), 1.0), agent)
    workbench.outbox.flush()
    assert [frame.key for frame in agent.forwarded] == [2]
    assert driver.feed(ServerSent(line(result(2, {"tools": [{"name": "a"}]})), 2.0), agent) == 0
    masking = Verdict(FORWARD, "rules", redact=True)
    driver.feed(CallJudged(1, masking, "run.1", 2.0), agent)
    workbench.outbox.flush()
    assert [frame.key for frame in agent.forwarded] == [2, 1]
    assert driver.feed(ServerSent(line(result(1, {"a": "secret"})), 3.0), agent) == 0
    assert agent.taken == []

    assert driver.feed(ListScreened(2, frozenset(), 4.0), agent) == 1
    assert driver.feed(AnswerInspected(1, result(1, {"a": "***"}), 4.0), agent) == 1
    assert [frame.key for frame in agent.taken] == [2, 1]
    assert json.loads(agent.taken[1].data)["result"] == {"a": "***"}


def test_a_call_that_no_approver_can_decide_is_answered_on_the_callers_own_sink() -> None:
    class Refusing(LocalAuthority):
        def ask(self, driver: SessionDriver, command: AskPeople) -> list[Any]:
            del driver
            verdict = Verdict(DENY, "approval", "approval_timeout")
            return [CallJudged(command.key, verdict, command.call_id, command.at)]

    governor = Governor(
        Judge(Policy(default=APPROVE), "run"), Ledger(), Run("run"), approvals=NobodyThere()
    )
    workbench, caller, sink = Workbench(Refusing(governor)), Listener(), Listener()
    driver = workbench.driver()
    driver.callers[1] = caller

    assert driver.feed(AgentSent(line(call(1, "x")), 1.0), sink) == 1
    assert [one.error for one in sink.taken] == ["approval_timeout"]
    assert (caller.taken, caller.happened) == ([], [])


# Held calls.


def test_a_held_call_goes_on_by_its_caller_when_it_is_approved() -> None:
    bench = _Bench(APPROVE)
    caller = bench.call(1)
    bench.flush()
    assert caller.happened == [("held", 1)]
    assert caller.forwarded == []
    bench.decide(0, approved=True)

    assert [frame.key for frame in caller.forwarded] == [1]


def test_a_held_call_is_asked_about_in_the_agent_if_its_caller_can_show_it() -> None:
    bench = _Bench(APPROVE, transport=HTTP)
    opening = request(0, "initialize", {"capabilities": {"elicitation": {}}})
    bench.driver.feed(AgentSent(line(opening), 1.0), Listener())
    asked = bench.call(1)
    mute = bench.call(2, Listener(can_be_asked=False))
    bench.flush()

    assert [(one.key, one.carries) for one in asked.taken] == [(1, PROMPT)]
    assert mute.taken == []
    prompt = json.loads(asked.taken[0].data)
    assert "May run.1 run?" in prompt["params"]["message"]
    said = {"action": "accept", "content": {"decision": "approve"}}
    answer = AgentSent(line(result(prompt["id"], said)), 2.0)
    event = answer._replace(message=read_quickly(answer.line))
    assert bench.driver.is_answered_by(event)
    bench.driver.feed(event, asked)
    assert not bench.driver.is_answered_by(event)
    assert [(one.call_id, one.by) for one in bench.desk.answers] == [("run.1", "me")]


def test_a_caller_can_be_asked_only_while_there_is_one() -> None:
    bench = _Bench(APPROVE)
    command = AskPeople(1, "run.1", "default", 1.0)
    assert not bench.driver.can_be_asked(command)
    bench.driver.callers[1] = Listener(can_be_asked=False)
    assert not bench.driver.can_be_asked(command)
    bench.driver.callers[1] = Listener()
    assert bench.driver.can_be_asked(command)
    del bench.driver.callers[1]
    bench.driver.agent = Listener()
    assert bench.driver.can_be_asked(command)


def test_a_cancelled_call_is_withdrawn_everywhere_and_its_caller_is_told() -> None:
    bench = _Bench(APPROVE)
    caller = bench.call(1)
    cancel = notification("notifications/cancelled", {"requestId": 1})
    bench.driver.feed(AgentSent(line(cancel), 2.0), Listener())
    assert caller.happened == [("held", 1), ("withdrawn", None)]
    assert len(bench.authority.held) == 0
    bench.decide(0, approved=True)

    assert caller.forwarded == []


@pytest.mark.promise("caller-must-wait")
def test_a_call_whose_caller_left_is_not_made() -> None:
    bench = _Bench(APPROVE)
    caller = bench.call(1)
    bench.driver.feed(CallerGone(1, 2.0), None)
    bench.decide(0, approved=True)

    assert (caller.forwarded, bench.authority.held.prevented) == ([], 1)
    assert "tool_call_end" in bench.types()


def test_time_that_passes_is_told_to_the_session_and_to_every_caller() -> None:
    bench = _Bench(APPROVE)
    caller = bench.call(1, _meta={"progressToken": "mine"})
    at = 1.0 + session_replies.PROGRESS_EVERY_S
    bench.driver.tick(at)

    assert caller.happened == [("held", 1), ("keep_alive", at)]
    assert [one.carries for one in caller.taken] == [NOTICE, NOTICE]
    assert json.loads(caller.taken[0].data)["params"]["progressToken"] == "mine"


# Tasks.


def test_a_call_that_is_a_task_is_answered_with_it_and_runs_without_a_caller() -> None:
    bench = _Bench(APPROVE)
    caller = bench.call(1, task={"ttl": 60_000})
    bench.flush()
    made = json.loads(caller.taken[0].data)["result"]["task"]
    del bench.driver.callers[1]
    assert bench.driver.name
    bench.decide(0, approved=True)
    ((_, frame),) = bench.workbench.detached
    assert frame.key == "tg-run.1"
    bench.driver.feed(ServerSent(line(result("tg-run.1", {"content": []})), 3.0), None)
    asker = Listener()
    get = request(2, "tasks/get", {"taskId": made["taskId"]})
    bench.driver.feed(AgentSent(line(get), 4.0), asker)

    assert json.loads(asker.taken[0].data)["result"]["status"] == "completed"


def _resumed(bench: _Bench, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    names: list[tuple[str, str]] = []
    monkeypatch.setattr(
        bench.authority.governor.tasks,
        "resumed",
        lambda task_id, call_id, _session: names.append((task_id, call_id)),
    )
    bench.driver.resumes = "tg_1"
    body = call("tg_1", "x")
    body["params"]["task"] = {}
    bench.driver.feed(AgentSent(line(body), 1.0), None)
    return names


@pytest.mark.parametrize("default", [APPROVE, FORWARD])
def test_a_resumed_task_waits_for_a_person_again(
    default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _Bench(default)

    assert _resumed(bench, monkeypatch) == [("tg_1", "run.1")]
    assert bench.desk.asked == ["run.1"]
    assert len(bench.authority.held) == 1
    bench.flush()
    assert bench.workbench.detached == []
    bench.decide(0, approved=True)
    assert [frame.key for _, frame in bench.workbench.detached] == ["tg-run.1"]


@pytest.mark.parametrize("may_start", [True, False])
def test_in_development_a_resumed_task_runs_unless_it_was_taken_back_elsewhere(
    may_start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _Bench(APPROVE, profile=DEVELOPMENT)
    tasks = bench.authority.governor.tasks
    monkeypatch.setattr(tasks, "started", lambda _call_id, _at: may_start)
    _resumed(bench, monkeypatch)
    bench.flush()

    assert len(bench.workbench.detached) == int(may_start)


# What is known of a driver.


def test_a_driver_is_busy_until_its_request_is_answered_and_spent_afterwards() -> None:
    bench = _Bench()
    driver = bench.driver
    assert (driver.is_busy, driver.is_spent) == (False, True)
    caller = bench.call(1)
    bench.flush()
    assert (driver.is_busy, driver.is_spent) == (True, False)
    driver.feed(ServerSent(line(result(1)), 2.0), caller)
    assert (driver.is_busy, driver.is_spent) == (True, False)
    del driver.callers[1]
    assert (driver.is_busy, driver.is_spent) == (False, True)


@pytest.mark.parametrize(
    ("trace", "value"), [("wants_session", True), ("name", "1:1"), ("resumes", "tg_1")]
)
def test_a_driver_that_left_a_trace_is_not_spent(trace: str, value: Any) -> None:
    driver = _Bench().driver
    setattr(driver, trace, value)

    assert not driver.is_spent


def test_a_driver_whose_caller_left_before_the_answer_is_not_spent() -> None:
    bench = _Bench()
    bench.call(1)
    bench.flush()
    bench.driver.feed(CallerGone(1, 2.0), None)
    del bench.driver.callers[1]

    assert not bench.driver.is_spent


@pytest.mark.parametrize(("transport", "person"), [(HTTP, "ann"), (STDIO, "")])
def test_over_http_the_principal_answers_prompts_and_on_stdio_the_login_of_the_process(
    transport: str, person: str
) -> None:
    workbench = _Bench().workbench
    driver = workbench.driver(SETUP, "ann", transport=transport)

    assert (driver.principal, driver.person, driver.session.setup) == ("ann", person, SETUP)


def test_the_authority_may_seal_the_states_that_stand_for_a_call() -> None:
    class Sealing(LocalAuthority):
        def request_states(self, server: str, principal: str) -> Any:
            return (server, principal)

    governor = Governor(Judge(Policy(), "run"), Ledger(), Run("run"), approvals=NobodyThere())
    driver = Workbench(Sealing(governor)).driver(principal="ann")
    sealed: Any = driver.session.prompts.states

    assert sealed == ("srv", "ann")


# Headers that can be compared only once the server's tools are known.


def listed(bench: _Bench, answer: Any) -> None:
    """Have the server answer the gate's own list."""
    ((_, frame),) = bench.workbench.detached
    body = {"jsonrpc": "2.0", "id": frame.key, "result": answer}
    bench.driver.feed(ServerSent(line(body), 1.5), None)
    bench.flush()


@pytest.mark.parametrize("answer", [{"tools": [{"name": "x"}]}, "nonsense"])
def test_a_call_whose_headers_need_the_list_is_judged_after_it(answer: Any) -> None:
    bench = _Bench()
    checked: list[bool] = []

    def agrees() -> bool:
        checked.append(True)
        return True

    bench.driver.header_checks[1] = agrees
    caller = bench.call(1)
    bench.flush()
    assert (checked, caller.forwarded) == ([], [])

    listed(bench, answer)
    assert checked == [True]
    assert len(caller.forwarded) == 1
    assert bench.driver.header_checks == {}


def test_a_call_whose_headers_differ_is_never_judged_and_its_id_is_free_again() -> None:
    bench = _Bench()
    bench.driver.header_checks[1] = lambda: False
    caller = bench.call(1)
    bench.flush()
    listed(bench, {"tools": [{"name": "x"}]})
    assert (caller.forwarded, caller.taken) == ([], [])
    assert "tool_call_start" not in bench.types()
    assert bench.driver.session.is_untouched

    again = bench.call(1)
    bench.flush()
    assert len(again.forwarded) == 1


# Held requests of the server, and the stream on which the agent could be asked.


def sampling(bench: _Bench, ident: int, stream: Listener) -> None:
    """Have the server ask the agent on a stream."""
    body = request(ident, "sampling/createMessage", {"messages": [], "maxTokens": 1})
    bench.driver.feed(ServerSent(line(body), 1.0), stream)
    bench.flush()


def test_a_held_request_of_the_server_is_refused_when_its_stream_ends() -> None:
    bench = _Bench(APPROVE, transport=HTTP)
    ended, other = Listener(), Listener()
    sampling(bench, 7, ended)
    sampling(bench, 8, other)

    bench.driver.stream_ended(ended)
    bench.flush()

    ((_, frame),) = bench.workbench.notified
    said = json.loads(frame.data)
    assert (said["id"], said["error"]["data"]["kind"]) == (7, "approval_withdrawn")
    assert bench.types()[-2:] == ["approval_decided", "tool_call_end"]
    assert ended.taken == []

    bench.driver.stream_ended(ended)
    bench.decide(1, approved=True)
    assert [json.loads(one.data)["id"] for one in other.taken] == [8]
    bench.driver.stream_ended(other)
    bench.flush()
    assert len(bench.workbench.notified) == 1, "what the agent has received is its own to answer"
