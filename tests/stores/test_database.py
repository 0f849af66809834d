"""What every engine promises to the stores: see the contract in ``stores.database``."""

import threading
from collections.abc import Iterator
from functools import partial

import pytest
from tests.support.waiting import wait_for

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import Database, next_rev
from thoughtgate.stores.open_database import StoreLocation, open_database


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


def test_all_of_a_transaction_is_committed_or_nothing(database: Database) -> None:
    def fail() -> None:
        with database.write() as transaction:
            next_rev(transaction)
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert database.read("SELECT value FROM counter") == [(0,)]
    with database.write(through_power_loss=True) as transaction:
        assert next_rev(transaction) == 1
    assert database.read("SELECT value FROM counter") == [(1,)]


def test_nobody_writes_between_the_reads_and_the_writes_of_a_transaction(
    database: Database, location: StoreLocation
) -> None:
    other = open_database(location)

    def count(engine: Database) -> None:
        for _ in range(50):
            with engine.write() as transaction:
                value = transaction.execute("SELECT value FROM counter").fetchone()[0]
                transaction.execute("UPDATE counter SET value = ?", (value + 1,))

    threads = [threading.Thread(target=count, args=(one,)) for one in (database, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert database.read("SELECT value FROM counter") == [(100,)]
    other.close()


def test_a_transaction_reads_its_own_rows(database: Database) -> None:
    with database.write() as transaction:
        next_rev(transaction)
        assert database.read("SELECT value FROM counter") == [(1,)]


def test_a_change_by_anybody_changes_the_state(database: Database, location: StoreLocation) -> None:
    other = open_database(location)

    def differs(before: tuple[int, int]) -> bool:
        return database.state() != before

    for engine in (other, database):
        before = database.state()
        with engine.write() as transaction:
            next_rev(transaction)
        wait_for(partial(differs, before))
    other.close()


def test_a_closed_store_is_an_error(location: StoreLocation) -> None:
    opened = open_database(location)
    opened.close()
    with pytest.raises(StoreError):
        opened.read("SELECT 1")


def test_owners_that_are_not_processes_count_as_alive(database: Database) -> None:
    assert database.is_alive("task:tg_1")
    assert database.is_alive("policy:x")
