"""Questions about changed policies, in the same queue as those about calls.

Every gate that uses a config file may ask; the store joins questions about the same change. The
decision is made by the approvers of the policy in force, never by an agent and never by a timeout.

What was accepted is compared when a gate starts, always from the file in the state directory: a
changed ``store`` in the config must not decide what was accepted. With a store that several gates
share, each gate that takes an accepted policy therefore accepts it there as well.
"""

import contextlib
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import (
    DENIED,
    PENDING,
    POLICY_KIND,
    POLICY_OWNER,
    USED,
    WITHDRAWN,
    Approval,
    Refusal,
    Reviewer,
    may_vote,
)
from thoughtgate.errors import StoreError
from thoughtgate.policy.policy import DEFAULT_WORKFLOW
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.database import Database
from thoughtgate.stores.policies import PolicyFile, PolicyStore

OWN_NAME: Final = "thoughtgate"
"""The server of a question about a policy: ThoughtGate itself asks."""

_ID_ATTEMPTS: Final = 8
"""Short ids may collide; eight collisions in a row mean a broken random source."""


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


class Answer(NamedTuple):
    """What became of a question."""

    status: str
    """``pending``, ``accepted``, ``refused`` or ``expired``."""
    approval: str = ""
    """The id of the question; empty if there is none."""
    by: str = ""


ACCEPTED: Final = "accepted"
REFUSED: Final = "refused"
LAPSED: Final = "expired"

_STATUSES: Final = {PENDING: PENDING, USED: ACCEPTED, DENIED: REFUSED}


class PolicyQuestions:
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
        self._store = store
        self._policies = store.policies()
        self._workflow = workflow
        self._tell = tell
        self._new_id = new_id
        self._open_local = open_local
        self._asked: set[str] = set()
        """The questions that this process showed, whose outcome it must show as well."""

    def rev(self) -> int:
        """Return a number that grows with every change of the store; 0 if it cannot be read."""
        try:
            return self._policies.rev()
        except StoreError:
            return 0

    def ask(self, question: PolicyQuestion, at: float) -> Answer:
        """Ask about a change, or join the question that another gate asked about it."""
        workflow = self._workflow(question.workflow) or WorkflowSettings(DEFAULT_WORKFLOW)
        asked = _approval(question, workflow, at)
        stored: Approval | Refusal = Refusal("taken", "no free id was found")
        try:
            self._policies.offer(question.file, at)
            for _ in range(_ID_ATTEMPTS):
                asked = asked._replace(id=self._new_id())
                stored = self._store.ask_about_policy(asked, at)
                if isinstance(stored, Approval) or stored.kind != "taken":
                    break
        except StoreError:
            return Answer(LAPSED)
        if isinstance(stored, Refusal):
            return Answer(LAPSED)
        if stored.id == asked.id:
            self._asked.add(stored.id)
            self._tell(stored, False)
        return _answer(stored)

    def follow(self, approval: str, at: float) -> Answer:
        """Return what became of a question."""
        try:
            if self._store.has_due(at):
                self._store.settle_due(at)
            found = self._store.get(approval)
        except StoreError:
            return Answer(PENDING, approval)
        if isinstance(found, Refusal):
            return Answer(LAPSED, approval)
        if found.status != PENDING and found.id in self._asked:
            self._asked.discard(found.id)
            self._tell(found, True)
        return _answer(found)

    def withdraw(self, approval: str, reason: str, at: float) -> None:
        """Withdraw a question about a change that is gone."""
        try:
            closed = self._store.withdraw(approval, reason, at)
        except StoreError:
            return
        if isinstance(closed, Approval) and closed.id in self._asked:
            self._asked.discard(closed.id)
            self._tell(closed, True)

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
    refused = may_vote(_approval(question, workflow, 0.0), Reviewer(by))
    if refused is not None:
        return refused.text
    return f"{workflow.required} people must accept it" if workflow.required > 1 else ""


def _approval(question: PolicyQuestion, workflow: WorkflowSettings, at: float) -> Approval:
    return Approval(
        id="",
        call_id="",
        digest=question.digest,
        server=OWN_NAME,
        kind=POLICY_KIND,
        tool=question.file.path,
        arguments=json.dumps(question.shown, ensure_ascii=False),
        folded=False,
        principal="",
        session="",
        workflow=workflow.name,
        channel=workflow.channel,
        rule="",
        reason=question.reason,
        policy_version=question.policy_version,
        created_at=at,
        expires_at=at + workflow.timeout_s,
        required=workflow.required,
        approvers=workflow.approvers,
        # Silence, the agent's own prompt and a remembered answer accept no policy.
        on_timeout="deny",
        elicitation=False,
        remember=False,
        owner=POLICY_OWNER + question.file.digest,
    )


def _answer(found: Approval) -> Answer:
    status = _STATUSES.get(found.status, LAPSED)
    decider = found.decider if found.status != WITHDRAWN else None
    return Answer(status, found.id, decider.by if decider is not None else "")
