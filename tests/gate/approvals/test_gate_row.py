"""The row of a running gate: there before its first call, renewed by a thread, gone at the end."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_for

from thoughtgate.errors import StoreError
from thoughtgate.gate.approvals import gate_row as module
from thoughtgate.gate.approvals.gate_row import GateRow
from thoughtgate.stores.engines.postgres import PostgresDatabase, open_postgres
from thoughtgate.stores.gates import GateStore, RunningGate
from thoughtgate.stores.process_owner import own_name

FACTS = {
    "kind": "proxy",
    "config": "/etc/thoughtgate.yaml",
    "governed": {"pid": 1, "terminal": "/dev/pts/0"},
    "policies": [],
    "server": "",
}


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


def rows(database: PostgresDatabase) -> list[RunningGate]:
    return GateStore(database).listed()


def test_a_row_is_there_at_once_with_what_others_may_know(postgres: PostgresServer) -> None:
    url = postgres.url()
    database, others = open_postgres(url), open_postgres(url)
    row = GateRow(database, print, lambda: {"held": 3})
    assert not others.is_alive(own_name())

    row.announce(FACTS)

    (found,) = rows(others)
    assert found.owner == own_name()
    assert others.is_alive(own_name())
    assert found.facts["held"] == 3
    assert found.facts["pid"] == os.getpid()
    assert set(found.facts) == {"host", "pid", "version", "kind", "config", "held"}
    row.end()
    assert rows(others) == []
    assert not others.is_alive(own_name())
    others.close()


def test_a_row_is_renewed_with_new_facts(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.05)
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    url = postgres.url()
    others = open_postgres(url)
    details: dict[str, Any] = {"held": 0}
    row = GateRow(open_postgres(url), print, lambda: dict(details))
    row.announce(FACTS)
    (first,) = rows(others)

    details["held"] = 2
    row.announce({**FACTS, "url": "http://127.0.0.1:8080/mcp"})

    def renewed() -> bool:
        (found,) = rows(others)
        changed = (found.facts["held"], found.facts.get("url")) == (2, "http://127.0.0.1:8080/mcp")
        return changed and found.expires_at > first.expires_at

    wait_for(renewed, what="a renewed row")
    row.end()
    others.close()


def test_a_store_that_goes_and_comes_back_is_told_once_each(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.05)
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    said: list[str] = []
    url = own_server.url()
    row = GateRow(open_postgres(url), said.append, dict)
    row.announce(FACTS)

    own_server.stop()
    wait_for(lambda: said, what="the message that the store is away")
    own_server.start()
    wait_for(lambda: len(said) > 1, what="the message that it is back")

    assert len(said) == 2
    assert "refused until it is back" in said[0]
    assert "reached again" in said[1]
    others = open_postgres(url)
    wait_for(lambda: others.is_alive(own_name()), what="the renewed row")
    others.close()
    row.end()
    assert len(said) == 2


def test_a_row_that_cannot_be_added_is_an_error(own_server: PostgresServer) -> None:
    row = GateRow(open_postgres(own_server.url()), print, dict)
    own_server.stop()

    with pytest.raises(StoreError):
        row.announce(FACTS)
    row.end()
