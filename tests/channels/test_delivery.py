"""The channel: a real thread and a real store, a place that misbehaves."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
from tests.support.approvals import a_desk, a_store, an_approval, held
from tests.support.waiting import wait_for

from thoughtgate.channels import delivery as module
from thoughtgate.channels.delivery import (
    DeliveryChannel,
    DeliveryError,
    RequestGoneError,
    VoteStore,
)
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Approval, Decision, Vote
from thoughtgate.errors import StoreError
from thoughtgate.gate.approvals.queue import ApprovalQueue


class Place:
    """A place that does what the test says."""

    poll_s = 0.01

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.looks = 0
        self.polled: list[str] = []
        self.settled: list[tuple[str, str]] = []
        self.votes: list[Vote] = []
        self.faults: list[Exception] = []
        self.hold = threading.Event()
        self.hold.set()

    def send_request(self, approval: Approval) -> str:
        self._maybe_fail()
        self.asked.append(approval.id)
        return f"handle of {approval.id}"

    def poll_votes(self, approval: Approval, handle: str) -> Sequence[Vote]:
        assert handle == f"handle of {approval.id}"
        self._maybe_fail()
        self.looks += 1
        self.polled.append(approval.id)
        return self.votes

    def send_outcome(self, approval: Approval, handle: str) -> None:
        del handle
        self._maybe_fail()
        self.settled.append((approval.id, approval.status))

    def _maybe_fail(self) -> None:
        self.hold.wait(10)
        if self.faults:
            raise self.faults.pop(0)


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def channel(
    tmp_path: Path, place: Place, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[DeliveryChannel]:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    made = DeliveryChannel("slack", {"ops": place}, lambda: closing(a_store(tmp_path)), said.append)
    yield made
    place.hold.set()
    made.stop()


@pytest.fixture
def desk(tmp_path: Path, channel: DeliveryChannel) -> Iterator[ApprovalQueue]:
    store = a_store(tmp_path)
    workflows = {
        "ops": WorkflowSettings("ops", channel="slack"),
        "default": WorkflowSettings("default"),
        "other": WorkflowSettings("other", channel="slack"),
        "bob": WorkflowSettings("ops", channel="slack", approvers=("U0BOB",)),
        "brief": WorkflowSettings("ops", channel="slack", timeout_s=0.2),
    }
    yield a_desk(store, workflows, channels=(channel,))
    store.close()


def ask(desk: ApprovalQueue, workflow: str = "ops") -> str:
    assert desk.ask("run.1", held(), workflow, time.time()) is None
    return str(desk.facts("run.1")["approval_id"])


def decision(desk: ApprovalQueue) -> Decision:
    found: list[tuple[str, Decision]] = wait_for(lambda: desk.poll(time.time()))
    return found[0][1]


def yes(user: str = "U1") -> Vote:
    return Vote(f"slack:{user}", approve=True, at=time.time())


def no(user: str = "U2") -> Vote:
    return Vote(f"slack:{user}", approve=False, at=time.time())


def test_an_answer_there_is_an_answer_here_and_the_outcome_is_shown(
    desk: ApprovalQueue, place: Place
) -> None:
    ident = ask(desk)
    wait_for(lambda: place.looks)
    place.votes = [yes()]

    found = decision(desk)
    assert (found.approved, found.by) == (True, "slack:U1")
    wait_for(lambda: place.settled)
    assert place.asked == [ident]
    assert place.settled == [(ident, "approved")]


def test_of_two_answers_seen_at_once_the_refusal_counts(desk: ApprovalQueue, place: Place) -> None:
    place.votes = [yes(), no()]
    ask(desk)

    assert not decision(desk).approved


def test_workflows_that_ask_elsewhere_are_left_alone(
    desk: ApprovalQueue, place: Place, channel: DeliveryChannel
) -> None:
    ask(desk, "default")
    desk.withdraw("run.1", "over", time.time())
    assert desk.ask("run.2", held(), "other", time.time()) is None

    assert channel._thread is None
    assert place.asked == []


def test_who_is_not_an_approver_is_not_counted_and_told_of_once(
    desk: ApprovalQueue, place: Place, said: list[str]
) -> None:
    place.votes = [yes("U0EVE")]
    ask(desk, "bob")
    looks = wait_for(lambda: place.looks)
    wait_for(lambda: place.looks > looks + 3)

    assert desk.poll(time.time()) == []
    assert len([text for text in said if "not among the approvers" in text]) == 1
    place.votes = [yes("U0EVE"), yes("U0BOB")]
    assert decision(desk).by == "slack:U0BOB"


def test_trouble_is_tried_again_and_told_of_once(
    desk: ApprovalQueue, place: Place, said: list[str]
) -> None:
    place.faults = [DeliveryError("it is down") for _ in range(3)]
    place.votes = [yes()]
    ask(desk)

    assert decision(desk).approved
    assert len([text for text in said if "it is down" in text]) == 1


def test_patience_that_was_asked_for_is_kept_for_the_whole_workflow(
    desk: ApprovalQueue, place: Place, channel: DeliveryChannel
) -> None:
    place.faults = [DeliveryError("too fast", 3600)]
    ask(desk)
    wait_for(lambda: not place.faults)
    assert desk.ask("run.2", held(), "ops", time.time()) is None
    wait_for(lambda: channel._inbox.empty() and len(channel._items) == 2)
    wait_for(lambda: all(item.due_at > time.monotonic() for item in channel._items.values()))

    assert place.asked == []
    assert (
        max(item.due_at for item in channel._items.values()) <= time.monotonic() + module.MAX_WAIT_S
    )


def test_a_message_that_is_gone_lets_the_call_wait_until_its_own_time(
    desk: ApprovalQueue, place: Place, said: list[str]
) -> None:
    place.faults = [RequestGoneError()]
    ask(desk, "brief")

    assert decision(desk).kind == "approval_timeout"
    assert any("was deleted there" in text for text in said)


def test_a_bug_in_a_client_does_not_end_the_thread(desk: ApprovalQueue, place: Place) -> None:
    place.faults = [RuntimeError("bug"), KeyError("bug")]
    place.votes = [yes()]
    ask(desk)

    assert decision(desk).approved


def test_a_place_that_hangs_holds_up_nobody(desk: ApprovalQueue, place: Place) -> None:
    place.hold.clear()
    ask(desk, "brief")

    assert decision(desk).kind == "approval_timeout"


def test_a_withdrawn_question_is_marked_when_the_gate_stops(
    desk: ApprovalQueue, place: Place, channel: DeliveryChannel
) -> None:
    ident = ask(desk)
    wait_for(lambda: place.looks)
    desk.close(time.time())

    assert place.settled == [(ident, "withdrawn")]
    assert channel._thread is not None
    assert not channel._thread.is_alive()


def test_a_gate_that_stops_does_not_wait_for_a_place_that_fails(
    desk: ApprovalQueue, place: Place, channel: DeliveryChannel
) -> None:
    ask(desk)
    wait_for(lambda: place.looks)
    place.faults = [DeliveryError("down") for _ in range(100)]
    desk.close(time.time())

    assert place.settled == []
    assert channel._thread is not None
    assert not channel._thread.is_alive()


def test_a_message_sent_before_a_restart_is_found_again(
    tmp_path: Path, desk: ApprovalQueue, place: Place
) -> None:
    store = a_store(tmp_path)
    place.hold.clear()
    ident = ask(desk)
    store.keep_handle(ident, "slack", f"handle of {ident}")
    place.hold.set()
    # The first channel may have asked before the handle was there; a second one must not.
    wait_for(lambda: place.looks)
    second = Place()
    other = DeliveryChannel(
        "slack", {"ops": second}, lambda: closing(a_store(tmp_path)), lambda _: None
    )
    found = store.get(ident)
    assert isinstance(found, Approval)
    other.show_request(found)
    wait_for(lambda: second.looks)

    assert second.asked == []
    other.stop()
    store.close()


def test_a_store_that_cannot_be_opened_is_told_of(said: list[str], place: Place) -> None:
    def broken() -> AbstractContextManager[VoteStore]:
        raise StoreError("no store")

    made = DeliveryChannel("slack", {"ops": place}, broken, said.append)
    made.show_request(an_approval(channel="slack", workflow="ops"))
    wait_for(lambda: said)

    assert "no store" in said[0]


def test_a_channel_that_never_asked_stops_at_once(tmp_path: Path, place: Place) -> None:
    made = DeliveryChannel("slack", {"ops": place}, lambda: closing(a_store(tmp_path)), print)
    made.stop()

    assert made._thread is None


def test_a_message_of_a_call_that_was_taken_over_is_left_to_the_gate_that_holds_it(
    tmp_path: Path, desk: ApprovalQueue, place: Place, said: list[str]
) -> None:
    ident = ask(desk)
    wait_for(lambda: place.looks, what="the first poll")
    with closing(a_store(tmp_path, alive=lambda _: False)) as store:
        asked = store.get(ident)
        assert isinstance(asked, Approval)
        other = asked._replace(id="new", owner="gate|other", call_id="other.1", votes=())
        taken = store.ask(other, asked.created_at)
        assert isinstance(taken, Approval)
        assert taken.id == ident
    polled = place.polled.count(ident)
    assert desk.ask("run.2", held(), "ops", time.time()) is None
    second = str(desk.facts("run.2")["approval_id"])
    wait_for(lambda: place.polled.count(second) > 5, what="polls about another call")
    assert place.polled.count(ident) <= polled + 1, "one poll may have been under way"
    assert (place.settled, said) == ([], [])
