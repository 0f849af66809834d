"""What the governance service knows of one shim, and whether it still lives.

A shim says hello with its process id. That number is believed only if it names a living
process at that moment: a shim in a sandbox counts its own processes, and ours must not be
mistaken for them. The same holds for the process group of its server.
"""

import contextlib
import math
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from thoughtgate.core.events import Event
from thoughtgate.core.record_events import (
    CALL_END,
    CANCELLED,
    ERROR,
    FRAME_REFUSED,
    MESSAGE,
    SERVER_EXITED,
    SERVER_STARTED,
    Record,
    call_ended,
)
from thoughtgate.errors import PeerError
from thoughtgate.gate.run_file import has_ended
from thoughtgate.stores.process_owner import name_of
from thoughtgate.wire.replies import MESSAGES

LOST_AFTER_S: Final = 15.0
"""A shim whose process is not known is gone after the silence of three heartbeats."""

MAX_OPEN_CALLS: Final = 100_000
"""Calls of one shim without an end: as many as a session may have open requests."""

MAX_SKEW_S: Final = 86_400.0
"""How old an event may be that a shim hands over: a night with the lid closed."""

_REPORTED: Final = frozenset({MESSAGE, FRAME_REFUSED, CALL_END, SERVER_STARTED, SERVER_EXITED})
"""The types of event that only a shim can see; everything else the service records itself."""

_PARTS: Final = 3
"""A record on the way to the service: type, time, body."""


class UnfinishedCall(NamedTuple):
    """A call that was judged and whose end the shim has not told."""

    tool: str
    refused: str = ""
    """The kind of error when the verdict was a refusal: then no server has seen the call."""

    def end(
        self, call_id: str, session: "ShimSession", at: float, *, unsent: bool = False
    ) -> Record:
        """Return the end of a call whose shim left without a word of it.

        ``unsent`` says that the shim had not heard yet that the call may be made.
        """
        kind = self.refused or "service_unavailable"
        error = {
            "class": "policy_block" if self.refused or unsent else "transport",
            "kind": kind,
            "message": MESSAGES[kind] if self.refused else "the shim is gone",
        }
        return call_ended(
            at,
            session.server,
            session.id,
            call_id=call_id,
            tool=self.tool,
            status=ERROR if self.refused else CANCELLED,
            latency_ms=0,
            size=0,
            error=error,
        )


@dataclass(slots=True)
class ShimSession:
    """One shim, from its hello to its goodbye."""

    id: str
    server: str
    seen_at: float
    pid: int = 0
    """Its process; 0 when that is not known."""
    group: int = 0
    """Process group of its server, once it has told."""
    open_calls: dict[str, UnfinishedCall] = field(default_factory=dict)
    """Calls without an end."""
    told: list[Event] = field(default_factory=list)
    """What its session must know of tasks and was not yet told."""

    @property
    def owner(self) -> str:
        """In whose name people are asked for it: its question ends with its process."""
        return name_of(self.pid) if self.pid else ""

    def is_gone(self, at: float) -> bool:
        """Tell whether the shim has ended without a word. One that is stopped is not gone."""
        if self.pid:
            return has_ended(self.pid)
        return self.seen_at < at - LOST_AFTER_S

    def follow_server(self, facts: Any) -> None:
        """Note the group of the server that the shim has started."""
        pid = facts.get("pid") if isinstance(facts, dict) else None
        if isinstance(pid, int) and pid > 1 and self.pid and is_child(pid, self.pid):
            self.group = pid

    def end_server(self) -> None:
        """Kill what is left of the server of a shim that could not do it itself."""
        if self.group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
            self.group = 0


def known_process(pid: Any) -> int:
    """Return a process id that a shim told, or 0 when no such process is to be seen here."""
    if not isinstance(pid, int) or pid <= 1 or has_ended(pid):
        return 0
    return pid


def is_child(pid: int, parent: int) -> bool:
    """Tell whether a process leads a group and, where the system says so, is a child of another."""
    try:
        if os.getpgid(pid) != pid:
            return False
        facts = Path("/proc", str(pid), "stat").read_text("utf-8", "replace")
    except ProcessLookupError:
        return False
    except OSError:
        # No /proc here: the group is all there is to go by.
        return True
    return facts.rpartition(")")[2].split()[1] == str(parent)


def read_record(item: Any, server: str, session: str, at: float) -> Record:
    """Return an event that a shim hands over.

    Raises:
        PeerError: a shim does not say such things.
    """
    if not isinstance(item, list) or len(item) != _PARTS:
        wrong("a record is a list of type, time and body")
    kind, when, body = item
    if not isinstance(kind, str) or kind not in _REPORTED or not isinstance(body, dict):
        wrong("a shim does not report such events")
    if not isinstance(when, int | float) or not math.isfinite(when) or abs(when - at) > MAX_SKEW_S:
        wrong("the time of a record is that of its event")
    if kind == CALL_END:
        call = body.get("call")
        if not isinstance(call, dict) or not isinstance(call.get("call_id"), str):
            wrong("the end of a call names the call")
        if not isinstance(body.get("status"), str) or not isinstance(body.get("error") or {}, dict):
            wrong("the end of a call has a status, and an error if there was one")
    return Record(kind, float(when), server, session, body)


def string_of(body: dict[str, Any], key: str) -> str:
    """Return a member of a request that must be a string.

    Raises:
        PeerError: it is not.
    """
    value = body.get(key)
    if not isinstance(value, str):
        wrong(f"{key} must be a string")
    return value


def wrong(text: str) -> NoReturn:
    """Refuse what a shim says."""
    raise PeerError("invalid_params", text)
