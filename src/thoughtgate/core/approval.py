"""State machine of one approval request, from its creation to its decision and single use.

Pure: identities, times and ids are arguments, results are values, and a refusal is a value
with a text that can be shown. Storage and channels are not known here.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.errors import visible
from thoughtgate.policy.call import Call
from thoughtgate.wire.canonical import canonical_json
from thoughtgate.wire.json_text import pretty_json

PENDING: Final = "pending"
APPROVED: Final = "approved"
DENIED: Final = "denied"
EXPIRED: Final = "expired"
WITHDRAWN: Final = "withdrawn"
USED: Final = "used"
VOID: Final = "void"

TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    PENDING: frozenset({APPROVED, DENIED, EXPIRED, WITHDRAWN}),
    APPROVED: frozenset({USED, VOID}),
    DENIED: frozenset(),
    EXPIRED: frozenset(),
    WITHDRAWN: frozenset(),
    USED: frozenset(),
    VOID: frozenset(),
}
"""All allowed transitions of an approval. The diagram in the docs is generated from this table."""

OPEN: Final = (PENDING, APPROVED)
"""States in which an approval is not closed."""

TIMEOUT_APPROVE: Final = "approve"

AGENT_CHANNEL: Final = "agent"
"""The channel of the requesting agent itself. It never has a vote."""
ELICITATION_CHANNEL: Final = "elicitation"
"""The agent's own prompt; it has a vote only if the workflow allows it."""
SYSTEM_CHANNEL: Final = "system"
"""No person: ``on_timeout``."""
GRANT_CHANNEL: Final = "grant"
"""A remembered decision."""
USER: Final = "user:"
"""Prefix of an approver who must be signed in under this name."""
GROUP: Final = "group:"
"""Prefix of a group whose signed-in members are approvers."""
LOCAL_CHANNELS: Final = frozenset({"console", "terminal"})
"""Both identify the user of this machine, so a name in ``approvers`` without a channel means
either."""

SHOWN_AT_MOST: Final[Mapping[str, int]] = {"slack": 2_800, ELICITATION_CHANNEL: 1_500}
"""Characters of a call that a channel can show: Slack allows 3,000 in a section, and clients show
prompts in a small box."""

USE_WITHIN_S: Final = 300.0
"""An approval that is not used after this time is void, because the situation may have changed."""

MAX_REASON: Final = 2000
"""Characters stored of a reason, which is shown and recorded and comes from outside."""

DURABLE: Final = "task:"
"""Prefix of owners that are tasks, which outlive the process that created the request."""

_NOBODY: Final = frozenset({SYSTEM_CHANNEL, GRANT_CHANNEL, USER[:-1], GROUP[:-1]})
"""What comes before the colon of something that is no person on a channel."""

_WIDE: Final = "&<>`"
"""Characters that some channels write as several, such as ``&amp;``."""

_NOTHING: Final = ("", "{}", "[]", "null")

POLICY_KIND: Final = "policy"
"""The kind of a question about a changed policy; ``tool`` is the config file."""

POLICY_OWNER: Final = "policy:"
"""Prefix of the owner of such a question, with the digest of the policy: it belongs to no process,
because every gate that uses the file waits for the answer."""

DEFINITION_KIND: Final = "definition"
"""The kind of a question about changed definitions; ``tool`` is the key of the server's pins."""

DEFINITION_OWNER: Final = "definitions:"
"""Prefix of the owner of such a question, with the digest of the change set."""

STANDING_KINDS: Final = frozenset({POLICY_KIND, DEFINITION_KIND})
"""Kinds of questions that belong to no call and to no process."""

_DOMAIN: Final = b"thoughtgate approval 1"
"""Begins every digest, so that no digest of anything else can equal one of an approval."""


class Reviewer(NamedTuple):
    """A person who may decide, as the channel knows them."""

    by: str
    """``channel:name``, as in a vote."""
    groups: tuple[str, ...] = ()
    """Their groups, as a verified token lists them."""
    issuer: str = ""
    """Who vouches for the name and the groups; empty if no token was verified."""


class Vote(NamedTuple):
    """One reviewer's vote."""

    by: str
    """``channel:name``, such as ``terminal:ann`` or ``slack:U0123``."""
    approve: bool
    at: float
    reason: str = ""
    groups: tuple[str, ...] = ()
    """The groups that the reviewer had when they voted; see ``Reviewer``."""
    issuer: str = ""

    @property
    def channel(self) -> str:
        """The channel on which the vote was given."""
        return self.by.partition(":")[0]

    @property
    def reviewer(self) -> Reviewer:
        """Who voted."""
        return Reviewer(self.by, self.groups, self.issuer)

    def verified(self) -> dict[str, Any]:
        """Return the groups and the issuer that a verified token names; empty without a token."""
        return {"groups": list(self.groups), "issuer": self.issuer} if self.issuer else {}


RETRY_S: Final = 5.0
"""Delay after which a caller may try again if approval cannot be requested now. Connecting to a
store that is away is tried all the time."""


class Decision(NamedTuple):
    """The outcome of an approval request, whether people decided or it expired."""

    approved: bool
    kind: str = ""
    """When not approved: approval_rejected, approval_timeout or approval_withdrawn."""
    by: str = ""
    channel: str = ""
    reason: str = ""
    auto: bool = False
    """Whether no person decided: a remembered grant, the development profile, or ``on_timeout``."""
    votes: tuple[Vote, ...] = ()
    """Every vote, including votes that did not decide."""
    approval_id: str = ""
    """The id of the approval request, if there was one."""
    retry_after_s: float = 0.0
    """After what time to try again, if approval cannot be requested now."""


def refusal(kind: str, reason: str, votes: tuple[Vote, ...] = ()) -> Decision:
    """Return the outcome for a call that may not run, although no person rejected it."""
    wait_s = RETRY_S if kind == "service_unavailable" else 0.0
    return Decision(approved=False, kind=kind, reason=reason, votes=votes, retry_after_s=wait_s)


class Refusal(NamedTuple):
    """Why an operation on an approval is refused."""

    kind: str
    """A stable identifier: unknown, ambiguous, too_late, voted, not_allowed, self, incomplete ..."""
    text: str


class Approval(NamedTuple):
    """One approval request for one exact call."""

    id: str
    """Short, for people; not a secret."""
    call_id: str
    digest: str
    """Binds the approval to the exact call; see ``digest_of``."""
    server: str
    kind: str
    tool: str
    """The name of the tool or prompt, or the resource's URI, with secrets masked."""
    arguments: str
    """JSON text as reviewers see it: secrets masked."""
    folded: bool
    """True if ``arguments`` is shortened; the store has the whole text, in parts."""
    principal: str
    session: str
    workflow: str
    channel: str
    rule: str
    reason: str
    """Why the rules require approval."""
    policy_version: str
    created_at: float
    expires_at: float
    required: int
    """The number of different people who must approve."""
    approvers: tuple[str, ...]
    """Who may decide; empty for everyone whom the channels admit."""
    on_timeout: str
    elicitation: bool
    """True if the agent's own prompt may be used."""
    remember: bool
    """True if the decision may be remembered for later calls."""
    owner: str
    """Who waits: a process (``stores.process_owner``), or ``task:`` and a task's id."""
    status: str = PENDING
    votes: tuple[Vote, ...] = ()
    decided_at: float = 0.0
    closed_reason: str = ""
    """Why it was withdrawn, expired or became void."""
    grant: str = ""
    """The remembered grant that decided, if one did."""
    rev: int = 0
    """Position in the order of all changes; assigned by the store."""
    extra: str = ""
    """JSON text of what else the request carries, as reviewers see it; empty if nothing."""
    definition: str = ""
    """Digest of the tool's definition when approval was requested; empty if it was not known."""
    ended_grants: tuple[str, ...] = ()
    """Grants that would have decided, and ended because the tool's definition has changed."""
    client: str = ""
    """What the agent's client says it is, with secrets masked. Nothing vouches for that."""
    session_name: str = ""
    """The name of an HTTP session that other gates know too."""

    @property
    def is_durable(self) -> bool:
        """Tell whether the approval outlives the process that created it."""
        return self.owner.startswith(DURABLE)

    @property
    def session_key(self) -> str:
        """What names its session at every gate; empty if it belongs to none."""
        return session_key(self.call_id.rpartition(".")[0], self.session, self.session_name)

    @property
    def decider(self) -> Vote | None:
        """The vote that decided: the first denial, else the last approval; None if there is none."""
        if self.status in {PENDING, EXPIRED, WITHDRAWN} or not self.votes:
            return None
        return next((vote for vote in self.votes if not vote.approve), self.votes[-1])


def session_key(run: str, session: str, name: str) -> str:
    """Return a key that is unique across gates and runs: each run numbers its sessions from one.

    An HTTP session has a name of its own, so every gate that continues it has the same key.
    """
    if name:
        return f"http {name}"
    return f"{run}/{session}" if run and session else ""


def digest_of(call: Call, policy_version: str) -> str:
    """Return the digest that binds an approval to an exact call under an exact policy.

    Raises:
        NotCanonical: The call has no canonical form, so nothing can be bound to it.
    """
    parts = [
        call.server,
        call.kind,
        call.method,
        call.name,
        canonical_json(call.arguments),
        call.principal,
        policy_version,
    ]
    # Added only if present, so that stored digests of calls without extra params stay valid.
    if call.extra:
        parts.append(canonical_json(call.extra))
    total = hashlib.sha256(_DOMAIN)
    for part in parts:
        # With its length, so that moving text from one part to the next gives another digest.
        data = part.encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()


def move(approval: Approval, status: str, at: float, reason: str = "") -> Approval | Refusal:
    """Change the state of an approval, if the table allows it."""
    if status not in TRANSITIONS[approval.status]:
        return Refusal("too_late", f"approval {approval.id} {_state_text(approval)}")
    # Using an approval, or making it void, is no decision: its age counts from the decision.
    decided_at = at if approval.status == PENDING else approval.decided_at
    return approval._replace(status=status, decided_at=decided_at, closed_reason=reason)


def vote(approval: Approval, given: Vote, now: float) -> Approval | Refusal:
    """Count a vote: one denial decides at once, approvals decide when there are enough."""
    refusal = _why_not(approval, given, now)
    if refusal is not None:
        return refusal
    given = given._replace(reason=given.reason[:MAX_REASON])
    counted = approval._replace(votes=(*approval.votes, given))
    if not given.approve:
        return move(counted, DENIED, now)
    if len(counted.votes) < approval.required:
        return counted
    return move(counted, APPROVED, now)


def vote_all(
    approval: Approval, given: Iterable[Vote], now: float
) -> tuple[Approval, list[Refusal]]:
    """Count the votes of one poll, denials first: if both arrive together, the denial wins."""
    refusals: list[Refusal] = []
    for each in sorted(given, key=lambda one: (one.approve, one.at)):
        counted = vote(approval, each, now)
        if isinstance(counted, Refusal):
            refusals.append(counted)
        else:
            approval = counted
    return approval, refusals


def time_out(approval: Approval, now: float) -> Approval | Refusal:
    """Apply the workflow's ``on_timeout`` to an approval that was not decided in time."""
    if approval.status != PENDING or now < approval.expires_at:
        return Refusal("too_early", f"approval {approval.id} is not due")
    if approval.on_timeout != TIMEOUT_APPROVE:
        return move(approval, EXPIRED, now, why_late(approval))
    # ``vote`` would refuse this one: the system is not a person.
    silent = Vote(f"{SYSTEM_CHANNEL}:on_timeout", approve=True, at=now, reason=why_late(approval))
    return move(approval._replace(votes=(*approval.votes, silent)), APPROVED, now)


def why_late(approval: Approval) -> str:
    """Return what was missing when a pending approval timed out."""
    if not approval.votes:
        return "nobody answered in time"
    return f"{len(approval.votes)} of {approval.required} approved in time"


def is_stale(approval: Approval, now: float) -> bool:
    """Tell whether an approval has waited too long to be used."""
    return approval.status == APPROVED and now > approval.decided_at + USE_WITHIN_S


def may_vote(approval: Approval, reviewer: Reviewer) -> Refusal | None:
    """Return why a person may not decide on an approval; None if they may."""
    by = reviewer.by
    channel, _, name = by.partition(":")
    if not channel or not name:
        return Refusal("not_allowed", "a decision needs a person: channel and name")
    if channel in _NOBODY:
        return Refusal("not_allowed", f"{channel} is not a person")
    if channel == AGENT_CHANNEL or by == approval.principal:
        return Refusal("self", "the agent that asks cannot approve itself")
    if channel == ELICITATION_CHANNEL and not approval.elicitation:
        return Refusal("self", "this workflow does not let the agent's own prompt decide")
    if approval.approvers and not _is_listed(approval, reviewer):
        listed = ", ".join(approval.approvers)
        return Refusal(
            "not_allowed",
            f"{by} is not among the approvers of {approval.workflow}: {listed} "
            f"(approval.{approval.workflow}.approvers in the config)",
        )
    return None


def shown_lines(approval: Approval) -> list[str]:
    """Return everything that a reviewer must see of the call, as lines of text."""
    lines = [
        f"{approval.kind}: {visible(approval.tool)}",
        f"server: {visible(approval.server)}",
        f"asked by: {visible(approval.principal)}",
        *([f"says it is: {visible(approval.client)}"] if approval.client else []),
        f"arguments: {pretty_json(approval.arguments)}",
    ]
    extra = extra_json(approval)
    return [*lines, f"other parameters: {pretty_json(extra)}"] if extra else lines


def extra_json(approval: Approval) -> str:
    """Return what the call carries besides its arguments, as JSON text; empty if nothing."""
    extra = getattr(approval, "extra", "")
    text = extra if isinstance(extra, str) else json.dumps(extra, ensure_ascii=False)
    return "" if text in _NOTHING else text


def is_shown_whole(approval: Approval, channel: str) -> bool:
    """Tell whether a channel can show every character of the call.

    The console and the terminal page through any length. Other channels get at most the
    arguments in the approval itself.
    """
    if channel in LOCAL_CHANNELS:
        return True
    limit = SHOWN_AT_MOST.get(channel)
    if approval.folded or limit is None:
        return not approval.folded
    text = "\n".join(shown_lines(approval))
    # ``&amp;`` has four characters more than ``&``.
    return len(text) + 4 * sum(map(text.count, _WIDE)) <= limit


def where_shown(approval: Approval) -> str:
    """Return how to see, and approve, a call that a channel cannot show whole."""
    return f"in the console, or with: thoughtgate approvals show {approval.id}"


def _is_listed(approval: Approval, reviewer: Reviewer) -> bool:
    listed, by = approval.approvers, reviewer.by
    channel, _, name = by.partition(":")
    if by in listed:
        return True
    if reviewer.issuer:
        groups = (GROUP + group for group in reviewer.groups)
        if USER + name in listed or any(group in listed for group in groups):
            return True
    # A name that looks like an entry for a group or for another channel is not that entry.
    is_plain = ":" not in name if reviewer.issuer else not name.startswith((USER, GROUP))
    near = channel == approval.channel or {channel, approval.channel} <= LOCAL_CHANNELS
    return is_plain and near and name in listed


def _person(by: str) -> str:
    """Return who voted: in channels that use the login name, one name is one person."""
    channel, _, name = by.partition(":")
    return f":{name}" if channel in LOCAL_CHANNELS or channel == ELICITATION_CHANNEL else by


def _why_not(approval: Approval, given: Vote, now: float) -> Refusal | None:
    if approval.status != PENDING:
        return Refusal("too_late", f"approval {approval.id} {_state_text(approval)}")
    if now >= approval.expires_at:
        return Refusal("too_late", f"approval {approval.id} has expired: {why_late(approval)}")
    refusal = may_vote(approval, given.reviewer)
    if refusal is not None:
        return refusal
    # A denial is always safe: whoever has seen only a part of the call may deny it.
    return _why_not_approve(approval, given) if given.approve else None


def _why_not_approve(approval: Approval, given: Vote) -> Refusal | None:
    """Return why a person who may vote cannot approve; None if they can."""
    if approval.required > 1 and given.by == f"{ELICITATION_CHANNEL}:{approval.principal}":
        # Over HTTP the answer to the prompt names no person, and one person could vote twice.
        several = f"{approval.workflow} asks {approval.required} people"
        return Refusal("self", f"{several}, and the agent's own prompt names none")
    if not is_shown_whole(approval, given.channel):
        return Refusal(
            "incomplete",
            f"{given.channel} cannot show the whole call, so it can only be approved "
            f"{where_shown(approval)}",
        )
    person = _person(given.by)
    if any(_person(earlier.by) == person for earlier in approval.votes):
        return Refusal("voted", f"{given.by} has already approved {approval.id}")
    return None


def _state_text(approval: Approval) -> str:
    decider = approval.decider
    by = f" by {decider.by}" if decider is not None else ""
    because = f": {approval.closed_reason}" if approval.closed_reason else ""
    return {
        PENDING: "is still pending",
        APPROVED: f"was already approved{by}",
        DENIED: f"was already denied{by}",
        EXPIRED: f"has expired{because}",
        WITHDRAWN: f"was withdrawn{because}",
        USED: f"was already used; it was approved{by}",
        VOID: f"is void{because}",
    }[approval.status]
