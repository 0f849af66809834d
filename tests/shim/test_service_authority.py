"""The shim that asks: no answer, a late answer or a strange one never lets a call through."""

import json
import select
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.support.drivers import Listener, Workbench, open_driver
from tests.support.frames import call, line
from tests.support.json_values import json_values
from tests.support.raw_service import RawService, reply

from thoughtgate.core.commands import (
    AskPeople,
    AskTask,
    EndTask,
    InspectAnswer,
    JudgeCall,
    PersonAnswered,
    ScreenList,
    Withdraw,
)
from thoughtgate.core.events import (
    AgentSent,
    AnswerInspected,
    CallJudged,
    Event,
    ListScreened,
    TaskAnswered,
)
from thoughtgate.core.record_events import Record, call_ended, frame_refused, message_seen
from thoughtgate.gate.clock import now
from thoughtgate.gate.run_file import RunFile
from thoughtgate.policy.call import APPROVE, DENY, FORWARD
from thoughtgate.shim import event_queue, service_authority
from thoughtgate.shim.service_authority import ServiceAuthority, connect
from thoughtgate.shim.service_connection import Link
from thoughtgate.shim.service_handshake import read_object
from thoughtgate.wire.methods import Named

CALL = JudgeCall(
    1, "tools/call", (Named("tool", "echo", {}),), {"name": "echo"}, 40, modern=False, at=0.0
)
LIST = ScreenList(2, "tools/list", ({"name": "a"}, {"name": "b"}), 0.0)
MASK = InspectAnswer(3, "r.3", {"jsonrpc": "2.0", "id": 3, "result": {"text": "secret"}}, 0.0)
HELD = AskPeople(1, "r.1", "default", 0.0, None, modern=False)


_OPENED: list[ServiceAuthority] = []


def _open(run: RunFile, server: str, session: str) -> ServiceAuthority:
    authority = ServiceAuthority(run, server, session)
    _OPENED.append(authority)
    return authority


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    while _OPENED:
        _OPENED.pop().close()


def _drive(
    authority: ServiceAuthority, events: list[Event], until: Callable[[list[Event]], Any]
) -> list[Event]:
    """Serve an authority's connections, as the shim's loop does, until something has happened."""
    deadline = time.monotonic() + 10
    found = list(events)
    while not until(found):
        assert time.monotonic() < deadline, "nothing came of it"
        poll = select.poll()
        for descriptor, mask in authority.descriptors().items():
            poll.register(descriptor, mask)
        for descriptor, mask in poll.poll(20):
            found += authority.ready(descriptor, mask, now())
        found += authority.tick(now())
        authority.rest()
    return found


def _judge(answer: bytes | None, profile: str = "production") -> CallJudged:
    def answerer(head: bytes, _: bytes) -> bytes | None:
        return answer if b"evaluate" in head else reply(b'{"shutdown":false}')

    with RawService(answerer) as service:
        authority = _open(service.run(profile), "files", "s")
        assert authority.judge(open_driver(authority), CALL) is None
        events = _drive(authority, [], lambda found: found)
    judged = events[0]
    assert isinstance(judged, CallJudged)
    return judged


STRANGE = [
    None,
    reply(b"", 500),
    reply(b'{"decision":"forward"}', 500),
    reply(b'{"decision":"forward"}', 403),
    reply(b"not json"),
    reply(b"[]"),
    reply(b"{}"),
    reply(b'{"decision":"FORWARD"}'),
    reply(b'{"decision":["forward"]}'),
    reply(b'{"decision":true}'),
    reply(b'{"decision":null}'),
    b"HTTP/1.1 200 OK\r\n\r\n" + b'{"decision":"forward"}',
]


@pytest.mark.requirement("S000-F-016b", "S000-NFR-003")
@pytest.mark.parametrize("answer", STRANGE)
def test_a_strange_answer_is_a_denial(answer: bytes | None) -> None:
    assert _judge(answer).verdict.action == DENY


@pytest.mark.requirement("S000-F-016b")
@pytest.mark.parametrize("answer", [None, reply(b"", 500)])
def test_no_answer_is_passed_by_in_development_with_a_word(
    answer: bytes | None, capfd: pytest.CaptureFixture[str]
) -> None:
    verdict = _judge(answer, "development").verdict

    assert (verdict.action, verdict.enforced) == (FORWARD, False)
    assert "WOULD_BLOCK" in capfd.readouterr().err


@given(json_values())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_only_the_word_forward_forwards(value: Any) -> None:
    with RawService(lambda _head, _body: b"") as service:
        authority = _open(service.run(), "files", "s")
        for reply_value in (value, {"decision": value}):
            (judged,) = authority._judged(CALL, read_object(200, json.dumps(reply_value).encode()))
            assert isinstance(judged, CallJudged)
            assert judged.verdict.action == DENY or reply_value == {"decision": "pending_approval"}


def test_a_late_answer_is_a_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_authority, "EVALUATE_S", 0.1)

    assert _judge(b"").verdict.kind == "service_unavailable"


def test_a_denial_keeps_its_kind_and_says_nothing_else() -> None:
    body = {"decision": "deny", "kind": "rate_limited", "gate": "limits", "retry_after": 3}
    judged = _judge(reply(json.dumps({**body, "call_id": "r.1", "reason": "secret"}).encode()))

    verdict = judged.verdict
    assert (verdict.action, verdict.kind, verdict.retry_after_s) == (DENY, "rate_limited", 3.0)
    assert (verdict.reason, judged.call_id) == ("", "r.1")


def test_an_unknown_kind_of_denial_is_still_a_denial() -> None:
    assert (
        _judge(reply(b'{"decision":"deny","kind":"made_up"}')).verdict.kind == "governance_denied"
    )


@pytest.mark.parametrize("answer", STRANGE)
def test_a_list_that_could_not_be_screened_is_an_error_and_not_an_empty_list(
    answer: bytes | None,
) -> None:
    with RawService(lambda _head, _body: answer) as service:
        authority = _open(service.run(), "files", "s")
        assert authority.screen(open_driver(authority), LIST) is None
        events = _drive(authority, [], lambda found: found)

    screened = next(one for one in events if isinstance(one, ListScreened))
    assert screened.hidden is None


def test_a_held_call_is_asked_about_until_it_is_decided() -> None:
    said = iter([b'{"status":"pending"}', b'{"status":"pending"}', b'{"decision":"forward"}'])

    def answerer(head: bytes, _: bytes) -> bytes:
        return reply(next(said) if b"/governance/task/" in head else b"{}")

    with RawService(answerer) as service:
        authority = _open(service.run(), "files", "s")
        asked = authority.ask(open_driver(authority), HELD)
        (judged,) = _drive(authority, asked, lambda found: found)

    assert isinstance(judged, CallJudged)
    assert (judged.verdict.action, judged.call_id) == (FORWARD, "r.1")


def test_a_service_that_loses_a_held_call_denies_it() -> None:
    with RawService(lambda head, _: reply(b"{}", 404 if b"/task/" in head else 200)) as service:
        authority = _open(service.run(), "files", "s")
        asked = authority.ask(open_driver(authority), HELD)
        (judged,) = _drive(authority, asked, lambda found: found)

    assert isinstance(judged, CallJudged)
    assert judged.verdict.action == DENY


def test_what_is_withdrawn_is_told_to_the_service_and_not_asked_about_again() -> None:
    with RawService(
        lambda head, _: reply(b'{"status":"pending"}' if b"/task/" in head else b"{}")
    ) as service:
        authority = _open(service.run(), "files", "s")
        driver = open_driver(authority)
        authority.ask(driver, HELD)
        authority.withdraw(driver, Withdraw(1, "r.1", "gone"), now())
        _drive(authority, [], lambda _: any(b"withdraw" in head for head, _ in service.requests))
        body = next(json.loads(body) for head, body in service.requests if b"withdraw" in head)

    assert (body["task_id"], body["session_id"], body["reason"]) == ("r.1", "s", "gone")


def test_the_shim_stops_when_told_so_and_when_nobody_is_there() -> None:
    with RawService(lambda _head, _body: reply(b'{"shutdown":true}')) as service:
        authority = _open(service.run(), "files", "s")
        _drive(authority, [], lambda _: authority.stop_reason)
        assert authority.stop_reason == "the run is over"
        assert not authority.flush()
    with RawService(lambda _head, _body: None) as service:
        authority = _open(service.run(), "files", "s")
        _drive(authority, [], lambda _: authority.stop_reason)
        assert authority.stop_reason == "the governance service is gone"


def _seen() -> Record:
    return message_seen(now(), "files", "s", "agent_to_server", "request", "ping", 10)


def test_nothing_is_sent_on_while_the_record_cannot_be_written() -> None:
    statuses = iter([503, 200])

    def answerer(head: bytes, _: bytes) -> bytes:
        return reply(b"{}", next(statuses) if b"/events" in head else 200)

    with RawService(answerer) as service:
        authority = _open(service.run(), "files", "s")
        authority.note(_seen())
        assert authority.flush()
        _drive(authority, [], lambda _: not authority.flush())
        assert authority.stop_reason == ""
        authority.note(_seen())
        _drive(authority, [], lambda _: authority.flush())


@pytest.mark.parametrize(
    ("gate", "call_id", "recorded"),
    [("rules", "r.1", True), ("record", "r.1", False), ("rules", "", False)],
)
def test_a_verdict_on_the_record_says_that_it_can_be_written_again(
    gate: str, call_id: str, recorded: bool
) -> None:
    decision = "deny" if gate == "record" else "forward"
    verdict = json.dumps({"decision": decision, "gate": gate, "call_id": call_id}).encode()

    def answerer(head: bytes, _: bytes) -> bytes:
        return reply(b"{}", 503) if b"/events" in head else reply(verdict)

    with RawService(answerer) as service:
        authority = _open(service.run(), "files", "s")
        authority.note(_seen())
        _drive(authority, [], lambda _: not authority.flush())
        authority.judge(open_driver(authority), CALL)
        _drive(authority, [], lambda found: found)
        assert authority.flush() is recorded


def test_events_are_handed_over_before_goodbye() -> None:
    with RawService(lambda _head, _body: reply(b"{}")) as service:
        authority = _open(service.run(), "files", "s")
        for _ in range(1200):
            authority.note(_seen())
        authority.finish("SUCCEEDED", now())

    told = [json.loads(body) for head, body in service.requests if b"/events" in head]
    assert sum(len(one["records"]) for one in told) == 1200
    assert json.loads(service.requests[-1][1])["bye"] is True


def test_the_end_of_a_call_is_handed_over_at_once_with_what_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moment = time.monotonic()
    ended = call_ended(
        now(), "files", "s", call_id="r.1", tool="echo", status="OK", latency_ms=1, size=2
    )
    with RawService(lambda _head, _body: reply(b"{}")) as service:
        authority = _open(service.run(), "files", "s")
        monkeypatch.setattr(event_queue, "monotonic", lambda: moment)
        authority.note(_seen())
        authority.rest()
        assert authority.interval_s > 0
        authority.note(ended)
        assert authority.interval_s == 0
        _drive(authority, [], lambda _: any(b"/events" in head for head, _ in service.requests))

    told = json.loads(next(body for head, body in service.requests if b"/events" in head))
    assert [one[0] for one in told["records"]] == ["message", "tool_call_end"]


def test_goodbye_does_not_wait_for_a_service_that_is_gone() -> None:
    with RawService(lambda _head, _body: None) as service:
        run = service.run()
    authority = _open(run, "files", "s")
    authority.note(_seen())
    began = time.monotonic()

    authority.finish("FAILED", now())

    assert time.monotonic() - began < 5


def test_what_development_would_have_refused_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    body = {"decision": "forward", "outcome": "WOULD_BLOCK", "tool": "rm", "gate": "rules"}
    verdict = _judge(reply(json.dumps({**body, "kind": "policy_denied"}).encode())).verdict
    assert (verdict.action, verdict.enforced) == (FORWARD, False)
    with RawService(lambda _head, _body: reply(b"{}")) as service:
        frame = frame_refused(
            now(),
            "files",
            "s",
            direction="agent_to_server",
            check="raw_cr",
            kind="invalid_request",
            size=3,
            enforced=False,
        )
        _open(service.run("development"), "files", "s").note(frame)

    said = capfd.readouterr().err
    assert "WOULD_BLOCK: 'rm', rules gate, policy_denied" in said
    assert "WOULD_REJECT: a frame agent_to_server, raw_cr" in said


def test_it_is_said_in_json_where_the_config_wants_that(
    capfd: pytest.CaptureFixture[str],
) -> None:
    hello = {"session_id": "s1", "profile": "development", "log_format": "json"}
    forward = {"decision": "forward", "outcome": "WOULD_BLOCK", "tool": "echo", "gate": "rules"}
    answers = [json.dumps({**forward, "kind": "policy_denied"}).encode(), b"{}"]

    def answerer(head: bytes, _: bytes) -> bytes | None:
        return reply(answers.pop(0) if b"evaluate" in head else json.dumps(hello).encode())

    frame = frame_refused(
        now(),
        "files",
        "s",
        direction="agent_to_server",
        check="raw_cr",
        kind="invalid_request",
        size=3,
        enforced=False,
    )
    with RawService(answerer) as service:
        run = service.run()
        environ = {"THOUGHTGATE_GOVERNANCE_TOKEN": run.token}
        authority, *_ = connect("files", (), ("", f"http://{run.host}:{run.port}"), environ)
        _OPENED.append(authority)
        authority.note(frame)
        for _ in range(2):
            authority.judge(open_driver(authority), CALL)
            _drive(authority, [], lambda found: found)

    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["governance_decision"] for line in lines] == [
        "WOULD_REJECT",
        "WOULD_BLOCK",
        "WOULD_BLOCK",
    ]
    assert {(line["component"], line["server_id"], line["level"]) for line in lines} == {
        ("shim", "files", "warn")
    }
    judged = [(line["method"], line["gate"], line["message_id"]) for line in lines[1:]]
    assert judged == [("tools/call", "rules", 1), ("tools/call", "governance", 1)]
    # Only the service can mask a name, so without its reply none is logged.
    assert [line.get("tool") for line in lines[1:]] == ["echo", None]


def test_pending_is_held() -> None:
    judged = _judge(reply(b'{"decision":"pending_approval","workflow":"ops","call_id":"r.1"}'))

    assert (judged.verdict.action, judged.verdict.workflow) == (APPROVE, "ops")


def test_the_service_decides_the_profile_and_what_the_server_must_not_see() -> None:
    hello = {
        "session_id": "s1",
        "profile": "development",
        "timeout_s": 9,
        "max_held": 3,
        "withheld": ["A", 3],
    }

    def answerer(head: bytes, _: bytes) -> bytes:
        return reply(b"{}" if b"healthz" in head else json.dumps(hello).encode())

    with RawService(answerer) as service:
        run = service.run()
        environ = {"THOUGHTGATE_GOVERNANCE_TOKEN": run.token}
        address = f"http://{run.host}:{run.port}"
        authority, setup, withheld, own = connect("files", (), ("", address), environ)

    authority.close()
    assert (setup.session, setup.enforce, setup.timeout_s, setup.max_held) == ("s1", False, 9.0, 3)
    assert (withheld, own) == (["A"], {})


def _cut_off(monkeypatch: pytest.MonkeyPatch) -> ServiceAuthority:
    """Return an authority whose connections fail at once."""
    monkeypatch.setattr(Link, "_connect", lambda _link: None)
    return _open(RunFile("127.0.0.1", 1, "token", "production", 0), "files", "s")


def test_an_answer_that_is_there_at_once_is_told_in_the_next_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authority = _cut_off(monkeypatch)
    driver = open_driver(authority)

    assert authority.tick(now()) == []
    assert authority.interval_s > 0
    assert authority.judge(driver, CALL) is None
    assert authority.screen(driver, LIST) is None
    assert authority.inspect(driver, MASK) is None
    assert authority.interval_s == 0
    judged, screened, masked = authority.tick(now())

    assert isinstance(judged, CallJudged)
    assert (judged.key, judged.verdict.action) == (1, DENY)
    assert isinstance(screened, ListScreened)
    assert (screened.key, screened.hidden) == (2, None)
    assert isinstance(masked, AnswerInspected)
    assert (masked.key, masked.body) == (3, None)
    assert authority.tick(now()) == []


def test_a_verdict_lost_with_the_connection_is_told_whatever_used_it_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with RawService(lambda _head, _body: b"") as service:
        authority = _open(service.run(), "files", "s")
        driver = open_driver(authority)
        authority.judge(driver, CALL)
        monkeypatch.setattr(Link, "push", Link.fail)
        authority.withdraw(driver, Withdraw(9, "r.9", "gone"), now())
        judged = authority.tick(now())[0]

    assert isinstance(judged, CallJudged)
    assert (judged.key, judged.verdict.action) == (1, DENY)


@pytest.mark.parametrize(
    ("said", "masked"),
    [
        (reply(b'{"body":{"id":3,"result":{"text":"***"}}}'), {"id": 3, "result": {"text": "***"}}),
        (reply(b'{"body":"secret"}'), None),
        (reply(b"", 500), None),
        (None, None),
    ],
)
def test_an_answer_that_could_not_be_masked_has_no_body(
    said: bytes | None, masked: dict[str, Any] | None
) -> None:
    with RawService(lambda head, _: said if b"inspect" in head else reply(b"{}")) as service:
        authority = _open(service.run(), "files", "s")
        assert authority.inspect(open_driver(authority), MASK) is None
        (event,) = _drive(authority, [], lambda found: found)
        sent = next(json.loads(body) for head, body in service.requests if b"inspect" in head)

    assert isinstance(event, AnswerInspected)
    assert (event.key, event.body) == (3, masked)
    assert sent["body"] == MASK.body


def test_a_late_verdict_sends_the_call_on_through_the_driver() -> None:
    with RawService(
        lambda head, _: reply(b'{"decision":"forward"}' if b"evaluate" in head else b"{}")
    ) as service:
        authority = _open(service.run(), "files", "s")
        workbench, agent = Workbench(authority), Listener()
        driver = workbench.driver()
        assert driver.feed(AgentSent(line(call(1, "echo")), now()), agent) == 0
        workbench.outbox.flush()
        assert agent.forwarded == []
        for event in _drive(authority, [], lambda found: found):
            driver.feed(event, agent)
        workbench.outbox.flush()

    assert [(frame.key, json.loads(frame.data)) for frame in agent.forwarded] == [
        (1, call(1, "echo"))
    ]


def _bodies(service: RawService, path: bytes) -> list[dict[str, Any]]:
    return [json.loads(body) for head, body in list(service.requests) if path in head]


def test_the_decision_of_the_person_in_front_of_the_agent_is_handed_over() -> None:
    with RawService(lambda _head, _body: reply(b"{}")) as service:
        authority = _open(service.run(), "files", "s")
        answered = PersonAnswered("r.1", approve=False, reason="no", at=0.0)
        authority.person_answered(open_driver(authority), answered)
        _drive(authority, [], lambda _: _bodies(service, b"/governance/answer"))
        (told,) = _bodies(service, b"/governance/answer")

    assert (told["task_id"], told["approve"], told["reason"]) == ("r.1", False, "no")


def test_requests_about_tasks_are_answered_by_the_service() -> None:
    told = reply(b'{"told":[{"event":"answered","key":4,"body":{"result":{}}}]}')

    def answerer(head: bytes, body: bytes) -> bytes:
        return told if b'"AskTask"' in body else reply(b"{}")

    with RawService(answerer) as service:
        authority = _open(service.run(), "files", "s")
        driver = open_driver(authority)
        asked = AskTask(4, "tasks/get", {"taskId": "tg_1"}, modern=False, at=0.0)
        assert authority.ask_task(driver, asked) == []
        (event,) = _drive(authority, [], lambda found: found)
        authority.end_task(driver, EndTask("r.1", {"result": {}}, 0.0))
        _drive(authority, [], lambda _: _bodies(service, b"/tasks")[-1].get("command") == "EndTask")

    assert isinstance(event, TaskAnswered)
    assert (event.key, event.body) == (4, {"result": {}})


def test_the_session_keeps_its_own_states_and_no_task_outlives_the_wrap() -> None:
    authority = _open(RunFile("127.0.0.1", 1, "token", "production", 0), "files", "s")

    assert authority.request_states("files", "me") is None
    with pytest.raises(AssertionError):
        authority.resume(open_driver(authority), CALL)
