"""The contract of channels: our own pass it, and one that breaks a promise does not."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from tests.support.fake_hook import KEY, Answer, FakeHook, decides
from tests.support.fake_slack import CHANNEL, TOKEN, FakeSlack, failing

from thoughtgate.channels.channel import Channel
from thoughtgate.channels.channel_context import ChannelContext
from thoughtgate.channels.slack import SlackClient, SlackTarget
from thoughtgate.channels.webhook import WebhookClient, WebhookTarget
from thoughtgate.core.approval import Approval, Refusal, Vote
from thoughtgate.testing.channel_contract import ChannelContract, MemoryStore, sample_approval

POLL_S = 0.02


class TestSlack(ChannelContract):
    """The channel ``slack``, before a workspace on this machine."""

    name = "slack"

    @pytest.fixture(autouse=True)
    def _workspace(self) -> Iterator[None]:
        with FakeSlack() as self.slack:
            yield

    def environ(self) -> Mapping[str, str]:
        return {"SLACK_BOT_TOKEN": TOKEN}

    def open_channel(self, context: ChannelContext) -> Channel:
        token = context.environ["SLACK_BOT_TOKEN"]
        target = SlackTarget(CHANNEL, token, poll_s=POLL_S, api_url=self.slack.url)
        return context.deliver(SlackClient(target))

    def shown(self) -> str:
        return json.dumps(list(self.slack.messages.values()))

    def decide(self, approval: Approval, *, approve: bool, reviewer: str) -> None:
        del approval
        self.slack.react(reviewer, "+1" if approve else "-1")

    def break_service(self) -> None:
        self.slack.faults.append(failing(500, b"down"))


class TestWebhook(ChannelContract):
    """The channel ``webhook``, before a hook on this machine."""

    name = "webhook"

    @pytest.fixture(autouse=True)
    def _hook(self) -> Iterator[None]:
        with FakeHook() as self.hook:
            yield

    def environ(self) -> Mapping[str, str]:
        return {"HOOK_KEY": KEY.decode()}

    def open_channel(self, context: ChannelContext) -> Channel:
        target = WebhookTarget(self.hook.url, context.environ["HOOK_KEY"].encode(), POLL_S)
        return context.deliver(WebhookClient(target, refused=context.say))

    def shown(self) -> str:
        # The hook's own system shows what it was told last about each request.
        told = {one["approval"]["id"]: one["approval"] for one in list(self.hook.told)}
        return json.dumps(told)

    def decide(self, approval: Approval, *, approve: bool, reviewer: str) -> None:
        del approval
        self.hook.answer = decides("approve" if approve else "deny", by=reviewer)

    def break_service(self) -> None:
        self.hook.answer = lambda _told, _nonce: Answer(500)


class Board:
    """A service in memory, and a client for it that may break one promise of the contract."""

    poll_s = POLL_S

    def __init__(self, context: ChannelContext, board: dict[str, str], votes: list[Vote]) -> None:
        self.context = context
        self.board = board
        self.votes = votes

    def send_request(self, approval: Approval) -> str:
        self.board[approval.id] = f"{approval.server} {approval.tool} {approval.arguments}"
        return approval.id

    def poll_votes(self, approval: Approval, handle: str) -> Sequence[Vote]:
        del approval, handle
        if "broken" in self.board:
            raise OSError
        return list(self.votes)

    def send_outcome(self, approval: Approval, handle: str) -> None:
        self.board[handle] = f"{approval.tool}: {approval.status}"


class OnBoard(ChannelContract):
    """The contract on the board; tests below break it."""

    name = "board"
    patience_s = 0.5

    def __init__(self, client: type[Board] = Board) -> None:
        self.board: dict[str, str] = {}
        self.votes: list[Vote] = []
        self.client = client
        self.on_vote: Callable[[Vote], None] = lambda _vote: None

    def options(self) -> Mapping[str, Any]:
        return {"api_token": "hunter2"}

    def open_channel(self, context: ChannelContext) -> Channel:
        return context.deliver(self.client(context, self.board, self.votes))

    def shown(self) -> str:
        return json.dumps(dict(self.board))

    def decide(self, approval: Approval, *, approve: bool, reviewer: str) -> None:
        del approval
        self.votes.append(Vote(f"{self.name}:{reviewer}", approve, time.time()))

    def break_service(self) -> None:
        self.board["broken"] = "yes"


class ShowsNothing(Board):
    def send_request(self, approval: Approval) -> str:
        return approval.id


class ForgetsOutcomes(Board):
    def send_outcome(self, approval: Approval, handle: str) -> None:
        pass


class VotesForOthers(Board):
    def poll_votes(self, approval: Approval, handle: str) -> Sequence[Vote]:
        return [vote._replace(by="slack:U1") for vote in super().poll_votes(approval, handle)]


class ApprovesAlways(Board):
    def poll_votes(self, approval: Approval, handle: str) -> Sequence[Vote]:
        return [vote._replace(approve=True) for vote in super().poll_votes(approval, handle)]


class ShowsItsToken(Board):
    def send_request(self, approval: Approval) -> str:
        ident = super().send_request(approval)
        self.board[ident] += self.context.options["api_token"]
        return ident


CHECKS = [name for name in dir(ChannelContract) if name.startswith("test_")]


@pytest.mark.parametrize("check", CHECKS)
def test_a_channel_that_keeps_its_promises_passes(check: str) -> None:
    contract = OnBoard()
    contract.patience_s = 30.0

    getattr(contract, check)()


@pytest.mark.parametrize(
    ("client", "check"),
    [
        (ShowsNothing, "test_a_request_is_shown"),
        (ForgetsOutcomes, "test_the_outcome_is_shown"),
        (ForgetsOutcomes, "test_a_withdrawn_request_is_taken_back"),
        (VotesForOthers, "test_a_vote_is_delivered_once"),
        (ApprovesAlways, "test_a_denial_is_a_denial"),
        (ShowsItsToken, "test_no_secret_is_shown"),
    ],
)
def test_a_client_that_breaks_a_promise_fails(client: type[Board], check: str) -> None:
    with pytest.raises(AssertionError):
        getattr(OnBoard(client), check)()


class Direct:
    """A channel of its own making, in which each promise of a channel can be broken."""

    name = "board"

    def __init__(self, contract: "OnBoard", context: ChannelContext) -> None:
        self.contract = contract
        self.context = context
        self.release = threading.Event()

    def show_request(self, approval: Approval) -> None:
        self.contract.board[approval.id] = approval.tool

    def show_outcome(self, approval: Approval) -> None:
        self.contract.board[approval.id] = approval.status


class Raises(Direct):
    def show_request(self, approval: Approval) -> None:
        raise OSError(approval.id)


class Waits(Direct):
    def show_request(self, approval: Approval) -> None:
        del approval
        self.release.wait(30)


class LeavesAThread(Direct):
    def show_request(self, approval: Approval) -> None:
        super().show_request(approval)
        threading.Thread(target=self.release.wait, args=(30,), daemon=True).start()


class CountsTwice(Direct):
    def show_request(self, approval: Approval) -> None:
        super().show_request(approval)
        self.contract.on_vote = lambda vote: self._bring(approval, vote)

    def _bring(self, approval: Approval, vote: Vote) -> None:
        with self.context.open_store() as store:
            store.vote(approval.id, [vote], time.time())
            store.vote(approval.id, [vote], time.time())


class WithDirect(OnBoard):
    """The contract on a channel without delivery."""

    def __init__(self, make: type[Direct]) -> None:
        super().__init__()
        self.make = make
        self.made: list[Direct] = []

    def open_channel(self, context: ChannelContext) -> Channel:
        self.made.append(self.make(self, context))
        return self.made[-1]

    def decide(self, approval: Approval, *, approve: bool, reviewer: str) -> None:
        del approval
        self.on_vote(Vote(f"{self.name}:{reviewer}", approve, time.time()))


@pytest.mark.parametrize(
    ("make", "check", "words"),
    [
        (Raises, "test_failures_stay_in_the_channel", "raised into the gate"),
        (Waits, "test_a_request_is_shown", "does not return"),
        (LeavesAThread, "test_stopping_ends_its_threads", "have ended"),
        (CountsTwice, "test_a_vote_is_delivered_once", "ann"),
    ],
)
def test_a_channel_that_breaks_a_promise_fails(make: type[Direct], check: str, words: str) -> None:
    contract = WithDirect(make)
    try:
        with pytest.raises(AssertionError, match=words):
            getattr(contract, check)()
    finally:
        for channel in contract.made:
            channel.release.set()


def test_the_store_counts_votes_as_the_real_one_does() -> None:
    store = MemoryStore()
    approval = sample_approval("board")
    vote = Vote("board:ann", approve=True, at=time.time())

    assert isinstance(store.get(approval.id), Refusal)
    assert isinstance(store.vote(approval.id, [vote], time.time()), Refusal)
    store.put(approval)
    counted = store.vote(approval.id, [vote], time.time())
    assert isinstance(counted, Approval)
    assert counted.status == "approved"
    assert isinstance(store.vote(approval.id, [vote], time.time()), Refusal)
    assert [by for by, _ in store.brought] == [approval.id] * 3
    store.keep_handle(approval.id, "board", "h")
    assert store.handle(approval.id, "board") == "h"
