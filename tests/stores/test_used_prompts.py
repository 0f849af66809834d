"""Used states of prompts: inserted once, on every engine, until they would have expired."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import Database
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.used_prompts import UsedPrompts

NOW = 1_800_000_000.0


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


def test_a_state_is_used_once(database: Database) -> None:
    used = UsedPrompts(database)
    assert used.mark("a", NOW + 600, NOW)
    assert not used.mark("a", NOW + 600, NOW + 1)
    assert used.mark("b", NOW + 600, NOW + 1)


def test_gates_that_use_a_state_at_once_do_so_once(location: StoreLocation) -> None:
    databases = [open_database(location) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for number in range(20):
            marked = pool.map(
                lambda one, nonce=f"n{number}": UsedPrompts(one).mark(nonce, NOW + 600, NOW),
                databases,
            )
            assert sum(marked) == 1
    for each in databases:
        each.close()


def test_a_state_is_forgotten_when_it_has_expired(database: Database) -> None:
    used = UsedPrompts(database)
    used.mark("a", NOW + 600, NOW)
    used.mark("b", NOW + 1200, NOW + 601)
    assert database.read("SELECT nonce FROM used_prompts") == [("b",)]


def test_a_store_that_is_closed_marks_nothing(location: StoreLocation) -> None:
    database = open_database(location)
    database.close()
    with pytest.raises(StoreError):
        UsedPrompts(database).mark("a", NOW + 600, NOW)


def test_times_are_converted_to_those_of_the_store(database: Database) -> None:
    assert UsedPrompts(database).time(NOW) == database.time(NOW)
