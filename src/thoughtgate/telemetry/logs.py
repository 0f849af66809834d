"""Structured logs on stderr, as JSON or readable text; never on stdout, never with secrets.

``Log.record`` logs those recorded events that an operator wants to see as they happen;
``Log.say`` logs everything else. A log line must not fail or delay a call, so writing never raises
and never waits for a slow reader.
"""

import json
import os
import select
import time
from typing import Any, Final

from thoughtgate.core import record_events as events
from thoughtgate.core.envelope import render_time
from thoughtgate.core.record_events import Record
from thoughtgate.core.run_summary import run_profile
from thoughtgate.errors import STOPPED_BY_HAND, visible
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION
from thoughtgate.policy.redaction import Redactor

DEBUG: Final = "debug"
INFO: Final = "info"
WARN: Final = "warn"
ERROR: Final = "error"
LEVELS: Final = (DEBUG, INFO, WARN, ERROR)
_DEBUG: Final = LEVELS.index(DEBUG)
SPELLED: Final = {"warning": WARN}
"""Other spellings of levels that the config accepts."""

HUMAN: Final = "human"
JSON: Final = "json"

STDERR: Final = 2

MAX_WRITE: Final = 4096
"""Bytes that a pipe accepts without blocking once ``poll`` says that it is writable."""

MAX_VALUE: Final = 2000
"""Maximum characters of a value in a log line; peers choose names and reasons."""

MAX_CALLS: Final = 10_000
"""Maximum number of open calls whose methods are remembered; the oldest are dropped."""

_WARNED_OF: Final = frozenset(
    {
        events.FRAME_REFUSED,
        events.AGENT_AUTH_REJECTED,
        events.SERVER_EXITED,
        events.SERVER_UNREACHABLE,
    }
)
"""Types of events that are always logged as warnings."""

_quote: Final = json.JSONEncoder(ensure_ascii=False).encode

WOULD_BLOCK: Final = "WOULD_BLOCK"
WOULD_REJECT: Final = "WOULD_REJECT"
WOULD_DROP: Final = "WOULD_DROP"


def level_of(kind: str, action: str) -> str:
    """Return the level of an event, from its type and, for a verdict, its action."""
    refused = kind == events.CALL_DECISION and action != "ALLOW"
    return WARN if refused or kind in _WARNED_OF else INFO


class Log:
    """Writes the log lines of one component."""

    def __init__(
        self,
        component: str,
        *,
        level: str = INFO,
        form: str = HUMAN,
        redactor: Redactor | None = None,
        descriptor: int = STDERR,
    ) -> None:
        self._component = component
        self._threshold = LEVELS.index(SPELLED.get(level, level))
        self._json = form == JSON
        self._redactor = redactor if redactor is not None else Redactor()
        self._descriptor = descriptor
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)
        self._is_cut = False
        self._profile = PRODUCTION
        """The profile, from the event that started the run."""
        self._methods: dict[str, tuple[str, str | None]] = {}
        """The methods of open calls and the ids of their requests, which only start events have."""
        self._ended: dict[str, str] = {}
        """Why servers ended that have not started again since, by their ids."""

    def say(self, level: str, message: str, at: float | None = None, **fields: Any) -> None:
        """Write one line if its level is enabled."""
        if LEVELS.index(level) < self._threshold:
            return
        when = render_time(time.time() if at is None else at)
        kept = {name: value for name, value in fields.items() if value is not None}
        text = message
        if self._may_hold_secret(message, kept):
            kept = self._redactor.mask_value(kept)
            text = self._redactor.mask_text(message)
        text = text[:MAX_VALUE]
        line = (
            self._as_json(when, level, text, kept)
            if self._json
            else _human(when, level, text, kept)
        )
        self._write(line.encode("utf-8", "backslashreplace") + b"\n")

    def _may_hold_secret(self, message: str, fields: dict[str, Any]) -> bool:
        """Check a whole line at once, because very few lines need masking field by field."""
        texts = [message]
        for value in fields.values():
            if type(value) is str:
                texts.append(value)
            elif type(value) in {dict, list}:
                return True
        said = "\n".join(texts)
        return self._redactor.mask_text(said) != said

    def record(self, record: Record) -> None:
        """Log a recorded event, if an operator wants to see it as it happens."""
        # Ends are logged at the debug level only; at other levels, the line is not even built.
        if record.type == events.CALL_END and self._threshold > _DEBUG:
            self._methods.pop(record.body["call"]["call_id"], None)
            return
        if record.type == events.CALL_START:
            self._remember(record.body["call"])
        elif record.type == events.RUN_START:
            self._profile = run_profile(record)
        elif record.type == events.SERVER_STARTED:
            self._ended.pop(record.server, None)
        describe = _DESCRIBERS.get(record.type)
        if describe is None:
            return
        level, message, fields = describe(record)
        if record.type == events.SERVER_EXITED:
            # A repeated attempt to start that fails for the same reason tells nothing new.
            reason = str(fields.get("reason"))
            level = DEBUG if self._ended.get(record.server) == reason else level
            self._ended[record.server] = reason
        call_id = fields.get("correlation_id", "")
        method, message_id = self._methods.get(call_id, (None, None))
        fields.setdefault("method", method)
        if record.type == events.CALL_DECISION:
            # From the arrival of the request until now.
            fields["message_id"] = message_id
            fields["latency_us"] = max(0, round((time.time() - record.at) * 1_000_000))
        if "profile" in fields:
            fields["profile"] = fields["profile"] or self._profile
        if record.type == events.CALL_END:
            self._methods.pop(call_id, None)
        self.say(level, message, record.at, server_id=record.server or None, **fields)

    def _remember(self, call: dict[str, Any]) -> None:
        self._methods[call["call_id"]] = call["method"], call.get("message_id")
        if len(self._methods) > MAX_CALLS:
            del self._methods[next(iter(self._methods))]

    def _write(self, line: bytes) -> None:
        """Write as much of a line as is possible without blocking."""
        # If the previous line was cut off, end it first so that it does not spoil this one.
        rest = b"\n" + line if self._is_cut else line
        try:
            while rest and self._writable.poll(0):
                rest = rest[os.write(self._descriptor, rest[:MAX_WRITE]) :]
        except OSError:
            pass  # There is nowhere to report it, and the call must go on.
        if len(rest) <= len(line):  # otherwise not even the end of the previous line was written
            self._is_cut = 0 < len(rest) < len(line)

    def _as_json(self, when: str, level: str, message: str, fields: dict[str, Any]) -> str:
        line = {"timestamp": when, "level": level, "component": self._component, "message": message}
        for name, value in fields.items():
            line[name] = value[:MAX_VALUE] if isinstance(value, str) else value
        return json.dumps(line, separators=(",", ":"), default=str)


def _human(when: str, level: str, message: str, fields: dict[str, Any]) -> str:
    parts = [f"{when} {level:<5} {visible(message)}"]
    for name, value in fields.items():
        # Most values are single words; only the others need quotes or escapes.
        is_word = type(value) is str and 0 < len(value) <= MAX_VALUE and " " not in value
        parts.append(
            f" {name}={value if is_word and value.isascii() and value.isprintable() else _shown(value)}"
        )
    return "".join(parts)


def _shown(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    text = value[:MAX_VALUE] if isinstance(value, str) else json.dumps(value, default=str)
    plain = visible(text)
    return _quote(plain) if " " in plain or not plain else plain


def _decision(record: Record) -> tuple[str, str, dict[str, Any]]:
    decision, call = record.body["decision"], record.body["call"]
    observed = decision["enforced"] is False
    word = {"ALLOW": "forward", "HOLD": "approve"}.get(decision["action"], "deny")
    forwarded = observed or word == "forward"
    fields = {
        "direction": events.AGENT_TO_SERVER,
        "tool": call["tool_name"],
        "correlation_id": call["call_id"],
        "governance_decision": decision.get("outcome", WOULD_BLOCK) if observed else word,
        # An allowed call is forwarded in both profiles: ``record`` fills in the run's profile.
        "profile": DEVELOPMENT if observed else None if forwarded else PRODUCTION,
        "gate": decision["gate"],
        "policy_reason": decision["explain"]["summary"] or None,
        "forwarded": forwarded,
    }
    return level_of(record.type, decision["action"]), "call judged", fields


def _content(record: Record) -> tuple[str, str, dict[str, Any]]:
    content, call = record.body["content"], record.body["call"]
    checks = sorted({found["check"] for found in content["findings"]})
    observed = content["enforced"] is False
    fields = {
        "direction": content["direction"],
        "tool": call["tool_name"],
        "correlation_id": call["call_id"],
        "governance_decision": content["outcome"] if observed else content["action"],
        "profile": DEVELOPMENT if observed else None,
        "check": " ".join(checks),
        "found": content["found"],
    }
    return INFO if content["action"] == "none" else WARN, "content found", fields


def _ended(record: Record) -> tuple[str, str, dict[str, Any]]:
    body = record.body
    error = body.get("error") or {}
    fields = {
        "tool": body["call"]["tool_name"],
        "correlation_id": body["call"]["call_id"],
        "status": body["status"],
        "error": error.get("kind") or error.get("class"),
        "latency_us": body["latency_ms"] * 1000,
    }
    return DEBUG, "call ended", fields


def _frame(record: Record) -> tuple[str, str, dict[str, Any]]:
    frame = record.body["frame"]
    observed = frame["enforced"] is False
    would = WOULD_DROP if frame["check"] in {"unclassifiable", "unknown_response"} else WOULD_REJECT
    fields = {
        "direction": frame["direction"],
        "method": frame.get("method"),
        "correlation_id": frame.get("correlation_id"),
        "governance_decision": would if observed else "reject",
        "profile": DEVELOPMENT if observed else None,
        "check": frame["check"],
        "repeated": frame.get("repeated"),
        "forwarded": observed,
    }
    return WARN, "frame refused", fields


def _approval(record: Record) -> tuple[str, str, dict[str, Any]]:
    approval, call = record.body["approval"], record.body["call"]
    fields = {
        "tool": call["tool_name"],
        "correlation_id": call["call_id"],
        "outcome": approval["outcome"],
        "decided_by": approval["decided_by"] or None,
        "channel": approval["channel"] or None,
        "forwarded": approval["executes"],
    }
    return INFO, "approval decided", fields


def _rejected(record: Record) -> tuple[str, str, dict[str, Any]]:
    agent = record.body.get("agent") or {}
    fields = {name: agent.get(name) for name in ("method", "reason", "repeated")}
    return WARN, "agent turned away", fields


def _exited(record: Record) -> tuple[str, str, dict[str, Any]]:
    facts = dict(record.body.get("server") or {})
    # If the gate stopped the server, the log already has that change of state.
    level = {"stopped": DEBUG, STOPPED_BY_HAND: INFO}.get(facts.get("cause", ""), WARN)
    return level, "server ended", facts


def _unreachable(record: Record) -> tuple[str, str, dict[str, Any]]:
    facts = dict(record.body.get("server") or {})
    is_degraded = facts.get("state") == "degraded"
    return WARN, "server degraded" if is_degraded else "server unreachable", facts


def _recovered(record: Record) -> tuple[str, str, dict[str, Any]]:
    return INFO, "server recovered", dict(record.body.get("server") or {})


_DESCRIBERS: Final = {
    events.CALL_DECISION: _decision,
    events.CONTENT_FOUND: _content,
    events.CALL_END: _ended,
    events.FRAME_REFUSED: _frame,
    events.APPROVAL_DECIDED: _approval,
    events.AGENT_AUTH_REJECTED: _rejected,
    events.SERVER_EXITED: _exited,
    events.SERVER_UNREACHABLE: _unreachable,
    events.SERVER_RECOVERED: _recovered,
}
