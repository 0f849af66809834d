"""Searches for calls that few of many match, on both engines."""

from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.records import RUN, T0, decided, ended, started
from tests.support.shared_ledgers import Writer

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import Record
from thoughtgate.record.call_search import search_calls
from thoughtgate.record.ledger import Ledger
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.ledger_queries import CallFilter, Connection, find_calls, page_end
from thoughtgate.record.shared_ledger import SharedLedger
from thoughtgate.record.writer import RecordWriter

DAY_S = 86_400.0


def some_calls() -> list[Record]:
    """Return calls over twelve days, of which every fifth was denied, and one without a start."""
    events = []
    for number in range(60):
        at, ident = T0 + number * DAY_S / 5, f"c.{number:02}"
        tool = ("read", "write", "send")[number % 3]
        action = "BLOCK" if number % 5 == 0 else "ALLOW"
        events += [
            started(ident, at, tool=tool),
            decided(ident, at, tool=tool, action=action, rule=f"rules[{number % 3}]"),
            ended(ident, at + 1, tool=tool),
        ]
    return [*events, decided("lost", T0, tool="read", action="BLOCK", rule="rules[0]")]


FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"tool": "read"},
    {"tool": "r*", "decision": "BLOCK"},
    {"tool": "read", "decision": "BLOCK", "since": T0 + 3 * DAY_S},
    {"decision": "BLOCK", "until": T0 + 5.5 * DAY_S},
    {"rule": "rules[1]", "status": "OK", "since": T0 + DAY_S, "until": T0 + 2 * DAY_S},
    {"server": "files", "principal": "nobody"},
    {"decision": "THROTTLE"},
    {"text": "read", "decision": "BLOCK"},
    {"text": "{", "decision": "BLOCK"},
)


def check(connection: Connection) -> None:
    """Compare with a search that reads all calls, page by page."""
    for wanted in FILTERS:
        everything = [
            one["call_id"] for one in find_calls(connection, CallFilter(**wanted, limit=0))
        ]
        for limit in (1, 4, 100):
            found, before = list[str](), None
            while True:
                page = search_calls(connection, CallFilter(**wanted, limit=limit, before=before))
                found += [one["call_id"] for one in page]
                before = page_end(connection, page[-1]) if page else None
                if before is None:
                    break
            timed = [one for one in everything if one != "lost"]
            assert [one for one in found if one != "lost"] == timed, (wanted, limit)
        assert found == everything, wanted
    newest = find_calls(connection, CallFilter(among_newest=3, limit=0))
    assert [one["call_id"] for one in newest] == ["c.59", "c.58", "lost"]


def test_pages_of_a_search_are_all_that_there_is(tmp_path: Path) -> None:
    record = tmp_path / "audit.jsonl"
    writer = RecordWriter(record, Envelope(RUN))
    writer.write(some_calls())
    writer.close()
    with closing(Ledger(tmp_path / "ledger")) as ledger:
        ledger.ingest(record)
        check(ledger.connection)


def test_a_shared_ledger_finds_the_same(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a")
    gate.write(*some_calls())
    gate.ship(shared)
    index_ledger(shared)
    check(shared.connection)
