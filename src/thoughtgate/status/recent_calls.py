"""The last calls on record, read from the end of the file without reading the rest."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from thoughtgate.core.record_events import APPROVAL_DECIDED, CALL_DECISION, CALL_END, CALL_START
from thoughtgate.errors import StoreError
from thoughtgate.record.call_rows import member, text
from thoughtgate.record.follower import Follower

TAIL_BYTES: Final = 512 * 1024
"""How much of the record's end is read: hundreds of calls with typical previews."""


def last_calls(record: Path, count: int) -> list[dict[str, Any]]:
    """Return the last calls of a record, newest first; none if there is no record."""
    return calls_of(_events(record), count)


def calls_of(events: Iterable[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return the last calls of events that are in order, newest first."""
    calls: dict[str, dict[str, Any]] = {}
    for event in events:
        call = member(event, "call")
        ident = text(call, "call_id")
        if ident is None:
            continue
        # Taken out and put back, so that the calls stay in the order of their latest events.
        facts = calls.pop(ident, None) or {
            "call_id": ident,
            "ts": event.get("ts"),
            "server": call.get("server_name"),
            "tool": call.get("tool_name"),
            "decision": None,
            "status": None,
            "latency_ms": None,
        }
        calls[ident] = facts
        _follow(facts, event)
    return list(reversed(calls.values()))[:count]


def _follow(facts: dict[str, Any], event: dict[str, Any]) -> None:
    kind = event["type"]
    if kind == CALL_DECISION:
        facts["decision"] = member(event, "decision").get("action")
        facts["status"] = facts["status"] or "OPEN"
    elif kind == APPROVAL_DECIDED and "about" not in member(event, "approval"):
        facts["decision"] = (text(member(event, "approval"), "outcome") or "").upper()
    elif kind == CALL_END:
        facts["status"] = event.get("status")
        facts["latency_ms"] = event.get("latency_ms")
        error = member(event, "error")
        if error:
            facts["error"] = error.get("kind") or error.get("class")
    elif kind == CALL_START:
        facts["status"] = "OPEN"


def _events(record: Path) -> Iterator[dict[str, Any]]:
    with suppress(StoreError, OSError):
        yield from Follower(record, tail_bytes=TAIL_BYTES).read()
