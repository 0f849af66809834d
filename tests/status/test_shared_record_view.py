"""The records of all gates as the console asks about them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.audit_cli import sample_events
from tests.support.postgres import PostgresServer
from tests.support.shared_ledgers import Writer

from thoughtgate.core.record_events import TOOLS_LIST, Record
from thoughtgate.record.shared_ledger import SharedLedger, open_shared_ledger
from thoughtgate.status.shared_record_view import SharedConsoleRecord
from thoughtgate.stores.open_database import StoreLocation


@pytest.fixture
def location(postgres: PostgresServer, tmp_path: Path) -> StoreLocation:
    return StoreLocation(tmp_path, postgres.url())


@pytest.fixture
def shared(location: StoreLocation) -> Iterator[SharedLedger]:
    opened = open_shared_ledger(location)
    yield opened
    opened.close()


@pytest.fixture
def record(location: StoreLocation) -> Iterator[SharedConsoleRecord]:
    opened = SharedConsoleRecord(None, location)
    yield opened
    opened.close()


def test_calls_of_every_gate_have_a_story(
    shared: SharedLedger, record: SharedConsoleRecord, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        gate = Writer(tmp_path, name)
        gate.call(2)
        gate.ship(shared)

    found = {call["call_id"] for call in record.calls(10)}
    assert found == {"run-a.1", "run-a.2", "run-b.1", "run-b.2"}
    story = record.call_events("run-b.2")
    assert next(event["type"] for event in story) == "tool_call_start"
    assert len(story) == 3
    assert record.call_events("nothing") == []
    assert record.call("nothing") is None
    assert record.stats(0.0, time.time())["calls"] == 4


def test_events_of_every_gate_are_shown_and_followed(
    shared: SharedLedger, record: SharedConsoleRecord, tmp_path: Path
) -> None:
    gates = [Writer(tmp_path, name) for name in ("a", "b")]
    news = record.follow()
    for gate in gates:
        gate.call()
        gate.ship(shared)

    assert {event["run_id"] for event in record.recent(10)} == {"run-a", "run-b"}
    assert {event["run_id"] for event in news()} == {"run-a", "run-b"}
    assert news() == []


def test_servers_of_every_gate_are_listed(
    shared: SharedLedger, record: SharedConsoleRecord, tmp_path: Path
) -> None:
    gate, other = Writer(tmp_path, "a"), Writer(tmp_path, "b")
    gate.write(*sample_events())
    gate.ship(shared)
    names = [server.name for server in record.servers().all()]
    assert "files" in names

    listed = {"method": "tools/list", "entries": {"read": "d"}, "hidden": []}
    other.write(Record(TOOLS_LIST, time.time(), "other", "1", {"list": listed}))
    other.ship(shared)
    assert "other" in [server.name for server in record.servers().all()]
