"""The console's desk."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import a_desk, a_no, a_store, held

from thoughtgate.channels.console_channel import identity
from thoughtgate.core.approval import Approval, Refusal, Vote
from thoughtgate.core.grant import Remember
from thoughtgate.status.approval_actions import ApprovalActions, open_approval_actions
from thoughtgate.stores.approvals import ApprovalStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    opened = a_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def desk(store: ApprovalStore) -> ApprovalActions:
    """A console's desk with one question: ``a1``."""
    asking = a_desk(store)
    assert asking.ask("run.1", held(), "default", time.time()) is None
    return ApprovalActions(store)


def test_it_answers_in_the_name_of_the_user(desk: ApprovalActions) -> None:
    decided = desk.decide("a1", approve=True, reason="fine")

    assert isinstance(decided, Approval)
    assert decided.decider is not None
    assert (decided.decider.by, decided.decider.reason) == (identity(), "fine")


def test_pending_and_answered_are_told_apart(desk: ApprovalActions) -> None:
    assert [each.id for each in desk.pending()] == ["a1"]
    assert desk.answered(5) == []
    before = desk.rev()
    desk.decide("a1", approve=False)

    assert desk.rev() > before
    assert desk.pending() == []
    assert [each.status for each in desk.answered(5)] == ["denied"]
    assert desk.answered(0) == []


def test_questions_of_a_gate_that_is_gone_are_closed_by_looking(tmp_path: Path) -> None:
    store = a_store(tmp_path, alive=lambda _: False)
    assert a_desk(store).ask("run.1", held(), "default", time.time()) is None
    desk = ApprovalActions(store)

    assert desk.pending() == []
    assert [each.status for each in desk.answered(5)] == ["withdrawn"]
    found = desk.get("a1")
    assert isinstance(found, Approval)
    assert found.status == "withdrawn"
    desk.close()


def test_only_a_whole_id_is_an_id(desk: ApprovalActions) -> None:
    assert isinstance(desk.get("a1"), Approval)
    assert isinstance(desk.get("a"), Refusal)
    assert isinstance(desk.get("zz"), Refusal)


def test_a_remembered_decision_is_a_grant_that_can_be_revoked(desk: ApprovalActions) -> None:
    desk.decide("a1", approve=True, remember=Remember("session", "tool"))
    (grant,) = desk.grants()

    assert grant.by == identity()
    assert not isinstance(desk.revoke(grant.id), Refusal)
    assert desk.grants() == []
    assert isinstance(desk.revoke(grant.id), Refusal)


def test_others_who_are_known_by_other_means_are_counted(desk: ApprovalActions) -> None:
    now = time.time()
    counted = desk.count("a1", Vote("webhook:ann", approve=True, at=now))

    assert isinstance(counted, Approval)
    assert counted.status == "approved"
    assert isinstance(desk.count("a1", a_no(at=now)), Refusal)


def test_it_opens_the_store_of_a_state_directory(tmp_path: Path) -> None:
    desk = open_approval_actions(str(tmp_path))

    assert desk.pending() == []
    desk.close()
