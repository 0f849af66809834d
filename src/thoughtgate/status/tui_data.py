"""Data and operations of the terminal interface; they block, so call them outside its loop."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.channels.terminal import identity, render_question
from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.core.grant import Remember
from thoughtgate.errors import StoreError, UsageError, visible
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.approvals.started_by_agent import require_person
from thoughtgate.gate.clock import now
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.status.approval_actions import ApprovalActions
from thoughtgate.status.call_statistics import add_statistics
from thoughtgate.status.overview import find_records, gather_status
from thoughtgate.status.record_view import ConsoleRecord
from thoughtgate.status.server_control import ask_gate, read_log
from thoughtgate.status.server_status import add_totals, gather_servers
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.wire.json_text import lay_out_part

CALLS_SHOWN: Final = 200

PERIOD_S: Final = 86_400.0
"""The period of the overview and of the servers' calls, up to now."""

STALE_S: Final = 30.0
"""Age at which statistics are computed again even if nothing was recorded: old calls leave them."""


class ServerKey(NamedTuple):
    """Identifies a server of a gate."""

    gate: int
    """Process id of the gate."""
    server: str


class TuiSource:
    """Reads the status of this user's gates and controls them."""

    def __init__(
        self, environ: Mapping[str, str] | None = None, location: StoreLocation | None = None
    ) -> None:
        """Read the approvals at ``location``; by default those of the state directory."""
        self._environ = dict(os.environ if environ is None else environ)
        self._state = state_directory(self._environ)
        self._location = location or StoreLocation(Path(self._state))
        self._records: dict[Path, ConsoleRecord] = {}
        self._read: dict[str, Any] = {}
        self._read_as: tuple[Any, ...] = ()
        self._lock = threading.Lock()

    def look(self) -> dict[str, Any]:
        """Return the same data as ``thoughtgate status``, with servers, calls and statistics."""
        status = gather_status(self._environ, 0, self._location)
        with self._lock:
            try:
                read = self._read_records(self._open_records(status["gates"]))
            except StoreError as error:
                # If the connection to a shared store is broken, the next look opens a new one.
                self._close_records()
                read = {"calls": [], "stats": {}, "totals": {}, "record_problem": str(error)}
        servers = gather_servers(status["gates"], (), read["totals"])
        return {**status, **read, "servers": servers}

    def _open_records(self, gates: list[dict[str, Any]]) -> list[ConsoleRecord]:
        """Return the records of all gates of this machine, or the shared one."""
        if self._location.is_shared:
            # Imported here: it needs the optional dependency of a shared store.
            from thoughtgate.status.shared_record_view import SharedConsoleRecord

            shared = Path(self._state)
            if shared not in self._records:
                self._records[shared] = SharedConsoleRecord(None, self._location)
            return [self._records[shared]]
        found = find_records(self._state, gates)
        return [self._records.setdefault(path, ConsoleRecord(path)) for path in found]

    def _close_records(self) -> None:
        for record in self._records.values():
            record.close()
        self._records.clear()
        self._read_as = ()

    def _read_records(self, records: list[ConsoleRecord]) -> dict[str, Any]:
        """Return calls and statistics; those from before if nothing was recorded since."""
        at = now()
        state = (at // STALE_S, *((record.path, record.state()) for record in records))
        if state != self._read_as:
            calls = [call for record in records for call in record.calls(CALLS_SHOWN)]
            calls.sort(key=lambda call: call["started_at"] or 0.0, reverse=True)
            self._read = {
                "calls": calls[:CALLS_SHOWN],
                "stats": add_statistics([one.stats(at - PERIOD_S, at) for one in records]),
                "totals": add_totals([one.totals("server", at - PERIOD_S) for one in records]),
            }
            self._read_as = state
        return self._read

    def act(self, operation: str, key: ServerKey) -> str:
        """Start, stop or restart a server; return what happened.

        Raises:
            PeerGone: the gate has exited.
            PeerError: the gate refused; the message says why.
        """
        return str(ask_gate(self._state, key.gate, operation, key.server))

    def logs(self, key: ServerKey) -> list[str]:
        """Return the last lines of a server's log.

        Raises:
            PeerGone: the gate has exited, or it keeps no log.
            PeerError: the gate does not have this server.
        """
        return read_log(self._state, key.gate, key.server)

    def call_page(self, approval: str, page: int) -> tuple[str, int]:
        """Return one page of a whole call, and the number of pages.

        The first page has all there is to say, and short arguments; long ones follow in parts.

        Raises:
            UsageError: there is no such approval.
        """
        with closing(ApprovalActions(open_store(self._location), identity())) as actions:
            found = actions.get(approval)
            if isinstance(found, Refusal):
                raise UsageError(found.text)
            parts = actions.argument_parts(found.id)
            at = min(page, parts)
            if at:
                return lay_out_part(actions.argument_part(found.id, at - 1)), parts + 1
            lines = _context_lines(actions, found)
            return render_question(found, now(), whole=True) + "\n".join(lines), parts + 1

    def decide(
        self,
        approval: str,
        *,
        approve: bool,
        reason: str = "",
        digest: str = "",
        remember: Remember | None = None,
    ) -> str:
        """Vote on an approval request for the call with this digest; return the outcome.

        Raises:
            UsageError: this process may not vote, or it is too late.
        """
        require_person("tui", self._environ, self._state)
        with closing(ApprovalActions(open_store(self._location), identity())) as actions:
            counted = actions.decide(
                approval, approve=approve, reason=reason, digest=digest, remember=remember
            )
        if isinstance(counted, Refusal):
            raise UsageError(counted.text)
        return f"{counted.id} is {counted.status}"

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            self._close_records()


def _context_lines(actions: ApprovalActions, asked: Approval) -> Iterator[str]:
    """Yield what helps to decide: the tool's definition, and how calls were answered before."""
    tool = actions.tool_facts(asked)
    if tool is not None:
        by = f" by {tool.by}" if tool.by else ""
        yield f"  definition {visible(tool.status + by)}"
        if tool.description:
            yield f"  tool says  {visible(tool.description)}"
        for name, value in tool.annotations:
            yield f"             {visible(f'{name}: {value}')}"
        yield from (f"  changed    {visible(line)}" for line in tool.difference)
    earlier = actions.earlier(asked)
    if earlier.approved or earlier.denied:
        told = f"this tool was approved {earlier.approved} and denied {earlier.denied} times"
        yield f"  earlier    {told}"
    for one in earlier.same:
        by = f" by {one.decider.by}" if one.decider is not None else ""
        yield f"             the same call: {visible(one.status + by)}"
