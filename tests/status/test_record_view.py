"""The record as the console asks about it."""

import time
from pathlib import Path

import pytest
from tests.support.audit_cli import sample_events
from tests.support.consoles import write_events

from thoughtgate.core.record_events import TOOLS_LIST, Record, message_seen
from thoughtgate.errors import StoreError
from thoughtgate.record.ledger import ledger_path
from thoughtgate.status.record_view import ConsoleRecord

PING = message_seen(1.0, "s", "1", "agent_to_server", "request", "ping", 1)


def test_the_newest_events_come_first_and_only_so_many(tmp_path: Path) -> None:
    path = write_events(tmp_path, *(PING._replace(server=f"s{number}") for number in range(9)))
    record = ConsoleRecord(path)

    assert [event["server_name"] for event in record.recent(2, every=True)] == ["s8", "s7"]
    assert record.recent(5) == []


def test_what_comes_is_followed_from_now_on(tmp_path: Path) -> None:
    path = write_events(tmp_path, PING)
    news = ConsoleRecord(path).follow()
    assert news() == []

    write_events(tmp_path, PING._replace(server="new"))
    assert [event["server_name"] for event in news()] == ["new"]
    assert news() == []


def test_a_record_that_comes_later_is_followed_from_its_start(tmp_path: Path) -> None:
    news = ConsoleRecord(tmp_path / "audit.jsonl").follow()
    assert news() == []

    write_events(tmp_path, PING)
    assert len(news()) == 1


def test_calls_are_found_and_have_a_story(tmp_path: Path) -> None:
    record = ConsoleRecord(write_events(tmp_path, *sample_events()))
    (call, *_) = record.calls(10)

    assert record.calls(10, server=call["server"])
    assert record.calls(10, server="nobody") == []
    assert record.calls(10, time.time()) == []
    assert record.call(call["call_id"]) is not None
    assert record.call("nothing") is None
    story = record.call_events(call["call_id"])
    assert story[0]["type"] == "tool_call_start"
    assert record.call_events("nothing") == []


def test_servers_are_learnt_from_the_record_and_on(tmp_path: Path) -> None:
    def listed(digest: str) -> Record:
        body = {"method": "tools/list", "entries": {"read": digest, "odd": 5}, "hidden": ["x", 5]}
        return Record(TOOLS_LIST, 1.0, "files", "1", {"list": body})

    path = write_events(tmp_path, listed("a"))
    record = ConsoleRecord(path)
    assert [each.name for each in record.servers().servers["files"].entries("tools/list")] == [
        "read",
        "x",
    ]

    write_events(tmp_path, listed("b"), Record("server_exited", 2.0, "files", "1", {}))
    with path.open("a") as stream:
        stream.write('"tools_list" is no event\n["tools_list"]\n')
    (server,) = record.servers().all()
    assert [each.name for each in server.changed] == ["read"]
    assert server.running is False


def test_sums_are_reckoned_for_a_span(tmp_path: Path) -> None:
    now = time.time()
    events = [event._replace(at=now - 30) for event in sample_events()]
    record = ConsoleRecord(write_events(tmp_path, *events))
    stats = record.stats(now - 3600, now)

    assert stats["calls"] > 0
    assert stats["step_s"] == 60
    assert stats["tools"]
    assert record.stats(now - 30 * 86_400, now)["step_s"] == 86_400 // 2 * 2


def test_without_a_record_there_is_nothing(tmp_path: Path) -> None:
    for record in (ConsoleRecord(None), ConsoleRecord(tmp_path / "none.jsonl")):
        assert record.recent(5) == []
        assert record.calls(5) == []
        assert record.call_events("x") == []
        assert record.stats(0.0, 1.0) == {}
        assert record.servers().all() == []
        assert record.follow()() == []


def test_a_ledger_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    path = write_events(tmp_path, *sample_events())
    ledger_path(path).mkdir()

    with pytest.raises(StoreError, match="ledger"):
        ConsoleRecord(path).calls(5)
