"""Questions about changed policies; see ``standing_questions`` for how they are asked.

A gate that starts compares its policy with the accepted one from the file in the state directory,
never from a shared store: a changed ``store`` in the config must not decide what was accepted. With
a shared store, each gate that applies an accepted policy therefore accepts it in its own file too.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import POLICY_KIND, POLICY_OWNER, Approval, Reviewer, may_vote
from thoughtgate.errors import StoreError
from thoughtgate.gate.approvals.standing_questions import (
    LAPSED,
    Answer,
    StandingQuestion,
    StandingQuestions,
    as_approval,
)
from thoughtgate.policy.policy import DEFAULT_WORKFLOW
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.database import Database
from thoughtgate.stores.policies import PolicyFile, PolicyStore

OWN_NAME: Final = "thoughtgate"
"""The server of a question about a policy: ThoughtGate itself asks."""


class PolicyQuestion(NamedTuple):
    """A changed policy that a person must accept."""

    file: PolicyFile
    digest: str
    """Digest of the change: the same files with the same texts have the same one."""
    shown: dict[str, Any]
    """The readable difference."""
    reason: str
    policy_version: str
    """The version of the policy in force."""
    workflow: str = DEFAULT_WORKFLOW
    """The workflow of the policy in force whose approvers decide."""

    def standing(self) -> StandingQuestion:
        """Return the question as the queue takes it."""
        return StandingQuestion(
            POLICY_KIND,
            OWN_NAME,
            self.file.path,
            POLICY_OWNER + self.file.digest,
            self.digest,
            self.shown,
            self.reason,
            self.policy_version,
            self.workflow,
        )


class PolicyQuestions(StandingQuestions):
    """Asks people about changed policies, and knows what they accepted."""

    def __init__(
        self,
        store: ApprovalStore,
        workflow: Callable[[str], WorkflowSettings | None],
        tell: Callable[[Approval, bool], None],
        new_id: Callable[[], str],
        *,
        open_local: Callable[[], Database] | None = None,
    ) -> None:
        """Ask through ``store``; ``tell`` shows a request, or its outcome, in its channel.

        ``open_local`` opens the file in the state directory, if ``store`` is not in it.
        """
        super().__init__(store, workflow, tell, new_id)
        self._policies = store.policies()
        self._open_local = open_local

    def rev(self) -> int:
        """Return a number that grows with every change of the store; 0 if it cannot be read."""
        try:
            return self._policies.rev()
        except StoreError:
            return 0

    def ask(self, question: PolicyQuestion, at: float) -> Answer:
        """Ask about a change, or join the question that another gate asked about it."""
        try:
            self._policies.offer(question.file, at)
        except StoreError:
            return Answer(LAPSED)
        return self.put(question.standing(), at)

    def accepted_since(self, file: PolicyFile, rev: int) -> str:
        """Return who accepted exactly this policy after a revision; empty if nobody did."""
        try:
            found = self._policies.accepted(file.path)
        except StoreError:
            return ""
        if found is None or found.rev <= rev or found.file.digest != file.digest:
            return ""
        return found.by

    def continue_from(self, before: str, file: PolicyFile, by: str, at: float) -> None:
        """Accept a policy that replaces the one with this digest, if that one was accepted."""
        # If this fails, the next gate compares with the older policy, and asks.
        with contextlib.suppress(StoreError):
            if self._open_local is None:
                self._policies.replace(before, file, by, at)
                return
            with contextlib.closing(self._open_local()) as local:
                PolicyStore(local).replace(before, file, by, at)

    def take_accepted(self, file: PolicyFile, by: str, at: float) -> None:
        """Accept on this machine what was accepted in a store that several gates share."""
        if self._open_local is None:
            return
        with contextlib.suppress(StoreError), contextlib.closing(self._open_local()) as local:
            PolicyStore(local).accept(file, by, at)


def why_not_accept(file: PolicyFile, workflow: WorkflowSettings, by: str) -> str:
    """Return why a person cannot accept a policy alone; empty if they can."""
    question = PolicyQuestion(file, "", {}, "", "", workflow.name)
    # The same check as for a vote, although nothing is stored as a question.
    refused = may_vote(as_approval(question.standing(), workflow, 0.0), Reviewer(by))
    if refused is not None:
        return refused.text
    return f"{workflow.required} people must accept it" if workflow.required > 1 else ""
