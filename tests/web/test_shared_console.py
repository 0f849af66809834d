"""Every page of a console over a real PostgreSQL that several gates share."""

import html
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import a_store
from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, LocalConsole, Stream
from tests.support.postgres import PostgresServer
from tests.support.records import decided, ended, started
from tests.support.shared_ledgers import Writer
from tests.support.waiting import wait_for
from tests.web.conftest import Gate

from thoughtgate.core.record_events import POLICY_CHANGED, Record
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.shared_ledger import open_shared_ledger
from thoughtgate.record.shipper import SHIP_EVERY_S, RecordShipper
from thoughtgate.status.shared_record_view import SharedConsoleRecord
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.stores.pins import Pin
from thoughtgate.web.console_context import PAGES
from thoughtgate.web.live import LOOK_EVERY_S


@pytest.fixture
def location(postgres: PostgresServer, tmp_path: Path) -> StoreLocation:
    return StoreLocation(tmp_path, postgres.url())


@pytest.fixture
def client(location: StoreLocation, tmp_path: Path) -> Iterator[Client]:
    """A client of a console whose store has the calls of two gates."""
    store = a_store(location)
    gate = Gate(store, owner="gate|0")
    gate.hold("delete_note", {"name": "draft"})
    pin = Pin("files#1", "tool", "read", "d1", "accepted", "{}", (), 0.0, "first seen")
    store.pins().add("files#1", [pin], (), 1.0)
    ledger, now = open_shared_ledger(location), time.time()
    for name in ("a", "b"):
        writer = Writer(tmp_path, name)
        writer.write(*(event._replace(at=now - 60) for event in sample_events()))
        told = {"outcome": "loaded", "new_version": f"version-{name}"}
        writer.write(Record(POLICY_CHANGED, now, "", "0", {"policy": told}))
        writer.ship(ledger)
    ledger.close()
    config = f"schema: 1\ndefault: forward\nstore: {location.url}\n"
    with LocalConsole(tmp_path, config) as console:
        yield console.client()
    store.close()


def test_every_page_is_served(client: Client) -> None:
    for path in (
        *(address for address, _ in PAGES),
        "/overview?span=30d&server=files",
        "/servers/changes",
        "/servers/server?name=files",
        "/servers/tool?server=files&kind=tool&name=read",
        "/settings?show=given",
        "/policy/explain?server=files&name=delete_file",
        "/policy/learn?since=7d",
        "/calls?server=files&decision=BLOCK&rule=none",
        "/calls?text=%2Ftmp&server=files",
        "/calls?text=%2F",
        "/calls/export?format=csv",
    ):
        assert client.get(path).status == 200, path


def test_the_calls_of_all_gates_are_counted_for_every_period(client: Client) -> None:
    for span in ("1h", "1d", "7d", "30d"):
        text = client.get(f"/overview?span={span}").text
        assert "<b>6</b> calls" in text, span
        for address in re.findall(r'href="(/calls\?[^"]+)"', text):
            assert client.get(html.unescape(address)).status == 200, address
    policy = client.get("/policy").text
    assert "version-a" in policy
    assert "version-b" in policy
    assert 'data-call="run-1.2"' in client.get("/calls?text=delete_file").text
    assert 'data-call="run-1.2"' not in client.get("/calls?text=absent").text
    people = client.get("/people").text
    assert "kim" in people
    assert ">6</a>" in client.get("/servers").text.replace("\n", "")


def test_a_call_that_a_gate_makes_appears_on_open_pages(
    location: StoreLocation, tmp_path: Path
) -> None:
    config = f"schema: 1\ndefault: forward\nstore: {location.url}\n"
    gate = Writer(tmp_path, "a")
    gate.call()
    shipper = RecordShipper(gate.path, location, gate.name)
    shipper.start()
    try:
        with LocalConsole(tmp_path, config) as console:
            client = console.client()
            wait_for(lambda: 'data-call="run-a.1"' in client.get("/calls").text)
            streams = [Stream(client, f"/live?{what}=1") for what in ("traffic", "calls")]
            for stream in streams:
                stream.next("inbox")
            gate.call()
            rows, calls = streams
            assert "/calls/run-a.2" in rows.next("row")
            assert calls.next("calls") == "{}"
            assert 'data-call="run-a.2"' in client.get("/calls").text
            for stream in streams:
                stream.close()
    finally:
        shipper.close()


def test_a_new_call_waits_for_two_looks_that_leave_time_within_half_a_second() -> None:
    """The rest is for the transaction, the page that is fetched and drawing it."""
    assert SHIP_EVERY_S + LOOK_EVERY_S < 0.31


def test_rows_of_an_earlier_version_are_made_again_once(
    location: StoreLocation, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Its rows called a tool that said that it failed successful, and it kept no totals."""
    writer, now = Writer(tmp_path, "a"), time.time()
    writer.write(started("c.1", now), decided("c.1", now), ended("c.1", now, is_error=True))
    ledger = open_shared_ledger(location)
    writer.ship(ledger)
    index_ledger(ledger)
    schema = location.url.rpartition("%3D")[2]
    for statement in _DOWNGRADE.format(schema).split("\n"):
        postgres.execute(statement)
    ledger.close()
    for _ in range(2):
        record = SharedConsoleRecord(None, location)
        (call,) = record.calls(10)
        assert call["status"] == "ERROR"
        assert record.stats(now - 3600, now)["failed"] == 1
        assert record.rule_hits("v1") == {("rules[0]", "ALLOW"): 1}
        record.close()


_DOWNGRADE = """\
SET search_path TO {0}; DROP TABLE call_totals, call_latencies, policy_changes
SET search_path TO {0}; DROP TRIGGER calls_failed ON calls; DROP FUNCTION mark_failed_call
SET search_path TO {0}; DROP FUNCTION count_calls_insert, count_calls_update, count_calls_delete CASCADE
SET search_path TO {0}; DROP INDEX calls_asked, calls_rule, calls_found
SET search_path TO {0}; DROP TABLE server_tasks
SET search_path TO {0}; UPDATE calls SET status = 'OK'
SET search_path TO {0}; UPDATE schema_version SET version = 20"""
