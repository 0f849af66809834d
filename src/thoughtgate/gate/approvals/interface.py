"""The interface of an approval queue that a governor uses."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Decision, Vote
from thoughtgate.core.commands import PersonAnswered
from thoughtgate.core.elicitation import HoldNotice
from thoughtgate.core.open_calls import OpenCall
from thoughtgate.policy.redaction import Redactor


class Approvals(Protocol):
    """An approval queue: sends approval requests to people and collects their decisions."""

    def ask(
        self, call_id: str, open_call: OpenCall, workflow: str, at: float, *, owner: str = ""
    ) -> Decision | None:
        """Open an approval request for ``owner``; return a decision if there is one already."""

    def facts(self, call_id: str) -> dict[str, Any]:
        """Return what the record says about the approval request: its id, workflow, expiry."""

    def poll(self, at: float) -> list[tuple[str, Decision]]:
        """Return the decisions made since the last poll."""

    def use(self, call_id: str) -> Decision | None:
        """Use an approval; return the refusal if it was used before, or None."""

    def ended(self, call_ids: Iterable[str]) -> None:
        """Note that the end of calls whose approval was used is on the record."""

    def withdraw(self, call_id: str, reason: str, at: float) -> tuple[Vote, ...]:
        """Withdraw an approval request; return the votes that it had by then."""

    def notice(self, call_id: str) -> HoldNotice:
        """Return what the agent's program is told about a held call."""

    def answer(self, command: PersonAnswered) -> None:
        """Store the answer to a prompt as a vote."""

    def reload(
        self, workflows: Mapping[str, WorkflowSettings], redactor: Redactor, policy_version: str
    ) -> None:
        """Use these settings for approval requests from now on."""

    def close(self, at: float) -> None:
        """Withdraw every approval request of this process."""
