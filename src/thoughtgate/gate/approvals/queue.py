"""Approval queue of one gate: the calls that wait for people, and their decisions.

All drivers use it, from a poll loop or from asyncio: each method runs a few short statements in
the store and never waits for a person. Every failure results in a denial: an approval that
cannot be stored, read or used is not an approval.
"""

import contextlib
import json
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from thoughtgate.channels import agent_prompt as elicitation
from thoughtgate.channels.agent_prompt import prompt_text
from thoughtgate.channels.answer_places import AnswerPlaces
from thoughtgate.channels.channel import Channel, Stoppable
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import (
    APPROVED,
    DENIED,
    DURABLE,
    EXPIRED,
    PENDING,
    SYSTEM_CHANNEL,
    USED,
    Approval,
    Decision,
    Refusal,
    Vote,
    digest_of,
    refusal,
    why_late,
)
from thoughtgate.core.commands import PersonAnswered
from thoughtgate.core.elicitation import HoldNotice
from thoughtgate.core.envelope import render_time
from thoughtgate.core.grant import SESSION, TOOL, Remember
from thoughtgate.core.open_calls import OpenCall
from thoughtgate.errors import StoreError
from thoughtgate.gate.approvals.policy_questions import PolicyQuestions
from thoughtgate.gate.approvals.standing_questions import ID_ATTEMPTS, Asking, StandingQuestions
from thoughtgate.policy.inspection.content_policy import RESULT_KIND
from thoughtgate.policy.names import recorded_name, shown_name
from thoughtgate.policy.policy import DEFAULT_WORKFLOW, Policy
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.approvals import ApprovalStore, Limits
from thoughtgate.stores.database import Database
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.process_owner import own_name
from thoughtgate.stores.running_calls import LostCall
from thoughtgate.wire.canonical import canonical_json
from thoughtgate.wire.revisions import MAX_CLIENT

POLL_EVERY_S: Final = 0.1
"""How often a driver with held calls should poll; a poll without news costs microseconds."""

SETTLE_EVERY_S: Final = 5.0
"""How often the queue looks for requests of dead processes; deadlines are checked on every poll."""

PURGE_EVERY_S: Final = 3600.0

MAX_SHOWN: Final = 65_536
"""Characters of arguments in the approval itself, which gates and channels keep in memory; of longer
ones it has a shortened copy, and the store has the whole text."""
MAX_SHOWN_VALUE: Final = 1024
"""Characters that a shortened value keeps."""

_ID_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without characters that are easily confused with one another."""
_ID_LENGTH: Final = 6

TAKEN_OVER: Final = "another gate has taken this call over"
ALREADY_USED: Final = "the approval was already used"
ASKED_ONCE: Final = " (approving allows every call of this tool until the session ends)"

_LIMIT_KINDS: Final = {"limit_principal": "rate_limited", "limit_total": "service_unavailable"}


class ApprovalQueue:
    """Creates approval requests for the held calls of one gate and collects the decisions."""

    def __init__(
        self,
        store: ApprovalStore,
        workflows: Mapping[str, WorkflowSettings],
        owner: str,
        redactor: Redactor,
        new_id: Callable[[], str],
        *,
        policy_version: str,
        channels: Sequence[Channel] = (),
        limits: Limits | None = None,
        closes_store: bool = False,
        places: AnswerPlaces | None = None,
    ) -> None:
        """Use ``store`` for ``owner``; ``closes_store`` if nothing else uses the store.

        ``places`` says where people answer; the gate may learn of its console later.
        """
        self.places = places or AnswerPlaces()
        self._store = store
        self._closes_store = closes_store
        self._workflows = workflows
        self._owner = owner
        self._redactor = redactor
        self._new_id = new_id
        self._policy_version = policy_version
        self._channels = channels
        self._limits = limits or Limits()
        self._held: dict[str, Approval] = {}
        """Calls that wait for a decision."""
        self._decided: dict[str, Approval] = {}
        """Calls with an approval that is not used yet."""
        self._unclosed: list[tuple[Approval, str]] = []
        """Requests to close, with the reason, once the store can be written again."""
        self._running: dict[str, str] = {}
        """The approvals of calls that run; only in a shared store."""
        self._ended: deque[str] = deque()
        """Approvals of calls that have ended, which a thread deletes from the running ones."""
        self._rev = 0
        self._earliest = math.inf
        """When the first of the held calls times out."""
        self._next_settle = 0.0
        self._next_purge = 0.0
        self._now = 0.0

    @property
    def pending(self) -> int:
        """The number of calls that wait for a decision."""
        return len(self._held)

    def reload(
        self, workflows: Mapping[str, WorkflowSettings], redactor: Redactor, policy_version: str
    ) -> None:
        """Use other settings for new approval requests; existing ones are unchanged."""
        self._workflows = workflows
        self._redactor = redactor
        self._policy_version = policy_version

    def policy_questions(self, open_local: Callable[[], Database] | None = None) -> PolicyQuestions:
        """Return the questions about changed policies, in the same store and channels."""
        return PolicyQuestions(*self._asking(), open_local=open_local)

    def definition_questions(self) -> StandingQuestions:
        """Return the questions about changed definitions, in the same store and channels."""
        return StandingQuestions(*self._asking())

    def _asking(self) -> Asking:
        def tell(approval: Approval, is_settled: bool) -> None:
            self._tell(approval, settled=is_settled)

        return self._store, self._workflow, tell, self._new_id

    def ask(
        self, call_id: str, open_call: OpenCall, workflow: str, at: float, *, owner: str = ""
    ) -> Decision | None:
        """Create an approval request; return a decision if there is one at once, else None.

        ``owner`` names who waits if that is not this process: a shim of this service, or a task
        (``TaskRunner.owner_of``). If a task's request is created again after a restart, it finds a
        decision that was made in the meantime.
        """
        self._now = at
        if self._store.is_shared and not owner.startswith(DURABLE):
            # Other gates know only whether this process is alive, not the shims that it serves.
            owner = self._owner
        settings = self._workflow(workflow)
        if settings is None:
            return refusal("service_unavailable", f"there is no approval workflow {workflow!r}")
        try:
            self._close_rest(at)
            asked = self._put(call_id, open_call, settings, at, owner or self._owner)
        except StoreError:
            return refusal("service_unavailable", "the approvals cannot be stored")
        except ValueError:
            # Without a canonical form or valid UTF-8, an approval cannot be bound to the call.
            return refusal("invalid_params", "the arguments cannot be bound")
        if isinstance(asked, Refusal):
            return refusal(_LIMIT_KINDS.get(asked.kind, "service_unavailable"), asked.text)
        if asked.status == PENDING:
            if not self._held:
                # Earlier changes concern no call that waits here, so polls need not read them.
                self._rev = asked.rev
            # The one that was listed last: a server erases what is known of a tool by saying that its
            # list has changed. Grants must not apply then, but a prompt is still about that one.
            self._held[call_id] = asked._replace(definition="".join(open_call.definitions))
            self._earliest = min(self._earliest, asked.expires_at)
            self._tell(asked, settled=False)
            return None
        if asked.status == APPROVED:
            self._decided[call_id] = asked
        return decision_of(asked)

    def facts(self, call_id: str) -> dict[str, Any]:
        """Return what the record says about an approval request; empty if there is none."""
        asked = self._held.get(call_id) or self._decided.get(call_id)
        if asked is None:
            return {}
        facts: dict[str, Any] = {
            "approval_id": asked.id,
            "channel": asked.channel,
            "digest": asked.digest,
            "expires_at": render_time(asked.expires_at),
            "required": asked.required,
        }
        if asked.client:
            facts["client"] = asked.client
        if asked.grant:
            facts["grant"] = asked.grant
        if asked.ended_grants:
            facts["ended_grants"] = list(asked.ended_grants)
        return facts

    def notice(self, call_id: str) -> HoldNotice:
        """Return what the agent's program is told about a held call."""
        asked = self._held.get(call_id)
        if asked is None:
            return HoldNotice()
        prompt = prompt_text(asked) if asked.elicitation else ""
        return self.places.notice(asked)._replace(prompt=prompt, definition=asked.definition)

    def answer(self, command: PersonAnswered) -> None:
        """Store the answer that a person gave to the agent's own prompt; the next poll finds it."""
        asked = self._held.get(command.call_id)
        if asked is None:
            return
        # A modern client repeats the call with the answer: the server may have changed the tool
        # since the person saw the prompt.
        if command.definition and asked.definition not in {"", command.definition}:
            return
        vote = Vote(elicitation.identity(command.by), command.approve, command.at, command.reason)
        # If the store cannot be written now, others can still decide, or the request times out.
        with contextlib.suppress(StoreError):
            self._store.vote(asked.id, [vote], command.at)

    def poll(self, at: float) -> list[tuple[str, Decision]]:
        """Return what was decided, timed out or withdrawn since the last poll."""
        self._now = at
        if not self._held:
            return []
        is_time = at >= min(self._earliest, self._next_settle)
        try:
            if is_time:
                self._maintain(at)
            news = self._news()
        except StoreError:
            news = []
        for call_id, found in news:
            self._held[call_id] = self._held[call_id]._replace(votes=found.votes)
        settled = [
            (call_id, self._settle(call_id, found))
            for call_id, found in news
            if found.status != PENDING or _is_taken_over(self._held[call_id], found)
        ]
        return settled + self._overdue(at) if is_time else settled

    def use(self, call_id: str) -> Decision | None:
        """Use the approval of a call, once; return why the call may not run, or None if it may."""
        decided = self._decided.pop(call_id, None)
        if decided is None:
            return refusal("approval_withdrawn", ALREADY_USED)
        is_result = decided.kind == RESULT_KIND
        try:
            used = self._store.use(
                decided.id,
                decided.digest,
                self._now,
                owner=decided.owner,
                call_id=call_id,
                # A result does not run: if this gate dies, no other has to end it.
                runner=self._owner if self._store.is_shared and not is_result else "",
                through_power_loss=decided.is_durable,
            )
        except StoreError:
            # It may have been used or not, so it must not be used again.
            self._unclosed.append((decided, "whether it was used is not known"))
            return refusal("service_unavailable", "the approval cannot be used")
        if not isinstance(used, Refusal):
            if self._store.is_shared and not is_result:
                self._running[call_id] = decided.id
            return None
        is_taken = used.kind == "taken_over"
        return refusal("approval_withdrawn", TAKEN_OVER if is_taken else ALREADY_USED)

    def ended(self, call_ids: Iterable[str]) -> None:
        """Note that the end of approved calls is on the record."""
        self._ended += (
            approval for each in call_ids if (approval := self._running.pop(each, None))
        )

    def take_lost(self, lost: LostCall) -> None:
        """Take over a call whose gate died, until its end is on the record of this gate."""
        self._running[lost.call_id] = lost.approval

    def flush_ended(self) -> None:
        """Delete ended calls from those that run; a thread does that, off the path of calls.

        Raises:
            StoreError: the store cannot be written; the next attempt deletes them.
        """
        ended = list(self._ended)
        if ended:
            self._store.running_calls().end(ended)
            for _ in ended:
                self._ended.popleft()

    def lost_calls(self) -> list[LostCall]:
        """Return the running calls of gates that died, which this gate must record.

        Raises:
            StoreError: the store cannot be read.
        """
        return self._store.running_calls().claim(self._owner)

    def withdraw(self, call_id: str, reason: str, at: float) -> tuple[Vote, ...]:
        """Withdraw the approval request of a call that its caller no longer waits for.

        Returns the votes that it had by then.
        """
        asked = self._held.pop(call_id, None) or self._decided.pop(call_id, None)
        if asked is None:
            return ()
        try:
            closed = self._close(asked, reason, at)
        except StoreError:
            # This process no longer waits and will not use the approval.
            self._unclosed.append((asked, reason))
            return asked.votes
        return asked.votes if closed is None else closed.votes

    def close(self, at: float) -> None:
        """Withdraw all approval requests of a stopping gate, except those of tasks."""
        for call_id, asked in [*self._held.items(), *self._decided.items()]:
            if not asked.is_durable:
                self.withdraw(call_id, "the gate stopped", at)
        self._held.clear()
        self._decided.clear()
        for channel in self._channels:
            if isinstance(channel, Stoppable):
                channel.stop()
        if self._closes_store:
            self._store.close()

    def _close(self, asked: Approval, reason: str, at: float) -> Approval | None:
        """Close an approval request, unless it is closed or another gate has taken it over."""
        closed = self._store.withdraw(
            asked.id, reason, at, owner=asked.owner, call_id=asked.call_id
        )
        if isinstance(closed, Refusal):
            return None
        self._tell(closed, settled=True)
        return closed

    def _close_rest(self, at: float) -> None:
        """Close what could not be closed while the store was away."""
        while self._unclosed:
            self._close(*self._unclosed[0], at)
            # Removed only now: if closing raises, it is tried again.
            self._unclosed.pop(0)

    def _workflow(self, name: str) -> WorkflowSettings | None:
        found = self._workflows.get(name)
        if found is None and name in {"", DEFAULT_WORKFLOW}:
            return self._workflows.get(DEFAULT_WORKFLOW) or WorkflowSettings(DEFAULT_WORKFLOW)
        return found

    def _put(
        self, call_id: str, open_call: OpenCall, settings: WorkflowSettings, at: float, owner: str
    ) -> Approval | Refusal:
        call, verdict = open_call.call, open_call.verdict
        is_result = call.kind == RESULT_KIND
        shown, whole = show_json(call.arguments, self._redactor)
        extra, more = show_json(call.extra, self._redactor) if call.extra else ("", "")
        if more:
            whole = f"{whole or shown}\n{more}"
        asked = Approval(
            id="",
            call_id=call_id,
            digest=digest_of(call, self._policy_version),
            server=call.server,
            kind=call.kind,
            tool=shown_name(call.name, self._redactor),
            arguments=shown,
            folded=bool(whole),
            principal=call.principal,
            session=call.session,
            workflow=settings.name,
            channel=settings.channel,
            rule=verdict.rule,
            reason=self._redactor.mask_text(verdict.reason)
            + (ASKED_ONCE if _asks_once(settings) and not is_result else ""),
            policy_version=self._policy_version,
            created_at=at,
            expires_at=at + settings.timeout_s,
            required=settings.required,
            approvers=settings.approvers,
            on_timeout=settings.on_timeout,
            # The agent's own prompt would show the agent's user what the checks warn about, and a
            # decision about one result says nothing about the next.
            elicitation=not is_result
            and (settings.allow_elicitation or settings.channel == elicitation.NAME),
            remember=settings.remember and not is_result,
            owner=owner,
            extra=extra,
            definition=call.definition,
            client=recorded_name(open_call.client, self._redactor, MAX_CLIENT),
            session_name=open_call.session_name,
        )
        limits = self._limits._replace(same_rule=verdict.on_facts)
        stored: Approval | Refusal = Refusal("taken", "no free id was found")
        for _ in range(ID_ATTEMPTS):
            stored = self._store.ask(asked._replace(id=self._new_id()), at, limits, whole)
            if isinstance(stored, Approval) or stored.kind != "taken":
                break
        return stored

    def _maintain(self, at: float) -> None:
        """Do what is due: close what could not be closed, time requests out, remove old ones."""
        self._next_settle = at + SETTLE_EVERY_S
        self._close_rest(at)
        if self._store.has_due(at):
            self._store.settle_due(at)
        if at >= self._next_purge:
            self._next_purge = at + PURGE_EVERY_S
            self._store.purge(at)

    def _news(self) -> list[tuple[str, Approval]]:
        if not self._store.changed():
            return []
        changed = self._store.since(self._rev)
        if changed:
            self._rev = changed[-1].rev
        calls = {held.id: call_id for call_id, held in self._held.items()}
        return [(calls[each.id], each) for each in changed if each.id in calls]

    def _settle(self, call_id: str, found: Approval) -> Decision:
        asked = self._held.pop(call_id)
        if _is_taken_over(asked, found):
            return refusal("approval_withdrawn", TAKEN_OVER, found.votes)
        # An approval must be for the call that waits, whatever has changed in the store.
        if found.digest != asked.digest:
            return refusal("service_unavailable", "the stored approval is for another call")
        if found.status == APPROVED:
            self._decided[call_id] = found
            self._ask_once(found)
        self._tell(found, settled=True)
        return decision_of(found)

    def _ask_once(self, found: Approval) -> None:
        """Remember an approval for its tool and session, if the workflow asks once per tool."""
        settings, decider = self._workflow(found.workflow), found.decider
        if settings is None or not _asks_once(settings) or decider is None or found.grant:
            return
        # If it cannot be remembered, the next call is asked about again.
        with contextlib.suppress(StoreError):
            self._store.add_grant(
                found.id,
                Remember(SESSION, TOOL),
                by=decider.by,
                grant_id=self._new_id(),
                now=self._now,
            )

    def _overdue(self, at: float) -> list[tuple[str, Decision]]:
        """Time out requests by this gate's clock if the store is away; no call is held forever."""
        late = [
            (call_id, each)
            for call_id, each in self._held.items()
            if at >= each.expires_at + SETTLE_EVERY_S
        ]
        for call_id, each in late:
            self.withdraw(call_id, why_late(each), at)
        ends = (each.expires_at for each in self._held.values())
        self._earliest = min((end for end in ends if end > at), default=math.inf)
        return [
            (call_id, decision_of(each._replace(status=EXPIRED, closed_reason=why_late(each))))
            for call_id, each in late
        ]

    def _tell(self, approval: Approval, *, settled: bool) -> None:
        for channel in self._channels:
            try:
                (channel.show_outcome if settled else channel.show_request)(approval)
            except Exception:  # noqa: BLE001, S112 - a broken channel must not break the gate; the question can be answered elsewhere
                continue


def _asks_once(settings: WorkflowSettings) -> bool:
    return settings.ask == "once_per_tool" and settings.remember


def _is_taken_over(asked: Approval, found: Approval) -> bool:
    """Tell whether a request is now about another call than the one that asked."""
    return (asked.owner, asked.call_id) != (found.owner, found.call_id)


def open_approvals(
    database: Database,
    workflows: Mapping[str, WorkflowSettings],
    policy: Policy,
    *,
    channels: Sequence[Channel] = (),
    limits: Limits | None = None,
    places: AnswerPlaces | None = None,
) -> ApprovalQueue:
    """Open the approval queue of this process; it closes the database, unless gates share that."""
    return ApprovalQueue(
        ApprovalStore(database),
        workflows,
        own_name(),
        policy.redactor,
        new_approval_id,
        policy_version=policy.version,
        channels=channels,
        limits=limits,
        closes_store=not database.is_shared,
        places=places,
    )


def open_store(location: StoreLocation | str) -> ApprovalStore:
    """Open the approval store of a state directory, or where else it is."""
    return ApprovalStore(open_database(location))


def new_approval_id() -> str:
    """Return a new short id that is easy to read out and to type."""
    # Some letters are slightly more likely, which does not matter: the id is not a secret.
    return "".join(_ID_LETTERS[byte % len(_ID_LETTERS)] for byte in os.urandom(_ID_LENGTH))


def decision_of(approval: Approval) -> Decision:
    """Return the decision that a closed approval request stands for."""
    decider = approval.decider
    if approval.status in {APPROVED, DENIED}:
        is_approved = approval.status == APPROVED
        by, channel, reason = "", "", ""
        if decider is not None:
            by, channel, reason = decider.by, decider.channel, decider.reason
        said = Decision(
            approved=is_approved,
            kind="" if is_approved else "approval_rejected",
            by=by,
            channel=channel,
            reason=reason,
            auto=is_approved and (bool(approval.grant) or channel == SYSTEM_CHANNEL),
        )
    elif approval.status == USED:
        said = refusal("approval_withdrawn", ALREADY_USED)
    else:
        kind = "approval_timeout" if approval.status == EXPIRED else "approval_withdrawn"
        said = refusal(kind, approval.closed_reason)
    return said._replace(votes=approval.votes, approval_id=approval.id)


def show_json(value: dict[str, Any], redactor: Redactor) -> tuple[str, str]:
    """Return JSON text for reviewers, and the whole text if the first is shortened.

    Secrets are masked in both.
    """
    masked = redactor.review_value(value)
    text = canonical_json(masked)
    if len(text) <= MAX_SHOWN:
        return text, ""
    folded = canonical_json(_fold(masked))
    if len(folded) <= MAX_SHOWN:
        return folded, text
    return json.dumps({"…": f"{len(text):,} characters"}, ensure_ascii=False), text


def _fold(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_SHOWN_VALUE:
        return f"{value[:MAX_SHOWN_VALUE]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: _fold(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_fold(member) for member in value]
    return value
