"""Operations of the console on approvals and grants, for one reviewer.

They read and vote through the shared store, as every other channel does; each method runs a few
short statements. The web package renders the results.
"""

import contextlib
from collections.abc import Callable
from typing import Final

from thoughtgate.channels import console_channel as channel
from thoughtgate.core.approval import OPEN, PENDING, Approval, Refusal, Reviewer, Vote
from thoughtgate.core.grant import Grant, Remember
from thoughtgate.errors import StoreError
from thoughtgate.gate.approvals.queue import new_approval_id, open_store
from thoughtgate.gate.clock import now
from thoughtgate.status.definition_changes import DefinitionChanges
from thoughtgate.status.request_context import (
    EarlierAnswers,
    ToolFacts,
    find_earlier,
    find_tool,
)
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.stores.pins import PinStore

LOOK_BACK: Final = 400
"""Number of recent changes that are searched for closed requests; each request has two or three."""


class ApprovalActions:
    """Pending and closed approval requests, and grants."""

    def __init__(
        self, store: ApprovalStore, by: str = "", *, clock: Callable[[], float] = now
    ) -> None:
        """Vote through ``store`` as ``by``; by default the user of this process."""
        self._store = store
        self.by = by or channel.identity()
        self.clock = clock

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def definitions(self) -> DefinitionChanges:
        """Return the definitions that nobody has accepted, in the same store."""
        return DefinitionChanges(self._store)

    def pins(self) -> PinStore:
        """Return the pinned definitions, in the same store."""
        return self._store.pins()

    def rev(self) -> int:
        """Return a number that changes with every change of the store."""
        return self._store.rev()

    def tidy(self) -> None:
        """Close requests for which no caller waits any more; runs before the inbox is shown."""
        at = self.clock()
        # A store that cannot be written can still be read.
        with contextlib.suppress(StoreError):
            if self._store.has_due(at):
                self._store.settle_due(at)

    def pending(self) -> list[Approval]:
        """Return the pending approval requests, oldest first."""
        self.tidy()
        return self._store.listed(PENDING)

    def answered(self, limit: int) -> list[Approval]:
        """Return the approval requests that were closed last, newest first."""
        changed = self._store.since(self._store.rev() - LOOK_BACK)
        closed = [each for each in changed if each.status != PENDING]
        return closed[::-1][:limit]

    def get(self, ident: str) -> Approval | Refusal:
        """Return an approval request by its whole id."""
        found = self._store.get(ident)
        # The store also finds unique prefixes, but links and forms always have the whole id.
        if isinstance(found, Approval) and found.id != ident:
            return Refusal("unknown", f"there is no approval {ident}")
        if isinstance(found, Approval) and found.status in OPEN:
            self.tidy()
            found = self._store.get(ident)
        return found

    def tool_facts(self, asked: Approval) -> ToolFacts | None:
        """Return what is known about the tool of a request; None if it is about no tool."""
        return find_tool(self._store, asked)

    def earlier(self, asked: Approval) -> EarlierAnswers:
        """Return how the same call, and other calls of the same tool, were answered recently."""
        return find_earlier(self._store, asked)

    def decide(
        self,
        ident: str,
        *,
        approve: bool,
        reason: str = "",
        remember: Remember | None = None,
        digest: str = "",
        reviewer: Reviewer | None = None,
    ) -> Approval | Refusal:
        """Vote on the call with this digest; with ``remember`` also on later calls."""
        at, by = self.clock(), reviewer or Reviewer(self.by)
        vote = Vote(by.by, approve, at, reason, by.groups, by.issuer)
        return self._store.vote(
            ident,
            [vote],
            at,
            remember=remember if approve else None,
            grant_id=new_approval_id(),
            digest=digest,
        )

    def argument_parts(self, ident: str) -> int:
        """Return the number of pages of arguments that are too long for one page."""
        return self._store.argument_parts(ident)

    def argument_part(self, ident: str, part: int) -> str:
        """Return one page of long arguments, counted from 0."""
        return self._store.argument_part(ident, part)

    def count(self, ident: str, vote: Vote) -> Approval | Refusal:
        """Count the vote of a reviewer who was identified by other means than the console's."""
        return self._store.vote(ident, [vote], self.clock())

    def grants(self) -> list[Grant]:
        """Return the grants in force, oldest first."""
        return self._store.grants(self.clock())

    def revoke(self, grant_id: str) -> Grant | Refusal:
        """Revoke a grant."""
        return self._store.revoke_grant(grant_id)


def open_approval_actions(location: StoreLocation | str) -> ApprovalActions:
    """Open the console's actions on a store, or on that of a state directory.

    Raises:
        StoreError: the store cannot be opened.
    """
    return ApprovalActions(open_store(location))
