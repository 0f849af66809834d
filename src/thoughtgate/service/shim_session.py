"""The governance service's state for one shim, and whether the shim is still alive.

A shim sends its process id when it connects. The id is used only if a process with it is running
at that moment: a shim in a container has process ids of another namespace, which must not be
mistaken for ours. The same applies to the process group of its server.
"""

import contextlib
import math
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from thoughtgate.core.commands import CONTENT_SEEN
from thoughtgate.core.events import Event
from thoughtgate.core.record_events import (
    CALL_END,
    CANCELLED,
    ERROR,
    FRAME_REFUSED,
    MESSAGE,
    OUTCOME_UNKNOWN,
    REQUEST_FAILED,
    SERVER_EVENTS,
    Record,
    call_ended,
)
from thoughtgate.errors import PeerError
from thoughtgate.gate.run_file import has_ended
from thoughtgate.stores.process_owner import name_of
from thoughtgate.wire.replies import MESSAGES

LOST_AFTER_S: Final = 15.0
"""A shim with an unknown process is declared lost after three missed heartbeats."""

MAX_OPEN_CALLS: Final = 100_000
"""Maximum open calls of one shim; a session may have as many open requests."""

MAX_SKEW_S: Final = 86_400.0
"""Maximum age of a reported event; a laptop's lid may be closed overnight before it is sent."""

_REPORTED: Final = frozenset(
    {MESSAGE, FRAME_REFUSED, REQUEST_FAILED, CALL_END, CONTENT_SEEN, *SERVER_EVENTS}
)
"""Event types that only a shim can observe; the service records all others itself."""

_PARTS: Final = 3
"""Length of a reported event: type, time, body."""


_MAY_HAVE_RUN: Final = "the shim ended while the call ran; whether it took effect is not known"


class UnfinishedCall(NamedTuple):
    """A call that was judged and whose end the shim has not reported."""

    tool: str
    refused: str = ""
    """The kind of error if the call was refused, in which case the server has not seen it."""

    def end(
        self, call_id: str, session: "ShimSession", at: float, *, unsent: bool = False
    ) -> Record:
        """Return the end of a call whose shim left without reporting it.

        ``unsent`` says that the shim had not yet learned that the call was allowed.
        """
        if self.refused:
            group, kind, message = "policy_block", self.refused, MESSAGES[self.refused]
        elif unsent:
            group, kind, message = "policy_block", "service_unavailable", "the shim is gone"
        else:
            group, kind, message = "unknown", OUTCOME_UNKNOWN, _MAY_HAVE_RUN
        return call_ended(
            at,
            session.server,
            session.id,
            call_id=call_id,
            tool=self.tool,
            status=CANCELLED if unsent and not self.refused else ERROR,
            latency_ms=0,
            size=0,
            error={"class": group, "kind": kind, "message": message},
        )


@dataclass(slots=True)
class ShimSession:
    """One shim, from its first heartbeat to its goodbye."""

    id: str
    server: str
    seen_at: float
    pid: int = 0
    """Its process id; 0 if unknown."""
    group: int = 0
    """Process group of its server, once reported."""
    open_calls: dict[str, UnfinishedCall] = field(default_factory=dict)
    """Calls that have not ended."""
    told: list[Event] = field(default_factory=list)
    """Task events that its session has not received yet."""

    @property
    def owner(self) -> str:
        """The owner of its approval requests: they end with the shim's process."""
        return name_of(self.pid) if self.pid else ""

    def is_gone(self, at: float) -> bool:
        """Tell whether the shim has exited without a goodbye. A stopped process (Ctrl-Z) has not."""
        # Its process is better evidence than silence: a stopped shim sends no heartbeats.
        if self.pid:
            return has_ended(self.pid)
        return self.seen_at < at - LOST_AFTER_S

    def follow_server(self, facts: Any) -> None:
        """Store the process group of the server that the shim has started."""
        # Checked, because the group gets SIGKILL later: a false report must not choose a victim.
        pid = facts.get("pid") if isinstance(facts, dict) else None
        if isinstance(pid, int) and pid > 1 and self.pid and is_child(pid, self.pid):
            self.group = pid

    def end_server(self) -> None:
        """Kill what is left of a server whose shim could not stop it."""
        if self.group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
            self.group = 0


def known_process(pid: Any) -> int:
    """Return a reported process id, or 0 if no such process is visible here."""
    if not isinstance(pid, int) or pid <= 1 or has_ended(pid):
        return 0
    return pid


def is_child(pid: int, parent: int) -> bool:
    """Tell whether a process leads its group and, if the system can tell, is a child of ``parent``."""
    try:
        if os.getpgid(pid) != pid:
            return False
        facts = Path("/proc", str(pid), "stat").read_text("utf-8", "replace")
    except ProcessLookupError:
        return False
    except OSError:
        # Without /proc only the process group can be checked.
        return True
    return facts.rpartition(")")[2].split()[1] == str(parent)


def read_record(item: Any, server: str, session: str, at: float) -> Record:
    """Parse an event that a shim reports.

    Raises:
        PeerError: a shim does not report such events.
    """
    if not isinstance(item, list) or len(item) != _PARTS:
        wrong("a record is a list of type, time and body")
    kind, when, body = item
    if not isinstance(kind, str) or kind not in _REPORTED or not isinstance(body, dict):
        wrong("a shim does not report such events")
    if not isinstance(when, int | float) or not math.isfinite(when) or abs(when - at) > MAX_SKEW_S:
        wrong("the time of a record must be a number, and within a day of now")
    if kind == REQUEST_FAILED and not isinstance(body.get("request"), dict):
        wrong("a failed request is described")
    if kind == CONTENT_SEEN and not isinstance(body.get("call_id"), str):
        wrong("a message to inspect names its call")
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
        PeerError: it is not a string.
    """
    value = body.get(key)
    if not isinstance(value, str):
        wrong(f"{key} must be a string")
    return value


def wrong(text: str) -> NoReturn:
    """Reject a request of a shim."""
    raise PeerError("invalid_params", text)
