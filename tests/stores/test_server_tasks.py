"""Owners of servers' tasks, on every engine."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from thoughtgate.stores.database import Database
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.server_tasks import KEPT_S, ServerTaskStore

NOW = 1_800_000_000.0


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


def test_the_first_principal_keeps_a_task_at_every_gate(
    database: Database, location: StoreLocation
) -> None:
    ServerTaskStore(database).add("files", "t", "ann", NOW)
    elsewhere = ServerTaskStore(open_database(location))
    elsewhere.add("files", "t", "bob", NOW)

    assert elsewhere.owner("files", "t", NOW) == "ann"
    assert elsewhere.owner("other", "t", NOW) is None
    assert elsewhere.owner("files", "u", NOW) is None
    elsewhere.close()


def test_owners_are_bounded_in_time_and_number(database: Database) -> None:
    tasks = ServerTaskStore(database, max_owned=2)
    for number in range(3):
        tasks.add("files", f"t{number}", "ann", NOW + number)
    tasks.add("files", "of-bob", "bob", NOW)

    owners = [tasks.owner("files", f"t{number}", NOW + 3) for number in range(3)]
    assert owners == [None, "ann", "ann"]
    assert tasks.owner("files", "of-bob", NOW + 3) == "bob"
    assert tasks.owner("files", "t2", NOW + 2 + KEPT_S) is None
    tasks.add("files", "new", "ann", NOW + 3 + KEPT_S)
    assert len(database.read("SELECT id FROM server_tasks")) == 1


def test_many_tasks_are_looked_up_with_few_queries(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = ServerTaskStore(database)
    tasks.add("files", "t7", "ann", NOW)
    tasks.add("files", "t1199", "bob", NOW)
    asked: list[str] = []
    read = database.read

    def count(query: str, values: Sequence[Any] = ()) -> list[Any]:
        asked.append(query)
        return read(query, values)

    monkeypatch.setattr(database, "read", count)

    found = tasks.owners("files", [f"t{number % 1200}" for number in range(20_000)], NOW)

    assert found == {"t7": "ann", "t1199": "bob"}
    assert len(asked) == 3
