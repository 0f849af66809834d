"""A person who decides on changed policies."""

from contextlib import closing
from pathlib import Path

from tests.support.waiting import wait_for

from thoughtgate.core.approval import PENDING, POLICY_KIND, Approval, Vote
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.clock import now


def policy_questions(state: Path) -> list[Approval]:
    """Return the pending questions about changed policies."""
    with closing(open_store(str(state))) as store:
        return [one for one in store.listed(PENDING) if one.kind == POLICY_KIND]


def decide_change(state: Path, *, approve: bool = True) -> Approval:
    """Wait for the question about a changed policy and answer it; return the question."""
    (question,) = wait_for(lambda: policy_questions(state), what="the question about the policy")
    with closing(open_store(str(state))) as store:
        decided = store.vote(question.id, [Vote("terminal:ann", approve, now())], now())
    assert isinstance(decided, Approval), decided
    return question
