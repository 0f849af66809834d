"""What a package's channel is made with."""

import contextlib
import time
from collections.abc import Sequence

from tests.support.waiting import wait_for

from thoughtgate.channels.channel import Stoppable
from thoughtgate.channels.channel_context import ChannelContext
from thoughtgate.core.approval import Approval, Vote
from thoughtgate.testing.channel_contract import WORKFLOW, MemoryStore, sample_approval


class Client:
    """Approves everything at once."""

    poll_s = 0.01

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def send_request(self, approval: Approval) -> str:
        return approval.id

    def poll_votes(self, approval: Approval, handle: str) -> Sequence[Vote]:
        del approval, handle
        return [Vote("pigeon:ann", approve=True, at=time.time())]

    def send_outcome(self, approval: Approval, handle: str) -> None:
        del handle
        self.outcomes.append(approval.status)


def test_a_client_is_made_a_channel_of_its_workflow() -> None:
    store, client, said = MemoryStore(), Client(), list[str]()
    context = ChannelContext(
        "pigeon", WORKFLOW, {}, {}, lambda: contextlib.nullcontext(store), said.append
    )
    channel = context.deliver(client)
    assert isinstance(channel, Stoppable)
    approval = sample_approval("pigeon")
    store.put(approval)

    channel.show_request(approval._replace(workflow="other"))
    channel.show_request(approval)
    wait_for(lambda: store.brought)
    channel.show_outcome(approval._replace(status="approved"))
    channel.stop()

    assert client.outcomes == ["approved"]
    assert said == []


def test_what_may_be_secret_is_not_printed() -> None:
    context = ChannelContext(
        "pigeon",
        WORKFLOW,
        {},
        {"TOKEN": "hunter2"},
        lambda: contextlib.nullcontext(MemoryStore()),
        print,
    )

    assert "hunter2" not in repr(context)
