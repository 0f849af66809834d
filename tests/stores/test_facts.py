"""Facts of principals in the store, on both engines."""

import time
from collections.abc import Iterator

import pytest
from tests.support.waiting import wait_for

from thoughtgate.errors import StoreError
from thoughtgate.policy.facts import EVERYONE, PRIVATE, UNTRUSTED
from thoughtgate.stores import facts as module
from thoughtgate.stores.database import Database
from thoughtgate.stores.facts import FactStore
from thoughtgate.stores.open_database import StoreLocation, open_database

WINDOW_S = 100.0


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


def rows(database: Database) -> int:
    return int(database.read("SELECT count(*) FROM facts")[0][0])


def establish(store: FactStore, at: float, principal: str = "ann", *facts: str) -> None:
    store.establish(principal, facts or [UNTRUSTED], at, window_s=WINDOW_S, cause="web")


def test_a_fact_holds_for_its_principal_for_at_least_the_window(database: Database) -> None:
    store, at = FactStore(database), time.time()
    establish(store, at)
    assert store.of("ann", at) == frozenset({UNTRUSTED})
    assert store.of("ann", at + WINDOW_S - 1) == frozenset({UNTRUSTED})
    assert store.of("ann", at + WINDOW_S * 1.2) == frozenset()
    assert store.of("bob", at) == frozenset()
    (found,) = store.listed(at)
    assert (found.principal, found.fact, found.cause) == ("ann", UNTRUSTED, "web")


def test_a_busy_agent_renews_a_fact_rarely(database: Database) -> None:
    store, at = FactStore(database), time.time()
    establish(store, at)
    before = database.read("SELECT rev FROM facts")
    for step in range(8):
        establish(store, at + step)
    assert database.read("SELECT rev FROM facts") == before
    establish(store, at + 50.0)
    assert store.of("ann", at + 149.0) == frozenset({UNTRUSTED})


def test_another_gate_knows_a_fact(database: Database, location: StoreLocation) -> None:
    other = open_database(location)
    theirs, at = FactStore(other), time.time()
    assert theirs.of("ann", at) == frozenset()
    establish(FactStore(database), at, "ann", UNTRUSTED, PRIVATE)
    wait_for(
        lambda: theirs.of("ann", time.time()) == frozenset({UNTRUSTED, PRIVATE}),
        10,
        what="both facts",
    )
    other.close()


def test_a_cleared_fact_ends_at_every_gate(database: Database, location: StoreLocation) -> None:
    other = open_database(location)
    ours, theirs, at = FactStore(database), FactStore(other), time.time()
    establish(ours, at, "ann", UNTRUSTED, PRIVATE)
    assert theirs.of("ann", at) == frozenset({UNTRUSTED, PRIVATE})
    assert theirs.clear("ann", [UNTRUSTED], at) == 1
    assert theirs.clear("ann", [UNTRUSTED], at + 0.01) == 0
    wait_for(
        lambda: ours.of("ann", time.time()) == frozenset({PRIVATE}), 10, what="the cleared fact"
    )
    establish(ours, time.time())
    assert ours.of("ann", time.time()) == frozenset({UNTRUSTED, PRIVATE})
    other.close()


@pytest.mark.promise("facts-outlast-results")
def test_a_cleared_fact_is_established_again_by_a_gate_that_never_reads_it(
    database: Database, location: StoreLocation
) -> None:
    other = open_database(location)
    writing, at = FactStore(other), time.time()
    establish(writing, at)
    store = FactStore(database)
    wait_for(lambda: store.of("ann", time.time()), what="the fact at this gate")
    assert store.clear("ann", [UNTRUSTED], time.time()) == 1

    # A database on the network tells the other gate a moment later.
    def again() -> bool:
        establish(writing, time.time())
        return bool(FactStore(database).listed(time.time()))

    wait_for(again, what="the fact in the store again")
    other.close()


def test_facts_that_have_ended_are_removed(database: Database) -> None:
    store, at = FactStore(database), time.time()
    establish(store, at - 10_000.0, "old")
    establish(store, at, "new")
    assert rows(database) == 1


def test_with_too_many_principals_a_fact_holds_for_everyone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PRINCIPALS", 1)
    store, at = FactStore(database), time.time()
    establish(store, at, "ann")
    establish(store, at, "bob", PRIVATE)
    assert store.of("carl", at) == frozenset({PRIVATE})
    assert {one.principal for one in store.listed(at)} == {"ann", EVERYONE}


def test_a_fact_that_cannot_be_stored_is_tried_again_and_holds_here(
    location: StoreLocation,
) -> None:
    database = open_database(location)
    store, at = FactStore(database), time.time()
    database.close()
    for _ in range(2):
        with pytest.raises(StoreError):
            establish(store, at)
    assert store.of("ann", at) is None
