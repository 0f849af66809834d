"""Data and operations of the terminal interface: blocking calls, to be made outside its loop."""

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.channels.terminal import identity, render_question
from thoughtgate.core.approval import Refusal
from thoughtgate.core.grant import Remember
from thoughtgate.errors import UsageError
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.approvals.started_by_agent import require_person
from thoughtgate.gate.clock import now
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.status.approval_actions import ApprovalActions
from thoughtgate.status.overview import gather_status
from thoughtgate.status.server_control import ask_gate, read_log
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.wire.json_text import lay_out_part

CALLS_SHOWN: Final = 100


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

    def look(self) -> dict[str, Any]:
        """Return the same data as ``thoughtgate status``."""
        return gather_status(self._environ, CALLS_SHOWN, self._location)

    def act(self, operation: str, key: ServerKey) -> str:
        """Start, stop or restart a server; return what happened.

        Raises:
            PeerGone: the gate has exited.
            PeerError: the gate refused; the message says why.
        """
        return str(ask_gate(self._state, key.gate, operation, key.server))

    def logs(self, key: ServerKey) -> list[str]:
        """Return the last lines of a server's log."""
        return read_log(self._state, key.gate, key.server)

    def call_page(self, approval: str, page: int) -> tuple[str, int]:
        """Return one page of a whole call, and the number of pages.

        The first page has all there is to say, and short arguments; long ones follow in parts.

        Raises:
            UsageError: there is no such approval.
        """
        with closing(open_store(self._location)) as store:
            found = store.get(approval)
            if isinstance(found, Refusal):
                raise UsageError(found.text)
            parts = store.argument_parts(found.id)
            at = min(page, parts)
            if at:
                return lay_out_part(store.argument_part(found.id, at - 1)), parts + 1
            return render_question(found, now(), whole=True), parts + 1

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
