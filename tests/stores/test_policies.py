"""Accepted and offered policies in the shared file."""

from collections.abc import Iterator

import pytest
from tests.support.approvals import NOW, an_approval

from thoughtgate.core.approval import PENDING, USED, Approval, Vote
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.policies import PolicyFile, PolicyStore, digest_of_texts

PATH = "/home/ann/thoughtgate.yaml"


def policy(text: str, path: str = PATH) -> PolicyFile:
    return PolicyFile.of(path, {path: text})


def question(file: PolicyFile, ident: str = "aaaaaa", digest: str = "d") -> Approval:
    return an_approval(
        id=ident,
        digest=digest,
        server="thoughtgate",
        kind="policy",
        tool=file.path,
        arguments="{}",
        remember=False,
        owner=f"policy:{file.digest}",
    )


@pytest.fixture
def approvals(location: StoreLocation) -> Iterator[ApprovalStore]:
    store = ApprovalStore(open_database(location))
    yield store
    store.close()


@pytest.fixture
def policies(approvals: ApprovalStore) -> PolicyStore:
    return approvals.policies()


def test_nothing_is_accepted_at_first(policies: PolicyStore) -> None:
    assert policies.accepted(PATH) is None


def test_what_was_accepted_last_counts(policies: PolicyStore) -> None:
    policies.accept(policy("one"), "terminal:ann", NOW)
    policies.accept(policy("two"), "terminal:bob", NOW + 1)

    found = policies.accepted(PATH)

    assert found is not None
    assert found.file == policy("two")
    assert (found.by, found.at) == ("terminal:bob", NOW + 1)
    assert found.rev == policies.rev()


def test_only_the_first_use_accepts(policies: PolicyStore) -> None:
    assert policies.accept_first(policy("one"), "first use", NOW)
    assert not policies.accept_first(policy("two"), "first use", NOW)
    assert policies.accept_first(policy("two", "/other.yaml"), "first use", NOW)

    found = policies.accepted(PATH)
    assert found is not None
    assert found.file == policy("one")


def test_a_gate_replaces_only_what_it_has_in_force(policies: PolicyStore) -> None:
    policies.accept(policy("one"), "terminal:ann", NOW)

    assert not policies.replace(policy("other").digest, policy("two"), "x", NOW)
    assert policies.replace(policy("one").digest, policy("two"), "x", NOW)
    found = policies.accepted(PATH)
    assert found is not None
    assert found.file == policy("two")


def test_an_approved_question_accepts_what_it_offered(approvals: ApprovalStore) -> None:
    policies = approvals.policies()
    policies.offer(policy("new"), NOW)
    asked = approvals.ask_standing(question(policy("new")), NOW)
    assert isinstance(asked, Approval)

    approvals.vote(asked.id, [Vote("console:ann", approve=True, at=NOW)], NOW)

    found = policies.accepted(PATH)
    assert found is not None
    assert (found.file, found.by) == (policy("new"), "console:ann")
    stored = approvals.get(asked.id)
    assert isinstance(stored, Approval)
    assert stored.status == USED


def test_an_offer_that_was_replaced_is_not_accepted(approvals: ApprovalStore) -> None:
    policies = approvals.policies()
    policies.offer(policy("new"), NOW)
    asked = approvals.ask_standing(question(policy("new")), NOW)
    assert isinstance(asked, Approval)
    policies.accept(policy("other"), "terminal:bob", NOW)

    approvals.vote(asked.id, [Vote("console:ann", approve=True, at=NOW)], NOW)

    found = policies.accepted(PATH)
    assert found is not None
    assert found.file == policy("other")


def test_the_same_change_is_asked_about_once(approvals: ApprovalStore) -> None:
    first = approvals.ask_standing(question(policy("new")), NOW)
    second = approvals.ask_standing(question(policy("new"), "bbbbbb"), NOW)
    taken = approvals.ask_standing(question(policy("new")), NOW)

    assert isinstance(first, Approval)
    assert second == first
    assert not isinstance(taken, Approval)
    assert len(approvals.listed(PENDING)) == 1


def test_another_change_of_the_file_withdraws_the_question(approvals: ApprovalStore) -> None:
    approvals.ask_standing(question(policy("new")), NOW)
    approvals.ask_standing(question(policy("newer"), "bbbbbb", "e"), NOW)
    elsewhere = policy("new", "/other.yaml")
    approvals.ask_standing(question(elsewhere, "cccccc"), NOW)

    assert [one.id for one in approvals.listed(PENDING)] == ["bbbbbb", "cccccc"]


def test_a_denied_change_stays_denied_until_another_policy_is_accepted(
    approvals: ApprovalStore,
) -> None:
    asked = approvals.ask_standing(question(policy("new")), NOW)
    assert isinstance(asked, Approval)
    denied = approvals.vote(asked.id, [Vote("console:ann", approve=False, at=NOW)], NOW)

    assert approvals.ask_standing(question(policy("new"), "bbbbbb"), NOW) == denied
    approvals.policies().accept(policy("other"), "terminal:bob", NOW)
    again = approvals.ask_standing(question(policy("new"), "cccccc"), NOW)
    assert isinstance(again, Approval)
    assert again.status == PENDING


def test_a_question_that_nobody_answered_can_be_asked_again(approvals: ApprovalStore) -> None:
    approvals.ask_standing(question(policy("new")), NOW)
    late = question(policy("new"), "bbbbbb")._replace(expires_at=NOW + 2000)

    again = approvals.ask_standing(late, NOW + 1000)

    assert isinstance(again, Approval)
    assert again.id == "bbbbbb"


def test_the_digest_tells_names_and_texts_apart() -> None:
    assert digest_of_texts({"a": "bc"}) != digest_of_texts({"ab": "c"})
    assert digest_of_texts({"a": "1", "b": "2"}) == digest_of_texts({"b": "2", "a": "1"})
