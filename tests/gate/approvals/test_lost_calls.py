"""A gate that died while an approved call ran: another one records that its outcome is unknown."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.support.approvals import a_desk, a_yes, held
from tests.support.postgres import PostgresServer

from thoughtgate.core.record_events import CALL_END, OUTCOME_UNKNOWN, Record
from thoughtgate.gate.approvals import lost_calls as module
from thoughtgate.gate.approvals.lost_calls import MESSAGE, LostCalls
from thoughtgate.gate.approvals.queue import ApprovalQueue
from thoughtgate.gate.clock import now
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.engines.postgres import PostgresDatabase, open_postgres
from thoughtgate.stores.gates import GateStore


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[PostgresDatabase]:
    with closing(open_postgres(postgres.url())) as opened:
        yield opened


def a_gate(database: PostgresDatabase, name: str) -> ApprovalQueue:
    GateStore(database).renew(f"gate|{name}", now(), {}, now())
    return a_desk(ApprovalStore(database), owner=f"gate|{name}")


def run(desk: ApprovalQueue, database: PostgresDatabase, call_id: str) -> None:
    """Have a call approved, and use the approval."""
    assert desk.ask(call_id, held(), "default", now()) is None
    (asked,) = ApprovalStore(database).listed("pending")
    ApprovalStore(database).vote(asked.id, [a_yes(at=now())], now())
    assert len(desk.poll(now())) == 1
    assert desk.use(call_id) is None


def test_a_call_of_a_gate_that_died_is_recorded_once(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.0)
    dead, first, second = (a_gate(database, name) for name in ("dead", "first", "second"))
    run(dead, database, "dead.1")
    events: list[Record] = []
    said: list[str] = []
    watchers = [LostCalls(desk, events.append, said.append) for desk in (first, second)]
    for each in watchers:
        each.settle()
    assert events == [], "its gate is alive"

    GateStore(database).end("gate|dead")
    for each in watchers * 2:
        each.settle()

    (event,) = events
    assert (event.type, event.body["call"]["call_id"]) == (CALL_END, "dead.1")
    assert event.body["error"]["kind"] == OUTCOME_UNKNOWN
    assert len(said) == 1
    assert MESSAGE in said[0]
    # It stays claimed until its end is on the record, in case this gate dies too.
    GateStore(database).end("gate|first")
    first.ended(["dead.1"])
    watchers[0].settle()
    watchers[1].settle()
    assert len(events) == 1


def test_a_claim_of_a_gate_that_dies_too_passes_on(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.0)
    dead, first, second = (a_gate(database, name) for name in ("dead", "first", "second"))
    run(dead, database, "dead.1")
    events: list[Record] = []
    GateStore(database).end("gate|dead")
    LostCalls(first, events.append, print).settle()
    GateStore(database).end("gate|first")
    LostCalls(second, events.append, print).settle()
    assert len(events) == 2


def test_a_call_that_ended_is_not_lost(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.0)
    done, other = a_gate(database, "done"), a_gate(database, "other")
    run(done, database, "done.1")
    events: list[Record] = []
    done.ended(["done.1", "done.99"])
    LostCalls(done, events.append, print).settle()
    GateStore(database).end("gate|done")
    LostCalls(other, events.append, print).settle()
    assert events == []


def test_gates_that_died_are_looked_for_now_and_then(database: PostgresDatabase) -> None:
    dead, other = a_gate(database, "dead"), a_gate(database, "other")
    run(dead, database, "dead.1")
    events: list[Record] = []
    watcher = LostCalls(other, events.append, print)
    watcher.settle()
    GateStore(database).end("gate|dead")
    watcher.settle()
    assert events == []
