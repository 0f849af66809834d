"""A gate killed with SIGKILL between question, decision and execution, and started again.

Whatever the moment: nothing runs twice, nothing runs unapproved, and nothing is lost: each
question is closed, each call can be asked about again, and the record stays sound.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import a_store
from tests.support.shim_peer import ShimPeer
from tests.support.waiting import wait_for
from tests.support.wraps import HOLD, Machine, text_of

from thoughtgate.core.approval import Approval, Refusal, Vote
from thoughtgate.errors import StoreError
from thoughtgate.record.reader import verify_record
from thoughtgate.stores.approvals import ApprovalStore

RULES = """\
schema: 1
default: forward
rules:
  - {tool: delete_note, action: approve}
  - {tool: slow, action: approve}
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    (tmp_path / "state").mkdir(mode=0o700)
    opened = a_store(tmp_path / "state")
    yield opened
    opened.close()


def call(peer: ShimPeer, tool: str = "delete_note") -> None:
    arguments: dict[str, Any] = {"name": "draft"} if tool == "delete_note" else {"seconds": 60}
    params = {"name": tool, "arguments": arguments}
    peer.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def question(store: ApprovalStore) -> Approval:
    return wait_for(lambda: store.listed("pending"), what="the question")[0]


def approve(store: ApprovalStore, ident: str) -> Approval | Refusal:
    now = time.time()
    return store.vote(ident, [Vote("terminal:ann", approve=True, at=now)], now)


def status(store: ApprovalStore, ident: str) -> str:
    if store.has_due(time.time()):
        store.settle_due(time.time())
    found = store.get(ident)
    assert isinstance(found, Approval)
    return found.status


def kill(peer: ShimPeer) -> None:
    os.kill(peer.pid, signal.SIGKILL)
    peer.wait()
    peer.assert_nothing_left()


def approved_while_stopped(peer: ShimPeer, store: ApprovalStore, ident: str) -> bool:
    """Stop the gate and approve; if it was stopped while it wrote to the store, let it go on."""
    os.kill(peer.pid, signal.SIGSTOP)
    try:
        decided = approve(store, ident)
    except StoreError:
        os.kill(peer.pid, signal.SIGCONT)
        return False
    assert isinstance(decided, Approval)
    return True


def killed_when_asked(peer: ShimPeer, store: ApprovalStore) -> tuple[str, int]:
    """The question stands; nobody has answered."""
    call(peer)
    asked = question(store)
    kill(peer)
    return asked.id, 0


def killed_when_decided(peer: ShimPeer, store: ApprovalStore) -> tuple[str, int]:
    """A person has said yes; the gate has not seen it."""
    call(peer)
    asked = question(store)
    wait_for(lambda: approved_while_stopped(peer, store, asked.id), what="the approval")
    kill(peer)
    return asked.id, 0


def killed_when_running(peer: ShimPeer, store: ApprovalStore) -> tuple[str, int]:
    """The server works on the call."""
    call(peer, "slow")
    asked = question(store)
    approve(store, asked.id)
    wait_for(lambda: peer.calls_reached() == ["slow"], what="the call at the server")
    kill(peer)
    return asked.id, 1


def killed_when_over(peer: ShimPeer, store: ApprovalStore) -> tuple[str, int]:
    """The call has its answer."""
    call(peer)
    asked = question(store)
    approve(store, asked.id)
    peer.receive_answer(1)
    kill(peer)
    return asked.id, 1


STEPS = [killed_when_asked, killed_when_decided, killed_when_running, killed_when_over]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_killed_shim_runs_nothing_twice_and_nothing_unapproved(
    tmp_path: Path, store: ApprovalStore, step: Callable[[ShimPeer, ApprovalStore], tuple[str, int]]
) -> None:
    with ShimPeer(tmp_path, RULES) as peer:
        ident, ran = step(peer, store)
        assert len(peer.calls_reached()) == ran
    # Whatever is said now, it is about a caller that is gone.
    assert isinstance(approve(store, ident), Refusal)
    assert status(store, ident) in ({"used"} if ran else {"withdrawn", "void"})

    with ShimPeer(tmp_path, RULES) as again:
        again.ask({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert len(again.calls_reached()) == ran, "a restart must run nothing by itself"
        call(again)
        fresh = question(store)
        assert fresh.id != ident, "the old answer must not answer the new question"
        assert len(again.calls_reached()) == ran
        approve(store, fresh.id)
        assert "result" in again.receive_answer(1)
        assert again.calls_reached()[ran:] == ["delete_note"]
        again.finish()
    assert status(store, fresh.id) == "used"
    assert verify_record(tmp_path / "state" / "audit.jsonl").is_sound


def test_a_killed_wrap_runs_nothing_that_waited(tmp_path: Path) -> None:
    machine = Machine(tmp_path, HOLD)
    machine.write_sample("--log", str(tmp_path / "reached.jsonl"))
    with machine.wrap() as wrapped:
        wrapped.open()
        wrapped.tell_call("delete_note", {"name": "draft"})
        machine.wait_for_event("approval_requested")
        store = a_store(machine.state)
        asked = question(store)
        wrapped.signal(signal.SIGKILL)
        wrapped.wait()
        # The shim may live a moment longer; without its service it forwards nothing.
        approve(store, asked.id)
        wrapped.assert_nothing_left()
        assert isinstance(approve(store, asked.id), Refusal)
    assert "delete_note" not in (tmp_path / "reached.jsonl").read_text()
    assert status(store, asked.id) in {"withdrawn", "void"}

    with machine.wrap() as again:
        again.open()
        again.tell_call("delete_note", {"name": "draft"})
        fresh = question(store)
        assert fresh.id != asked.id
        approve(store, fresh.id)
        assert text_of(again.peer.receive(20.0)["said"]) == "deleted draft"
        again.finish()
    store.close()
    machine.assert_record_is_sound()
