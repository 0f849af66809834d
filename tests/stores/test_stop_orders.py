"""Stop orders in the store, on both engines."""

import time
from collections.abc import Iterator

import pytest
from tests.support.approvals import NOW, a_no, a_store, a_yes, put_approval

from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.policy.stops import ALL, PRINCIPAL, SERVER, StopOrder
from thoughtgate.stores import stop_orders as module
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.database import Database
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.stop_orders import StopStore


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


def order(scope: str = SERVER, name: str = "github", reason: str = "incident") -> StopOrder:
    return StopOrder(scope, name, reason, "terminal:ann", time.time())


def test_an_order_is_listed_until_it_is_resumed(database: Database) -> None:
    store = StopStore(database)
    before = database.state()
    assert store.stop(order())
    assert database.state() != before
    (found,) = store.listed()
    assert found[:4] == order()[:4]
    assert abs(found.at - time.time()) < 60
    assert store.resume(SERVER, "github")
    assert store.listed() == ()
    assert not store.resume(SERVER, "github")


def test_a_second_order_for_a_target_replaces_the_first(database: Database) -> None:
    store = StopStore(database)
    store.stop(order(reason="first"))
    store.stop(order(reason="second"))
    assert [one.reason for one in store.listed()] == ["second"]


def test_another_connection_sees_an_order(database: Database, location: StoreLocation) -> None:
    other = open_database(location)
    StopStore(database).stop(order(ALL, ""))
    assert [one.scope for one in StopStore(other).listed()] == [ALL]
    other.close()


def test_there_are_not_too_many_orders(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ORDERS", 1)
    store = StopStore(database)
    assert store.stop(order())
    assert not store.stop(order(PRINCIPAL, "ann"))
    assert store.stop(order(reason="again"))


@pytest.mark.promise("stop-works")
def test_everything_can_be_stopped_however_many_orders_there_are(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ORDERS", 1)
    store = StopStore(database)
    assert store.stop(order())
    assert store.stop(order(ALL, ""))
    assert ALL in [one.scope for one in store.listed()]


@pytest.mark.parametrize("scope", [ALL, SERVER, PRINCIPAL])
def test_a_stopped_call_cannot_be_approved_but_denied(
    location: StoreLocation, database: Database, scope: str
) -> None:
    store: ApprovalStore = a_store(location)
    held = put_approval(store)
    name = {ALL: "", SERVER: held.server, PRINCIPAL: held.principal}[scope]
    StopStore(database).stop(order(scope, name))
    approved = store.vote(held.id, [a_yes()], NOW + 1)
    assert isinstance(approved, Refusal)
    assert approved.kind == "stopped"
    assert "thoughtgate resume" in approved.text
    denied = store.vote(held.id, [a_no()], NOW + 1)
    assert isinstance(denied, Approval)
    store.close()
