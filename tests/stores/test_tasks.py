"""Tasks that outlive the gate."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import NOW
from tests.support.postgres import PostgresServer
from tests.support.tasks import a_task

from thoughtgate.core.task import CANCELLED, COMPLETED, HELD, RUNNING
from thoughtgate.stores.engines.postgres import PostgresDatabase, connection_info
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.tasks import TaskStore, new_task_id


@pytest.fixture
def store(location: StoreLocation) -> Iterator[TaskStore]:
    database = open_database(location)
    yield TaskStore(database)
    database.close()


def test_a_task_is_found_again_by_another_process_as_it_was(
    store: TaskStore, location: StoreLocation
) -> None:
    task = a_task(note="wartet…", modern=True)
    assert store.save(task)
    again = open_database(location)
    assert TaskStore(again).load() == [task]
    again.close()


def test_tasks_are_loaded_by_server(store: TaskStore) -> None:
    store.save(a_task())
    store.save(a_task(id="tg_2", server="other"))
    assert [task.id for task in store.load("other")] == ["tg_2"]
    assert len(store.load()) == 2


def test_a_task_is_started_by_one_gate_and_ended_once(store: TaskStore) -> None:
    store.save(a_task(phase=HELD))
    assert store.save(a_task(phase=RUNNING))
    assert store.save(a_task(phase=COMPLETED))
    for phase in (HELD, RUNNING, CANCELLED):
        assert not store.save(a_task(phase=phase))
    assert store.load()[0].phase == COMPLETED


def test_a_forgotten_task_is_gone(store: TaskStore) -> None:
    store.save(a_task())
    store.forget("tg_1")
    assert store.load() == []


def test_tasks_past_their_time_are_purged(store: TaskStore) -> None:
    store.save(a_task())
    store.save(a_task(id="tg_2", ttl_s=9000.0))
    assert store.purge(NOW + 600) == 1
    assert [task.id for task in store.load()] == ["tg_2"]


def test_task_ids_cannot_be_guessed_and_fit_a_header() -> None:
    ids = {new_task_id() for _ in range(100)}
    assert len(ids) == 100
    for each in ids:
        assert each.startswith("tg_")
        assert len(each) - 3 >= 120 / 5
        assert each[3:].isalnum()
        assert each.isascii()


def of_gate(directory: StoreLocation, owner: str, gate: str = "proxy") -> TaskStore:
    alive = {"first", "second"}
    return TaskStore(open_database(directory), gate, owner, alive=lambda name: name in alive)


def test_only_what_no_living_process_carries_is_taken_over_and_once(
    location: StoreLocation,
) -> None:
    dead, first, second = (of_gate(location, name) for name in ("dead", "first", "second"))
    other = of_gate(location, "dead", gate="serve")
    dead.save(a_task())
    dead.save(a_task(id="tg_old", ttl_s=60.0))
    other.save(a_task(id="tg_2"))
    first.save(a_task(id="tg_3"))
    assert [task.id for task in second.take_over(NOW + 61)] == ["tg_1"]
    assert first.take_over(NOW + 61) == second.take_over(NOW + 61) == []
    assert first.find("tg_old") is None
    for store in (dead, first, second, other):
        store.close()


def test_every_process_of_a_gate_sees_its_tasks_and_what_became_of_them(
    location: StoreLocation,
) -> None:
    first, second = of_gate(location, "first"), of_gate(location, "second")
    other = of_gate(location, "first", gate="serve")
    first.save(a_task())
    assert second.changed()
    assert not second.changed()
    assert second.find("tg_1") == a_task()
    assert other.find("tg_1") is None
    assert second.of_principal("ann") == [a_task()]
    assert second.of_principal("bob") == other.of_principal("ann") == []
    assert second.save(a_task(phase=CANCELLED))
    assert first.changed()
    assert not first.save(a_task(phase=RUNNING))
    for store in (first, second, other):
        store.close()


def test_whoever_lost_a_task_can_no_longer_save_it_but_callers_cancel_anywhere(
    location: StoreLocation,
) -> None:
    dead, first, second = (of_gate(location, name) for name in ("dead", "first", "second"))
    dead.save(a_task())
    assert first.has_orphans()
    assert [task.id for task in first.take_over(NOW)] == ["tg_1"]
    assert not second.has_orphans()
    for phase in (HELD, RUNNING, COMPLETED):
        assert not dead.save(a_task(phase=phase)), "it was taken over"
        assert not second.save(a_task(phase=phase)), "it belongs to another process"
    dead.forget("tg_1")
    assert first.save(a_task(phase=RUNNING))
    assert second.save(a_task(phase=CANCELLED))
    assert not first.save(a_task(phase=COMPLETED))
    second.forget("tg_1")
    assert first.find("tg_1") is None
    for store in (dead, first, second):
        store.close()


def test_a_process_does_not_take_over_its_own_tasks(location: StoreLocation) -> None:
    dead = of_gate(location, "dead")
    dead.save(a_task())
    assert not dead.has_orphans()
    assert dead.take_over(NOW) == []
    dead.close()


def test_a_minute_between_clocks_changes_no_task(postgres: PostgresServer) -> None:
    url = postgres.url()
    ahead = PostgresDatabase(*connection_info(url), clock=lambda: time.time() + 60)
    ahead.migrate()
    exact = open_database(StoreLocation(Path(), url))
    now = time.time()
    made = a_task(created_at=now + 60, updated_at=now + 60)
    TaskStore(ahead, "proxy", "first").save(made)
    found = TaskStore(exact, "proxy", "second").find(made.id)
    assert found is not None
    assert found.created_at == pytest.approx(now, abs=2)
    assert found.expires_at == pytest.approx(now + made.ttl_s, abs=2)
    assert TaskStore(exact, "proxy", "second").purge(now + made.ttl_s - 5) == 0
    for database in (ahead, exact):
        database.close()
