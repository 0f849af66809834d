"""A gate follows the stop orders in its store."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_for

from thoughtgate.core.record_events import Record
from thoughtgate.gate.orders.stop_watch import StopWatch
from thoughtgate.policy.stops import ALL, SERVER, StopOrder, Stops
from thoughtgate.stores.database import Database
from thoughtgate.stores.engines.sqlite import FILE_NAME
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.stop_orders import StopStore


class Gate:
    """What the watch tells a gate."""

    def __init__(self, database: Database) -> None:
        self.said: list[str] = []
        self.watch = StopWatch(database, self.said.append)
        self.stops = Stops()
        self.notes: list[Record] = []

    def look(self) -> Stops:
        self.watch.look(time.time(), self._apply, self.notes.append)
        return self.stops

    def _apply(self, stops: Stops) -> None:
        self.stops = stops

    def told(self) -> list[tuple[str, str, str]]:
        bodies = (note.body["stop"] for note in self.notes)
        return [(body["change"], body["scope"], body["name"]) for body in bodies]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path)
    yield opened
    opened.close()


def order(scope: str = SERVER, name: str = "github", reason: str = "incident") -> StopOrder:
    return StopOrder(scope, name, reason, "terminal:ann", time.time())


def elsewhere(tmp_path: Path) -> StopStore:
    return StopStore(open_database(tmp_path))


def test_an_order_is_applied_and_recorded_once(tmp_path: Path, database: Database) -> None:
    gate = Gate(database)
    assert not gate.look()
    elsewhere(tmp_path).stop(order())
    assert gate.look().find("github", "ann") is not None
    gate.look()
    assert gate.told() == [("stopped", "server", "github")]
    assert gate.notes[0].server == "github"
    assert gate.notes[0].body["stop"]["ordered_by"] == "terminal:ann"
    elsewhere(tmp_path).resume(SERVER, "github")
    assert not gate.look()
    assert gate.told()[1:] == [("resumed", "server", "github")]


def test_an_order_from_before_the_start_applies(tmp_path: Path, database: Database) -> None:
    elsewhere(tmp_path).stop(order(ALL, ""))
    gate = Gate(database)
    assert gate.look()
    assert gate.told() == [("stopped", "all", "")]


def test_a_changed_reason_is_recorded_as_a_new_order(tmp_path: Path, database: Database) -> None:
    gate = Gate(database)
    elsewhere(tmp_path).stop(order())
    gate.look()
    elsewhere(tmp_path).stop(order(reason="token ghp_" + "a" * 36))
    gate.look()
    assert [change for change, *_ in gate.told()] == ["stopped", "stopped"]
    assert "a" * 36 not in gate.notes[1].body["stop"]["reason"]


def test_another_file_in_the_place_of_the_store_stops_everything(
    tmp_path: Path, database: Database
) -> None:
    gate = Gate(database)
    gate.look()
    (tmp_path / FILE_NAME).rename(tmp_path / "old.db")
    assert not gate.look(), "without a file nobody can have given an order"
    elsewhere(tmp_path).stop(order())
    stops = gate.look()
    assert stops.is_unreadable
    assert gate.told() == []
    gate.look()
    [said] = gate.said
    assert "another file is in the place of the state database" in said


def test_a_store_that_fails_stops_everything_and_orders_stay(
    tmp_path: Path, database: Database
) -> None:
    gate = Gate(database)
    elsewhere(tmp_path).stop(order())
    gate.look()
    database.close()
    stops = gate.look()
    assert stops.is_unreadable
    assert stops.find("github", "ann") is not None
    assert gate.told() == [("stopped", "server", "github")]


def test_a_shared_store_is_read_by_a_thread_and_may_go_away(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    location = StoreLocation(tmp_path, postgres.url())
    database, other = open_database(location), open_database(location)
    gate = Gate(database)

    def is_stopped() -> bool:
        gate.watch.refresh()
        return bool(gate.look())

    StopStore(other).stop(order())
    wait_for(is_stopped, 10, what="the order")
    database.close()
    gate.watch.refresh()
    assert gate.look().find("github", "ann") is not None
    assert not gate.stops.is_unreadable
    other.close()
