"""The person who answers approval requests, through the gate's own store."""

import contextlib
import time
from typing import Final

from tests.faces.face import Gate

from thoughtgate.core.approval import PENDING, Approval, Refusal, Vote
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.stores.approvals import ApprovalStore

PERSON: Final = "terminal:ann"
REASON: Final = "as the scenario says"


def pending(gate: Gate, mark: str) -> Approval | None:
    """Return the pending approval request about a call, if there is one."""
    with contextlib.closing(open_store(str(gate.state))) as store:
        return _asked(store, mark)


def _asked(store: ApprovalStore, mark: str) -> Approval | None:
    return next((each for each in store.listed(PENDING) if mark in each.arguments), None)


def wait_until_asked(gate: Gate, mark: str) -> Approval:
    """Wait for the approval request about a call."""
    with contextlib.closing(open_store(str(gate.state))) as store:
        asked: Approval = gate.wait(
            lambda: _asked(store, mark), f"an approval request about {mark!r}"
        )
    return asked


def wait_until_withdrawn(gate: Gate, mark: str) -> None:
    """Wait until nobody is asked about a call any more."""
    with contextlib.closing(open_store(str(gate.state))) as store:
        gate.wait(
            lambda: _asked(store, mark) is None, f"the withdrawal of the request about {mark!r}"
        )


def vote(gate: Gate, asked: Approval, *, approve: bool) -> Approval | Refusal:
    """Answer an approval request, perhaps too late."""
    now = time.time()
    with contextlib.closing(open_store(str(gate.state))) as store:
        return store.vote(asked.id, [Vote(PERSON, approve, now, REASON)], now)


def decide(gate: Gate, mark: str, *, approve: bool) -> None:
    """Answer the approval request about a call, once it is there."""
    said = vote(gate, wait_until_asked(gate, mark), approve=approve)
    assert isinstance(said, Approval), said
