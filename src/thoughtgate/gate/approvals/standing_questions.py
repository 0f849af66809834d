"""Questions that belong to no call, in the same queue as those about calls.

They are about a changed policy or about changed definitions of a server. Every gate that is
concerned may ask; the store joins questions about the same change. The decision is made by the
approvers of the policy in force, never by an agent and never by a timeout.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import DENIED, PENDING, USED, WITHDRAWN, Approval, Refusal
from thoughtgate.errors import StoreError
from thoughtgate.policy.policy import DEFAULT_WORKFLOW
from thoughtgate.stores.approvals import ApprovalStore

ID_ATTEMPTS: Final = 8
"""Short ids may collide; eight collisions in a row mean a broken random source."""


Asking = tuple[
    ApprovalStore,
    Callable[[str], WorkflowSettings | None],
    Callable[[Approval, bool], None],
    Callable[[], str],
]
"""What is needed to ask: the store, the workflows, the channels, and new ids."""


class StandingQuestion(NamedTuple):
    """Something that a person must accept, although no call waits for it."""

    kind: str
    """One of ``core.approval.STANDING_KINDS``."""
    server: str
    """The server that is concerned."""
    subject: str
    """What has changed: there is one question about it at a time."""
    owner: str
    """Identifies what would be accepted, with the prefix of the kind."""
    digest: str
    """Digest of the change: the same change has the same one at every gate."""
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


class StandingQuestions:
    """Asks people, and follows their answers."""

    def __init__(
        self,
        store: ApprovalStore,
        workflow: Callable[[str], WorkflowSettings | None],
        tell: Callable[[Approval, bool], None],
        new_id: Callable[[], str],
    ) -> None:
        """Ask through ``store``; ``tell`` shows a request, or its outcome, in its channel."""
        self._store = store
        self._workflow = workflow
        self._tell = tell
        self._new_id = new_id
        self._asked: set[str] = set()
        """The questions that this process showed, whose outcome it must show as well."""

    def put(self, question: StandingQuestion, at: float) -> Answer:
        """Ask about a change, or join the question that another gate asked about it."""
        workflow = self._workflow(question.workflow) or WorkflowSettings(DEFAULT_WORKFLOW)
        asked = as_approval(question, workflow, at)
        stored: Approval | Refusal = Refusal("taken", "no free id was found")
        try:
            for _ in range(ID_ATTEMPTS):
                asked = asked._replace(id=self._new_id())
                stored = self._store.ask_standing(asked, at)
                if isinstance(stored, Approval) or stored.kind != "taken":
                    break
        except StoreError:
            return Answer(LAPSED)
        if isinstance(stored, Refusal):
            return Answer(LAPSED)
        # Another id means that the store joined it with the question of another gate.
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


def as_approval(question: StandingQuestion, workflow: WorkflowSettings, at: float) -> Approval:
    """Return a question as it is stored; it has no id yet."""
    return Approval(
        id="",
        call_id="",
        digest=question.digest,
        server=question.server,
        kind=question.kind,
        tool=question.subject,
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
        # Silence, the agent's own prompt and a remembered answer accept nothing of this kind.
        on_timeout="deny",
        elicitation=False,
        remember=False,
        owner=question.owner,
    )


def _answer(found: Approval) -> Answer:
    status = _STATUSES.get(found.status, LAPSED)
    decider = found.decider if found.status != WITHDRAWN else None
    return Answer(status, found.id, decider.by if decider is not None else "")
