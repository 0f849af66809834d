"""Long arguments in parts: stored whole, read one part at a time, deleted with age."""

from collections.abc import Iterator

import pytest
from tests.support.approvals import NOW, a_no, a_store, a_yes, an_approval

from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.stores.approvals import KEEP_S, ApprovalStore
from thoughtgate.stores.argument_parts import MAX_KEPT, PART, read_part, write_parts
from thoughtgate.stores.database import Database, Transaction
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.process_owner import own_name


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


@pytest.fixture
def store(location: StoreLocation) -> Iterator[ApprovalStore]:
    opened = a_store(location)
    yield opened
    opened.close()


def parts(database: Database, approval: str) -> list[str]:
    rows = database.read(
        "SELECT text FROM argument_parts WHERE approval = ? ORDER BY part", (approval,)
    )
    return [read_part(blob) for (blob,) in rows]


@pytest.mark.parametrize("length", [0, 1, PART - 1, PART, PART + 1, 3 * PART + 7])
def test_a_text_is_stored_whole(database: Database, length: int) -> None:
    text = ("äö" * length)[:length]
    with database.write() as connection:
        write_parts(connection, "k3f9ab", text)

    assert "".join(parts(database, "k3f9ab")) == text
    assert all(len(part) <= PART for part in parts(database, "k3f9ab"))


def test_the_oldest_parts_of_closed_approvals_are_deleted(database: Database) -> None:
    def fill(connection: Transaction) -> None:
        connection.executemany(
            "INSERT INTO argument_parts (approval, part, text) VALUES (?, ?, ?)",
            [(f"old{number}", 0, b"") for number in range(MAX_KEPT + 5)],
        )

    with database.write() as connection:
        fill(connection)
        write_parts(connection, "new", "x")

    (kept,) = database.read("SELECT count(*), min(number) FROM argument_parts")
    assert kept == (MAX_KEPT + 1, 6)


def test_long_arguments_are_kept_beside_the_approval_and_deleted_with_it(
    store: ApprovalStore,
) -> None:
    whole = '{"a":"' + "x" * 100_000 + '"}'
    asked = store.ask(an_approval(folded=True, owner=own_name()), NOW, whole=whole)
    assert isinstance(asked, Approval)

    assert store.argument_parts(asked.id) == 2
    assert "".join(store.whole_arguments(asked)) == whole
    assert store.argument_part(asked.id, 7) == ""
    store.withdraw(asked.id, "gone", NOW)
    store.purge(NOW + KEEP_S + 1)
    assert store.argument_parts(asked.id) == 0
    assert list(store.whole_arguments(asked)) == [asked.arguments]


def test_shortened_arguments_without_the_whole_text_cannot_be_approved(
    store: ApprovalStore,
) -> None:
    store.ask(an_approval(folded=True, owner=own_name()), NOW)

    refused = store.vote("k3f9ab", [a_yes()], NOW + 1)
    assert isinstance(refused, Refusal)
    assert refused.kind == "incomplete"
    denied = store.vote("k3f9ab", [a_no()], NOW + 1)
    assert isinstance(denied, Approval)
    assert denied.status == "denied"


@pytest.mark.promise("keys-never-change-meaning")
def test_a_vote_on_a_call_that_was_not_shown_is_refused(store: ApprovalStore) -> None:
    asked = store.ask(an_approval(owner=own_name()), NOW)
    assert isinstance(asked, Approval)

    refused = store.vote(asked.id, [a_yes()], NOW + 1, digest="0" * 64)
    assert isinstance(refused, Refusal)
    assert refused.kind == "not_this"
    assert isinstance(store.vote(asked.id, [a_yes()], NOW + 1, digest=asked.digest), Approval)
