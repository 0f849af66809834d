"""Running gates: a row that ends unless it is renewed."""

from collections.abc import Iterator

import pytest

from thoughtgate.stores.database import Database
from thoughtgate.stores.gates import KEEP_S, LIFE_S, GateStore
from thoughtgate.stores.open_database import StoreLocation, open_database

NOW = 1_800_000_000.0


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


def test_a_gate_is_listed_until_it_ends(database: Database) -> None:
    gates = GateStore(database)
    gates.renew("gate|b", NOW, {"kind": "serve"}, NOW)
    gates.renew("gate|a", NOW - 5, {"kind": "proxy"}, NOW)
    gates.renew("gate|b", NOW, {"kind": "serve", "held": 2}, NOW + 5)
    first, second = gates.listed()
    assert (first.owner, second.owner, second.facts) == (
        "gate|a",
        "gate|b",
        {"kind": "serve", "held": 2},
    )
    assert second.expires_at == pytest.approx(database.time(NOW + 5) + LIFE_S, abs=1)
    gates.end("gate|a")
    assert [gate.owner for gate in gates.listed()] == ["gate|b"]


def test_a_gate_that_died_is_forgotten_in_the_end(database: Database) -> None:
    gates = GateStore(database)
    gates.renew("gate|dead", NOW, {}, NOW)
    gates.renew("gate|alive", NOW, {}, NOW + KEEP_S + LIFE_S + 1)
    assert [gate.owner for gate in gates.listed()] == ["gate|alive"]
