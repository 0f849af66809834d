"""The record as all faces must write it: what a scenario expects, and what is left out.

An event is compared whole, member by member, but for ``EXEMPT``. Every entry there has its
reason; a member that is missing from the table must be the same through every face.
"""

import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any, Final, Self

from tests.faces.face import SERVER, Gate

Event = dict[str, Any]

EXEMPT: Final[dict[str, str]] = {
    "ts": "the time of day",
    "run_id": "new for every run",
    "source": "names the machine and the process",
    "session_id": "numbers the agent's session: stdio has one, HTTP one for each client",
    "seq": "counts all events of the writer, also those of other scenarios",
    "stream": "depends on how much traffic other scenarios caused: beyond a share, it has its own file",
    "chain": "a digest over everything above",
    "call.call_id": "holds the run's id",
    "call.message_id": "each agent numbers its requests",
    "peer": "has an address over HTTP only, and nothing without a session; see `test_identity`",
    "call.address": "over HTTP only; see `test_identity`",
    "call.client": "in requests of revision 2026-07-28 only; see `test_identity`",
    "frame.address": "over HTTP only; see `test_correlation`",
    "call.seq": "counts the calls of the run, also those of other scenarios",
    "call.transport": "the agent's transport is what faces differ in; see `test_transport_on_record`",
    "call.bytes_in": "the size of the request: serve puts the server's id before names",
    "bytes_out": "the size of the answer: serve words its own, and HTTP has no line end",
    "latency_ms": "a duration",
    "decision.policy.policy_version": "a digest of the config, which names the server's place",
    "decision.policy.policy_hash": "the same digest",
    "decision.backoff_ms": "a duration",
    "approval.approval_id": "random",
    "approval.digest": "holds the policy's digest",
    "approval.expires_at": "a time",
    "approval.votes[].at": "a time",
    "frame.bytes": "a size, as `call.bytes_in`",
    "frame.correlation_id": "random",
    "message.bytes": "a size, as `call.bytes_in`",
    "list.entries": "digests of the server's entries; compared by the tests of definitions",
    "server.pid": "a process id",
}
"""Member -> why it may differ between faces."""

CLIENT: Final = "faces 1"
"""What the agents of these tests say they are."""


def canonical(arguments: Any) -> str:
    """Return arguments as the record's preview has them; the suite's are plain ASCII."""
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"))


def view(event: Event) -> Event:
    """Return an event without the exempt members."""
    seen = copy.deepcopy(event)
    for path in EXEMPT:
        _drop(seen, path.split("."))
    return seen


def _drop(value: Any, path: list[str]) -> None:
    name, *rest = path
    if name.endswith("[]"):
        for each in value.get(name[:-2]) or []:
            _drop(each, rest)
    elif not rest:
        value.pop(name, None)
    elif isinstance(value.get(name), dict):
        _drop(value[name], rest)


def event(kind: str, server: str = SERVER, profile: str = "production", **body: Any) -> Event:
    """Return an event with the envelope that every face must write."""
    return {
        "v": "1.3",
        "type": kind,
        "agent_id": "unknown",
        "client": "unknown",
        "env": "unknown",
        "profile": profile,
        "server_name": server,
        **body,
    }


class CallRecord:
    """The events of one call, as a scenario expects them; each method adds what happened next."""

    def __init__(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        kind: str = "tool",
        method: str = "tools/call",
        profile: str = "production",
        extra: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        text = canonical(arguments)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._short = {"server_name": SERVER, "tool_name": name, "args_hash": digest}
        if extra is not None:
            shown = canonical(extra)
            self._short["extra_hash"] = hashlib.sha256(shown.encode()).hexdigest()
            more["extra"] = {"truncated": False, "preview": shown}
        self._profile = profile
        preview = {"truncated": False, "args_preview": text}
        self.events: list[Event] = []
        facts = {"kind": kind, "method": method, "principal": "local", "preview": preview}
        self._add("tool_call_start", call={**self._short, **facts, **more})

    def _add(self, kind: str, **body: Any) -> Self:
        self.events.append(
            event(kind, profile=self._profile, **{"call": dict(self._short), **body})
        )
        return self

    def decided(
        self, action: str, gate: str, rule: str | None, code: str, summary: str, **more: Any
    ) -> Self:
        """The gates decided."""
        decision = {
            "action": action,
            "gate": gate,
            "rule_id": rule,
            "severity": "info" if action == "ALLOW" else "warn",
            "explain": {"summary": summary, "reason_code": code},
            "policy": {"policy_id": "config"},
            "enforced": True,
            **more,
        }
        return self._add("tool_call_decision", decision=decision)

    def allowed(self, rule: str | None, gate: str = "rules", summary: str = "") -> Self:
        """The gates let it through."""
        return self.decided("ALLOW", gate, rule, "FORWARD", summary)

    def blocked(self, gate: str, rule: str | None, kind: str, summary: str, message: str) -> Self:
        """The gates refused it, which ends it."""
        self.decided("BLOCK", gate, rule, kind.upper(), summary)
        return self.refused(kind, message)

    def refused(self, kind: str, message: str) -> Self:
        """The call ends with an error of the gate's own."""
        return self.ended("ERROR", {"class": "policy_block", "kind": kind, "message": message})

    def held(
        self, rule: str, workflow: str = "default", gate: str = "rules", summary: str = ""
    ) -> Self:
        """A person is asked."""
        self.decided("HOLD", gate, rule, "APPROVE", summary, workflow=workflow)
        approval = {"workflow": workflow, "rule_id": rule, "channel": "console", "required": 1}
        approval["client"] = CLIENT
        return self._add("approval_requested", approval=approval)

    def answered(self, outcome: str, *, executes: bool, kind: str | None, **more: Any) -> Self:
        """The question was answered, or given up."""
        approval = {
            "workflow": "default",
            "outcome": outcome,
            "decided_by": "",
            "channel": "",
            "reason": "",
            "auto_approved": False,
            "executes": executes,
            "kind": kind,
            "client": CLIENT,
            **more,
        }
        return self._add("approval_decided", approval=approval)

    def withdrawn(self, reason: str, **more: Any) -> Self:
        """Nobody waits for the answer any more."""
        kind = "approval_withdrawn"
        return self.answered("withdrawn", executes=False, kind=kind, reason=reason, **more)

    def ended(self, status: str, error: Any = None, **more: Any) -> Self:
        """The call is over."""
        body = {"status": status, "preview": {"truncated": True}, **more}
        return self._add("tool_call_end", **body, **({"error": error} if error else {}))


def calls_on_record(gate: Gate, mark: str) -> list[list[Event]]:
    """Return the events of every call that carries a mark, by call, in order."""
    found: dict[str, list[Event]] = {}
    for one in gate.records():
        call = one.get("call")
        if not call:
            continue
        if one["type"] == "tool_call_start" and (
            mark == call["tool_name"] or mark in call["preview"]["args_preview"]
        ):
            found[call["call_id"]] = []
        if call["call_id"] in found:
            found[call["call_id"]].append(one)
    return list(found.values())


def check_calls(gate: Gate, mark: str, *expected: CallRecord) -> None:
    """Fail unless the calls that carry a mark are on record exactly as expected."""
    wanted = [len(one.events) for one in expected]
    gate.wait(
        lambda: (
            [len(one) for one in calls_on_record(gate, mark)] == wanted
            or _is_wrong_already(gate, mark, expected)
        ),
        f"{len(expected)} calls with {sum(wanted)} events about {mark!r}; on record: "
        f"{[[one['type'] for one in call] for call in calls_on_record(gate, mark)]}",
    )
    found = calls_on_record(gate, mark)
    differ = differences(
        [[view(one) for one in call] for call in found], [one.events for one in expected]
    )
    assert not differ, f"the record of {mark!r} differs:\n" + "\n".join(differ)


def differences(found: Any, expected: Any, place: str = "") -> list[str]:
    """Return where two values differ, one line for each place."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = sorted(found.keys() | expected.keys())
        return [
            line
            for name in names
            for line in differences(found.get(name), expected.get(name), f"{place}.{name}")
        ]
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for at, pair in pairs for line in differences(*pair, place=f"{place}[{at}]")]
    return [] if found == expected else [f"{place}: found {found!r}, expected {expected!r}"]


def _is_wrong_already(gate: Gate, mark: str, expected: tuple[CallRecord, ...]) -> bool:
    """Tell whether waiting longer cannot help: an event is there that was not expected."""
    for call, wanted in zip(calls_on_record(gate, mark), expected, strict=False):
        types = [one["type"] for one in call]
        if types != [one["type"] for one in wanted.events][: len(types)]:
            return True
    return False


def events_since(gate: Gate, start: int, kind: str) -> list[Event]:
    """Return the views of events of a type that were written after the first ``start``."""
    return [view(one) for one in gate.records()[start:] if one["type"] == kind]


def wait_for_event(gate: Gate, start: int, kind: str, fits: Callable[[Event], bool]) -> Event:
    """Wait for an event of a type that fits, and return its view."""

    def found() -> Event | None:
        return next((one for one in events_since(gate, start, kind) if fits(one)), None)

    event_found: Event = gate.wait(
        found, f"a {kind} event; on record: {events_since(gate, start, kind)}"
    )
    return event_found
