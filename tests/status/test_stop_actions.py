"""Stop orders and facts, for people."""

from contextlib import closing
from pathlib import Path

import pytest

from thoughtgate.errors import UsageError
from thoughtgate.gate.clock import now
from thoughtgate.policy.facts import PRIVATE, UNTRUSTED
from thoughtgate.policy.stops import ALL, SERVER
from thoughtgate.status.stop_actions import (
    MAX_REASON,
    StopActions,
    clear_facts,
    read_facts,
    shown_facts,
    shown_orders,
)
from thoughtgate.stores.facts import FactStore
from thoughtgate.stores.open_database import StoreLocation, open_database


@pytest.fixture
def location(tmp_path: Path) -> StoreLocation:
    return StoreLocation(tmp_path / "state")


def test_orders_are_given_and_removed(location: StoreLocation) -> None:
    actions = StopActions(location)
    actions.stop(SERVER, "git", reason="why", by="terminal:ann")
    actions.stop(ALL, "", reason="why", by="terminal:ann")
    assert [one.target for one in actions.listed()] == ["server git", "all calls"]
    assert [one["scope"] for one in shown_orders(location)] == ["server", "all"]
    assert actions.resume(ALL, "")
    assert not actions.resume(ALL, "")


@pytest.mark.parametrize(("name", "reason"), [("", "why"), ("x" * 513, "why"), ("git", "x" * 501)])
def test_an_order_that_is_not_acceptable_is_refused(
    location: StoreLocation, name: str, reason: str
) -> None:
    assert MAX_REASON < 501
    with pytest.raises(UsageError):
        StopActions(location).stop(SERVER, name, reason=reason, by="terminal:ann")


def test_facts_are_listed_and_cleared(location: StoreLocation) -> None:
    with closing(open_database(location)) as database:
        store = FactStore(database)
        store.establish("ann", [UNTRUSTED, PRIVATE], now(), window_s=60, cause="web")
        store.establish("", [PRIVATE], now(), window_s=60, cause="web")
    assert [(one["principal"], one["fact"]) for one in read_facts(location)] == [
        ("*", PRIVATE),
        ("ann", PRIVATE),
        ("ann", UNTRUSTED),
    ]
    assert clear_facts(location, "*") == 1
    assert clear_facts(location, "ann", [PRIVATE]) == 1
    assert [one["fact"] for one in shown_facts(location)] == [UNTRUSTED]


def test_looking_creates_no_store(location: StoreLocation) -> None:
    assert shown_orders(location) == shown_facts(location) == []
    assert not location.directory.exists()
    (location.directory / "thoughtgate.db").mkdir(parents=True)
    assert shown_orders(location) == shown_facts(location) == []
