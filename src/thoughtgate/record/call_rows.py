"""Conversion of recorded events to ledger rows: one per call, and totals of other traffic.

The order of events does not matter, and repeated events do no harm: each event fills its own
columns, and rows are later merged column by column. Events are read from files, so no member
is trusted to have the right type.
"""

import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    CALL_DECISION,
    CALL_END,
    CALL_START,
    CONTENT_FOUND,
    FRAME_REFUSED,
    MESSAGE,
    POLICY_CHANGED,
)
from thoughtgate.policy.inspection.content_policy import RESULT_KIND

_NO_CALL: Final = re.compile(r"\.e[0-9]+\Z")
"""Ends the ids of messages that belong to no call, such as those about a server's own tasks."""


class CallColumn(NamedTuple):
    """One column of a call's row, which is also a member of its JSON object."""

    name: str
    type: str
    """``string``, ``integer``, ``boolean``, ``time`` or ``list of object``."""
    event: str
    """The type of event that fills it; empty if every event of the call does."""
    source: str
    """The dotted path of the member that it comes from."""
    meaning: str = ""
    """For the reference page; empty if the path says it all."""


CALL_COLUMNS: Final = (
    CallColumn("call_id", "string", "", "call.call_id", "the call"),
    CallColumn("writer", "string", "", "source.shim_id"),
    CallColumn("run_id", "string", "", "run_id", "the run"),
    CallColumn("session", "string", "", "session_id", "the agent's session"),
    CallColumn("server", "string", "", "call.server_name", "the server"),
    CallColumn("kind", "string", CALL_START, "call.kind", "`tool`, `resource` or `prompt`"),
    CallColumn("tool", "string", "", "call.tool_name", "the tool, prompt or resource URI"),
    CallColumn("method", "string", CALL_START, "call.method", "the MCP method"),
    CallColumn("transport", "string", CALL_START, "call.transport", "`mcp_stdio` or `mcp_http`"),
    CallColumn("principal", "string", CALL_START, "call.principal", "who calls"),
    CallColumn("profile", "string", "", "profile", "`production` or `development`"),
    CallColumn("args_hash", "string", "", "call.args_hash", "SHA-256 over the canonical arguments"),
    CallColumn("preview", "string", CALL_START, "call.preview.args_preview", "the arguments, secrets masked"),
    CallColumn("truncated", "boolean", CALL_START, "call.preview.truncated", "whether they are shortened or missing"),
    CallColumn("extra_hash", "string", CALL_START, "call.extra_hash", "SHA-256 over what else the params carry"),
    CallColumn("extra", "string", CALL_START, "call.extra.preview", "what else the params carry, secrets masked"),
    CallColumn("bytes_in", "integer", CALL_START, "call.bytes_in", "size of the request"),
    CallColumn("number", "integer", CALL_START, "call.seq", "1, 2, 3… the calls of the run"),
    CallColumn("started_at", "time", CALL_START, "ts", "`ts` of `tool_call_start`"),
    CallColumn("decision", "string", CALL_DECISION, "decision.action"),
    CallColumn("gate", "string", CALL_DECISION, "decision.gate"),
    CallColumn("rule", "string", CALL_DECISION, "decision.rule_id"),
    CallColumn("reason_code", "string", CALL_DECISION, "decision.explain.reason_code"),
    CallColumn("reason", "string", CALL_DECISION, "decision.explain.summary"),
    CallColumn("enforced", "boolean", CALL_DECISION, "decision.enforced"),
    CallColumn("workflow", "string", CALL_DECISION, "decision.workflow", "the approval workflow"),
    CallColumn("facts", "string", CALL_DECISION, "decision.facts", "the facts that held for the principal, separated by spaces; null if the policy asked for none"),
    CallColumn("policy", "string", CALL_DECISION, "decision.policy.policy_version"),
    CallColumn("decided_at", "time", CALL_DECISION, "ts", "`ts` of `tool_call_decision`"),
    CallColumn("asked_at", "time", APPROVAL_REQUESTED, "ts", "`ts` of `approval_requested`"),
    CallColumn("approval_id", "string", APPROVAL_REQUESTED, "approval.approval_id", "the approval request"),
    CallColumn("approval", "string", APPROVAL_DECIDED, "approval.outcome"),
    CallColumn("approved_by", "string", APPROVAL_DECIDED, "approval.decided_by"),
    CallColumn("approval_channel", "string", APPROVAL_DECIDED, "approval.channel"),
    CallColumn("approval_reason", "string", APPROVAL_DECIDED, "approval.reason"),
    CallColumn("approval_at", "time", APPROVAL_DECIDED, "ts", "`ts` of `approval_decided`"),
    CallColumn("executes", "boolean", APPROVAL_DECIDED, "approval.executes"),
    CallColumn("votes", "list of object", APPROVAL_DECIDED, "approval.votes", "`approval.votes`; empty when there are none"),
    CallColumn("argument_findings", "list of object", CONTENT_FOUND, "content.findings", "what the content checks found in the arguments"),
    CallColumn("result_findings", "list of object", CONTENT_FOUND, "content.findings", "what they found in the result"),
    CallColumn("result_action", "string", CONTENT_FOUND, "content.action", "what happened to the result"),
    CallColumn("result_approval", "string", APPROVAL_DECIDED, "approval.outcome", "for a held result: whether it was released"),
    CallColumn("result_decided_by", "string", APPROVAL_DECIDED, "approval.decided_by", "who decided that"),
    CallColumn("status", "string", CALL_END, "status", "`status` of `tool_call_end`; `ERROR` too if the tool's result says `isError`"),
    CallColumn("latency_ms", "integer", CALL_END, "latency_ms", "from the request to its end"),
    CallColumn("bytes_out", "integer", CALL_END, "bytes_out", "size of the answer"),
    CallColumn("error_class", "string", CALL_END, "error.class"),
    CallColumn("error_kind", "string", CALL_END, "error.kind"),
    CallColumn("error_code", "integer", CALL_END, "error.code"),
    CallColumn("error_message", "string", CALL_END, "error.message"),
    CallColumn("is_error", "boolean", CALL_END, "is_error", "the tool's result says `isError`"),
    CallColumn("result_preview", "string", CALL_END, "preview.result_preview", "only in records of an earlier version"),
    CallColumn("ended_at", "time", CALL_END, "ts", "`ts` of `tool_call_end`"),
    CallColumn("start_event", "integer", CALL_START, "seq", "`seq` of `tool_call_start`"),
    CallColumn("approval_event", "integer", APPROVAL_DECIDED, "seq", "`seq` of `approval_decided`"),
    CallColumn("end_event", "integer", CALL_END, "seq", "`seq` of `tool_call_end`"),
)  # fmt: skip
"""All columns of a call's row, in order; all except the first two may be null."""

MAX_INTEGER: Final = 2**63 - 1
"""The largest integer in SQLite; the gate never writes a larger one."""

MAX_POLICY_TEXT: Final = 16_384
"""Characters kept of a change of the policy, which names files and versions."""

Row = dict[str, Any]
Read = Callable[[Row, str], Any]
"""Returns a member of an object as the value of a column."""


class RecordRows:
    """The rows of a batch of events."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], Row] = {}
        """Rows by call and writer: several writers of one run may use the same id."""
        self.traffic: dict[tuple[str, str, int, str, str, str], list[int]] = {}
        """Count and bytes by run, server, minute, type, direction and detail."""
        self.policies: list[tuple[float, str]] = []
        """Times and JSON texts of changes of the policy."""
        self.events = 0

    def add(self, event: Row) -> None:
        """Add one event."""
        self.events += 1
        kind = event.get("type", "")
        # First: an approval of a held result must not fill the columns of the call's own approval.
        if kind == CONTENT_FOUND or member(event, "approval").get("about") == RESULT_KIND:
            self._result(event, kind)
        elif kind in _FILLED:
            row = self._call(event)
            for parents, columns in _FILLED[kind]:
                said = event
                for parent in parents:
                    said = member(said, parent)
                for name, key, read in columns:
                    row[name] = read(said, key)
        elif kind == POLICY_CHANGED:
            told = json.dumps(member(event, "policy"), ensure_ascii=False)
            self.policies.append((event_time(event), told[:MAX_POLICY_TEXT]))
        elif kind in _COUNTED:
            self._count(event, *_COUNTED[kind])

    def _result(self, event: Row, kind: str) -> None:
        """Add what was found in a call's arguments or result, or decided about a held result."""
        said, approval = member(event, "content"), member(event, "approval")
        if _NO_CALL.search(text(member(event, "call"), "call_id") or ""):
            return
        row = self._call(event)
        if kind == APPROVAL_DECIDED:
            row["result_approval"] = text(approval, "outcome")
            row["result_decided_by"] = text(approval, "decided_by")
        elif kind == CONTENT_FOUND and text(said, "direction") == AGENT_TO_SERVER:
            row["argument_findings"] = _findings(said, "findings")
        elif kind == CONTENT_FOUND:
            row["result_findings"] = _findings(said, "findings")
            row["result_action"] = text(said, "action")

    def _call(self, event: Row) -> Row:
        """Return the row of the call that an event belongs to."""
        call = member(event, "call")
        writer = (text(member(event, "source"), "shim_id") or "")[:512]
        key = (str(call.get("call_id"))[:512], writer)
        row = self.calls.get(key)
        if row is None:
            row = self.calls[key] = {
                "call_id": key[0],
                "writer": writer,
                "run_id": text(event, "run_id"),
                "session": text(event, "session_id"),
                "profile": text(event, "profile"),
            }
        row["server"] = text(call, "server_name")
        row["tool"] = text(call, "tool_name")
        digest = text(call, "args_hash")
        if digest:
            row["args_hash"] = digest
        return row

    def _count(self, event: Row, name: str, detail: str) -> None:
        said = member(event, name)
        key = (
            text(event, "run_id") or "",
            text(event, "server_name") or "",
            int(event_time(event) // 60),
            str(event["type"]),
            text(said, "direction") or "",
            (text(said, detail) or "")[:128],
        )
        sums = self.traffic.setdefault(key, [0, 0])
        # Equal messages may be folded into one event, which has their number.
        sums[0] += number(said, "repeated") or 1
        sums[1] += number(said, "repeated_bytes") or number(said, "bytes") or 0


_COUNTED: Final = {MESSAGE: ("message", "method"), FRAME_REFUSED: ("frame", "check")}
"""Events of which only totals are kept: their object, and its member that is the detail."""


def _votes(said: Row, name: str) -> str | None:
    """Return the votes as JSON text, or None when the event has none."""
    given = said.get(name)
    if type(given) is not list or not given:
        return None
    votes = [
        {name: text(vote, name) or "" for name in ("by", "channel", "at", "reason")}
        | {"approve": vote.get("approve") is True}
        | ({"groups": vote["groups"]} if type(vote.get("groups")) is list else {})
        for vote in given
        if type(vote) is dict
    ]
    return json.dumps(votes, ensure_ascii=False)


def _findings(said: Row, name: str) -> str | None:
    """Return the findings as JSON text, or None when the event has none."""
    given = said.get(name)
    if type(given) is not list or not given:
        return None
    findings = [
        {name: text(found, name) or "" for name in ("check", "tier", "where")}
        for found in given
        if type(found) is dict
    ]
    return json.dumps(findings, ensure_ascii=False)


def _words(given: Any) -> str | None:
    """Return a list of texts as one text, or None when the event has none."""
    if type(given) is not list:
        return None
    return " ".join(one for one in given if type(one) is str)


def member(said: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a member if it is an object, or else an empty one."""
    found = said.get(name)
    return found if type(found) is dict else {}


def text(said: dict[str, Any], name: str) -> str | None:
    """Return a member if it is a string, with lone surrogates escaped, or else None."""
    found = said.get(name)
    if type(found) is not str:
        return None
    return found if found.isascii() else found.encode("utf-8", "backslashreplace").decode()


def number(said: dict[str, Any], name: str) -> int | None:
    """Return a member if it is an integer that SQLite can store, or else None."""
    found = said.get(name)
    return found if type(found) is int and abs(found) <= MAX_INTEGER else None


def event_time(event: dict[str, Any], name: str = "ts") -> float:
    """Return an event's time in seconds since the epoch; 0 if it has none."""
    stamp = event.get(name)
    return parse_time(stamp) or 0.0 if type(stamp) is str else 0.0


def parse_time(stamp: str) -> float | None:
    """Parse a time in the record's own format, or in ISO 8601 with any precision or zone."""
    if len(stamp) == 24 and stamp[19] == "." and stamp[23] == "Z" and stamp[20:23].isdecimal():  # noqa: PLR2004 - the record's own form
        # Without the fraction, all events of one second share an entry of the cache.
        second = _second(stamp[:19] + "+00:00")
        return None if second is None else second + int(stamp[20:23]) / 1000
    return _second(stamp)


@lru_cache(maxsize=256)
def _second(stamp: str) -> float | None:
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return None if when.tzinfo is None else when.timestamp()


_READ_BY_TYPE: Final[dict[str, Read]] = {
    "string": text,
    "integer": number,
    "boolean": lambda said, name: int(said.get(name) is True),
    "time": event_time,
}

_READ_BY_NAME: Final[dict[str, Read]] = {
    # Never null after a start event: the ledger then indexes the call for the search by words.
    "preview": lambda said, name: text(said, name) or "",
    # A verdict counts as enforced unless it says otherwise.
    "enforced": lambda said, name: int(said.get(name) is not False),
    # A tool that reports an error has failed, although it was answered.
    "status": lambda said, name: (
        "ERROR" if said.get("is_error") is True and said.get(name) == "OK" else text(said, name)
    ),
    # Earlier versions named it ``id``.
    "approval_id": lambda said, name: text(said, name) or text(said, "id"),
    "votes": _votes,
    "argument_findings": _findings,
    "result_findings": _findings,
    "facts": lambda said, name: _words(said.get(name)),
}
"""Columns that need more than a value of their type."""


_BY_SUBJECT: Final = (
    "argument_findings",
    "result_findings",
    "result_action",
    "result_approval",
    "result_decided_by",
)
"""Beginnings of the names of columns that ``RecordRows`` fills itself."""


def _filled_by(event: str) -> list[tuple[list[str], list[tuple[str, str, Read]]]]:
    """Return the columns that a type of event fills, by the object that holds their values."""
    found: dict[str, list[tuple[str, str, Read]]] = {}
    for column in CALL_COLUMNS:
        # These are filled by what the event is about.
        if column.event == event and not column.name.startswith(_BY_SUBJECT):
            holder, _, key = column.source.rpartition(".")
            read = _READ_BY_NAME.get(column.name) or _READ_BY_TYPE[column.type]
            found.setdefault(holder, []).append((column.name, key, read))
    return [(holder.split(".") if holder else [], columns) for holder, columns in found.items()]


_FILLED: Final = {event: _filled_by(event) for event in {one.event for one in CALL_COLUMNS} - {""}}
_FILLED[APPROVAL_REQUESTED].append((["approval"], [("workflow", "workflow", text)]))
