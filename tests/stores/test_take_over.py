"""The same call asked again after its gate died: the request goes on, once."""

import pytest
from tests.support.approvals import CALL, DEAD, NOW, a_no, a_yes, an_approval, put_approval

from thoughtgate.core.approval import (
    APPROVED,
    DENIED,
    PENDING,
    WITHDRAWN,
    Approval,
    Refusal,
    Vote,
    digest_of,
)
from thoughtgate.stores.approvals import ApprovalStore


def refused(result: Approval | Refusal, kind: str) -> None:
    assert isinstance(result, Refusal), result
    assert result.kind == kind


def test_the_same_call_asked_again_after_its_asker_died_is_taken_over(store: ApprovalStore) -> None:
    put_approval(store, owner=DEAD)
    again = store.ask(an_approval(id="new", owner="gate|new"), NOW + 1)
    assert isinstance(again, Approval)
    assert (again.id, again.owner, again.status) == ("k3f9ab", "gate|new", PENDING)


def test_an_approval_is_taken_over_once_and_whoever_asked_before_cannot_use_it(
    store: ApprovalStore,
) -> None:
    asked = put_approval(store, owner=DEAD)
    if not isinstance(store.vote(asked.id, [a_yes()], NOW + 1), Approval):
        return  # On one machine it was closed.
    taken = put_approval(store, id="new", call_id="other.1", owner="gate|new", now=NOW + 2)
    third = put_approval(store, id="third", call_id="other.2", owner="gate|third", now=NOW + 2)
    assert (taken.id, taken.status, third.status) == (asked.id, APPROVED, PENDING)
    refused(store.use(asked.id, asked.digest, NOW + 3, owner=DEAD), "taken_over")
    used = store.use(asked.id, asked.digest, NOW + 3, owner="gate|new")
    assert isinstance(used, Approval)
    refused(store.use(asked.id, asked.digest, NOW + 3, owner="gate|new"), "too_late")


def test_a_living_askers_question_is_not_taken_over(store: ApprovalStore) -> None:
    put_approval(store)
    again = store.ask(an_approval(id="new", owner="gate|new"), NOW + 1)
    assert isinstance(again, Approval)
    assert again.id == "new"


@pytest.mark.parametrize(
    ("votes", "status"), [((), PENDING), ((a_yes(),), APPROVED), ((a_no(),), DENIED)]
)
def test_a_tasks_question_asked_again_finds_what_was_decided(
    store: ApprovalStore, votes: tuple[Vote, ...], status: str
) -> None:
    put_approval(store, owner="task:tg_1")
    store.vote("k3f9ab", votes, NOW + 1)
    again = store.ask(an_approval(id="new", call_id="later.1", owner="task:tg_1"), NOW + 2)
    assert isinstance(again, Approval)
    assert (again.id, again.status, again.call_id) == ("k3f9ab", status, "later.1")


def test_a_tasks_question_under_another_policy_is_asked_anew(store: ApprovalStore) -> None:
    put_approval(store, owner="task:tg_1")
    changed = an_approval(id="new", owner="task:tg_1", digest=digest_of(CALL, "v2"))
    again = store.ask(changed, NOW + 2)
    assert isinstance(again, Approval)
    assert (again.id, again.status) == ("new", PENDING)
    old = store.get("k3f9ab")
    assert isinstance(old, Approval)
    assert old.status == WITHDRAWN
