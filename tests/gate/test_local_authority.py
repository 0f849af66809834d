"""The shim as its own judge."""

import pytest
from tests.support.shim_bench import Ledger, SlowDesk

from thoughtgate.core.commands import AskPeople, JudgeCall, ScreenList, Withdraw
from thoughtgate.core.envelope import Run
from thoughtgate.core.events import CallJudged, ListScreened
from thoughtgate.core.judge import Judge
from thoughtgate.core.record_events import message_seen
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import HELD_S, IDLE_S, LocalAuthority
from thoughtgate.policy.call import APPROVE, FORWARD
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.visibility import BLOCK, Exposure, Visibility
from thoughtgate.wire.methods import Named


def _authority(default: str, desk: SlowDesk | None = None) -> tuple[LocalAuthority, Ledger]:
    ledger = Ledger()
    policy = Policy(default=default, visibility=Visibility({"*": Exposure.of(BLOCK, ["hidden"])}))
    governor = Governor(Judge(policy, "run"), ledger, Run("run"), desk=desk)
    return LocalAuthority(governor, "srv", "1", "me"), ledger


def _judge(authority: LocalAuthority, key: int = 1) -> CallJudged:
    named = (Named("tool", "x", {}),)
    (event,) = authority.judge(JudgeCall(key, "tools/call", named, {}, 10, modern=False, at=1.0))
    assert isinstance(event, CallJudged)
    return event


def test_a_call_is_judged_at_once_and_recorded_with_its_principal() -> None:
    authority, ledger = _authority(FORWARD)
    judged = _judge(authority)

    assert (judged.key, judged.verdict.action, judged.call_id) == (1, FORWARD, "run.1")
    assert authority.flush()
    start = ledger.entries[0][1].body["call"]
    assert (start["principal"], start["transport"]) == ("me", "mcp_stdio")


def test_a_list_is_screened_at_once() -> None:
    authority, _ = _authority(FORWARD)
    command = ScreenList(3, "tools/list", ({"name": "hidden"}, {"name": "x"}), 1.0)

    assert authority.screen(command) == [ListScreened(3, frozenset({"hidden"}), 1.0)]


def test_a_record_that_cannot_be_written_is_told() -> None:
    authority, ledger = _authority(FORWARD)
    authority.record(message_seen(1.0, "srv", "1", "agent_to_server", "request", "ping", 5))
    ledger.broken = True

    assert not authority.flush()
    assert authority.flush()


def test_without_anybody_to_ask_a_held_call_is_refused_at_once() -> None:
    authority, _ = _authority(APPROVE)
    judged = _judge(authority)
    (event,) = authority.ask(AskPeople(1, judged.call_id, "default", 1.0))

    assert isinstance(event, CallJudged)
    assert event.verdict.kind == "approval_timeout"
    assert authority.interval_s == IDLE_S


def test_a_persons_answer_comes_with_a_tick_and_only_once() -> None:
    desk = SlowDesk()
    authority, _ = _authority(APPROVE, desk)
    judged = _judge(authority, key=7)
    assert authority.ask(AskPeople(7, judged.call_id, "default", 1.0)) == []
    assert authority.interval_s == HELD_S
    assert authority.tick(2.0) == []
    desk.decide(0, approved=True)
    told = [event for event in authority.tick(3.0) if isinstance(event, CallJudged)]

    assert [(event.key, event.verdict.action) for event in told] == [(7, FORWARD)]
    assert authority.interval_s == IDLE_S
    desk.decide(0, approved=True)
    assert authority.tick(4.0) == []


def test_a_withdrawn_call_is_not_judged_any_more() -> None:
    desk = SlowDesk()
    authority, _ = _authority(APPROVE, desk)
    judged = _judge(authority)
    authority.ask(AskPeople(1, judged.call_id, "default", 1.0))
    authority.withdraw(Withdraw(1, judged.call_id, "gone"), 2.0)
    desk.decide(0, approved=True)

    assert authority.tick(3.0) == []


def test_there_is_nothing_to_poll() -> None:
    authority, ledger = _authority(FORWARD)

    assert authority.descriptors() == {}
    assert authority.stop_reason == ""
    with pytest.raises(AssertionError):
        authority.ready(5, 1, 0.0)
    authority.finish("SUCCEEDED", 5.0)
    assert ledger.entries[-1][1].type == "run_end"
