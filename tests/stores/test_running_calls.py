"""Approved calls that run: noted with the use of their approval, claimed if their gate dies."""

from collections.abc import Iterator

import pytest
from tests.support.approvals import NOW, a_yes, an_approval

from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.database import Database
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.process_owner import own_name
from thoughtgate.stores.running_calls import LostCall, RunningCalls

DEAD = "gate|m|b|n|1|-"


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


def use(database: Database, runner: str) -> Approval:
    store = ApprovalStore(database, alive=lambda _: True)
    asked = store.ask(an_approval(), NOW)
    assert isinstance(asked, Approval)
    store.vote(asked.id, [a_yes()], NOW)
    used = store.use(asked.id, asked.digest, NOW + 1, runner=runner)
    assert isinstance(used, Approval)
    assert isinstance(store.use(asked.id, asked.digest, NOW + 2, runner=runner), Refusal)
    return used


def test_a_call_is_noted_once_and_ends(database: Database) -> None:
    used = use(database, own_name())
    assert database.read("SELECT approval, owner FROM running_calls") == [(used.id, own_name())]
    RunningCalls(database).end([used.id, "other"])
    assert database.read("SELECT approval FROM running_calls") == []


def test_nothing_is_noted_without_a_runner(database: Database) -> None:
    use(database, "")
    assert database.read("SELECT approval FROM running_calls") == []


def test_only_calls_of_dead_gates_are_claimed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = use(database, DEAD)
    monkeypatch.setattr(database, "is_alive", lambda _: True)
    assert RunningCalls(database).claim("gate|me") == []
    monkeypatch.setattr(database, "is_alive", lambda owner: owner != DEAD)
    (lost,) = RunningCalls(database).claim("gate|me")
    assert lost._replace(used_at=0.0) == LostCall(
        used.id, used.call_id, used.server, used.tool, 0.0
    )
    assert lost.used_at == pytest.approx(NOW + 1, abs=1)
    assert RunningCalls(database).claim("gate|other") == []
