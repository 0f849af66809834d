"""Judge: evaluates a request against the policy and the limits, and creates its record events.

The judge is pure: the time comes with the request and call ids are numbered within the run,
so the same requests at the same times produce the same verdicts. Every governor has one: the
standalone shim, the governance service, the proxy, the hub.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from thoughtgate.core.answers import has_failed
from thoughtgate.core.approval import Vote
from thoughtgate.core.known_tools import UNLISTED, KnownTools, hash_of
from thoughtgate.core.packed_calls import (
    SPENT,
    PackedCall,
    pack_calls,
    unpack_calls,
    without_arguments,
)
from thoughtgate.core.record_events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    CALL_DECISION,
    CALL_END,
    CALL_START,
    MAX_NAME,
    MESSAGE,
    SERVER_TO_AGENT,
    TOOLS_LIST,
    Record,
)
from thoughtgate.core.run_summary import describe_verdict, describe_vote
from thoughtgate.core.tool_listing import LIST_FIRST
from thoughtgate.policy.call import (
    APPROVE,
    DENY,
    FORWARD,
    PRODUCTION,
    SERVER_KINDS,
    TOOL,
    Call,
    Verdict,
)
from thoughtgate.policy.evaluation import evaluate, hidden_names
from thoughtgate.policy.limits import THROTTLES, Limit, LimitState
from thoughtgate.policy.names import recorded_name
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.previews import MAX_PREVIEW, preview
from thoughtgate.wire.canonical import NotCanonical
from thoughtgate.wire.extra_params import extra_params
from thoughtgate.wire.fast_frame import canonical_quickly
from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import LISTINGS, TOOLS_CHANGED, Named
from thoughtgate.wire.packed_message import MAX_PARSED
from thoughtgate.wire.revisions import META, client_in, traceparent
from thoughtgate.wire.unchecked import unchecked

MAX_KEPT: Final = 1024
"""Requests up to this size keep their arguments in memory until they are answered."""

MAX_NAMES: Final = 10_000
"""Cached names as the record shows them."""


MAX_SESSIONS: Final = 10_000
"""Sessions whose calls are counted: as many as a listener accepts."""

MAX_SAID: Final = 256
"""Cached decision objects; bounded because the reason of some verdicts is specific to a call."""

MAX_LISTED: Final = 1000
"""Entries of a list that a record event names."""

_DIGEST: Final = 16
"""Hex digits of an entry's digest: enough to detect that a server changed the entry."""


_NOTHING: Final[dict[str, Json]] = {}
"""The annotations and the definition of a tool that its server has not listed."""


class CallRequest(NamedTuple):
    """A request that needs a verdict, with its principal and origin."""

    server: str
    session: str
    principal: str
    method: str
    named: tuple[Named, ...]
    size: int
    transport: str
    at: float
    params: dict[str, Json] = _NOTHING
    """The request's params: what they carry beyond ``named`` is bound and recorded, not judged."""
    trace: str = ""
    """The caller's W3C ``traceparent`` if the transport carries it, as HTTP does."""
    claims: dict[str, Any] | None = None
    """The principal's claims from authentication."""
    promised: bool = False
    """Whether its caller was told that a person decides: then it is held even if the rules forward
    it."""
    listed: str = ""
    """Whether the gate has fetched the server's tools for this request; see ``JudgeCall``."""
    frame: bytes = b""
    """The request as it was received, if this process also holds it; see ``pack``."""
    client: str = ""
    """Name and version of the agent's client, as it gave them in its handshake."""


class Ruling(NamedTuple):
    """A verdict on a request, with the events that must be recorded before it takes effect."""

    verdict: Verdict
    call_id: str
    records: tuple[Record, ...]


RETRY_S: Final = 5.0
"""When to try again if approval cannot be requested now; a store that is away is tried all the time."""


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


class OpenCall(NamedTuple):
    """A call that has a first verdict and has not ended."""

    call: Call
    verdict: Verdict
    at: float
    calls: tuple[Call, ...] = ()
    """For a held call: everything that the request names, each as a call of its own."""
    approval_id: str = ""
    """For a held call: the id of its approval request."""
    size: int = 0
    frame: bytes = b""
    packed: PackedCall | None = None
    """For a large held call whose approval was requested: its arguments."""
    client: str = ""
    """For a held call: what the agent's client says it is. Nothing vouches for that."""


_LIST_FIRST: Final = Ruling(LIST_FIRST, "", ())


class Judge:
    """Judges the calls of one run."""

    def __init__(
        self,
        policy: Policy,
        run_id: str,
        *,
        preview: int = MAX_PREVIEW,
        count: Callable[[Sequence[Limit]], LimitState] = LimitState,
    ) -> None:
        """Judge by ``policy``; record events show at most ``preview`` bytes of the arguments.

        ``count`` returns the counts for some limits.
        """
        self.policy = policy
        self._preview_bytes = preview
        self._run_id = run_id
        self._calls = 0
        self._new_counts = count
        self._limits = count(policy.limits)
        self._open: dict[str, OpenCall] = {}
        self._rendered: tuple[dict[str, Any], str] = ({}, "")
        """The arguments judged last and their canonical text, for both the hash and the preview."""
        self.tools = KnownTools()
        self._needs_lists = policy.looks_at_annotations()
        self._forwarded: dict[str, int] = {}
        self._said: dict[Verdict, dict[str, Any]] = {}
        """Cached decision objects for the record: few rules decide most calls. Record events share
        them, so they must not be modified."""
        self._said_by = policy
        """The policy that the cache belongs to."""
        self._names: dict[str, str] = {}
        """Cached names for the record, masked by the redactor of the policy in force."""

    def replace_policy(self, policy: Policy) -> None:
        """Judge by another policy from now on. Open calls and the counters of limits are kept."""
        self.policy = policy
        self._needs_lists = policy.looks_at_annotations()
        self._names.clear()
        # Counters move to the new policy: a reload must not reset a rate limit or a budget.
        before, self._limits = self._limits, self._new_counts(policy.limits)
        self._limits.continue_from(before)
        before.release()

    def close(self) -> None:
        """Stop counting calls.

        Raises:
            StoreError: the counts are in a store that cannot be reached.
        """
        self._limits.close()

    def open_call(self, call_id: str) -> OpenCall | None:
        """Return a call that has not ended, or None."""
        return self._open.get(call_id)

    def judge(self, question: CallRequest) -> Ruling:
        """Judge a request. If it names several things, all of them must be allowed."""
        if self._needs_lists and self.tools.must_list(
            question.server, question.named, question.listed
        ):
            return _LIST_FIRST
        self._calls += 1
        call_id = f"{self._run_id}.{self._calls}"
        named = question.named
        extra = extra_params(question.method, question.params)
        calls: tuple[Call, ...]
        if len(named) == 1:
            call = self._call(question, named[0], extra)
            calls, verdict = (call,), self._evaluate(call, question.at)
        else:
            calls = tuple([self._call(question, one, extra) for one in named])
            call, verdict = self._first_objection(question, calls)
        # Rules may have changed since the caller was promised a decision by a person.
        if question.promised and verdict.action == FORWARD:
            verdict = verdict._replace(action=APPROVE, gate="approval")
        shown = verdict if verdict.action == FORWARD else self._unless_observing(verdict)
        if shown.action == FORWARD:
            refused = self._count(calls, question.at)
            if refused is not None and verdict.action != DENY:
                verdict, shown = refused, self._unless_observing(refused)
        # A forwarded call is not judged again, so large arguments need not stay in memory.
        if shown.action == FORWARD:
            kept = call if question.size <= MAX_KEPT else call._replace(arguments={}, extra=None)
            self._open[call_id] = unchecked(
                OpenCall, (kept, verdict, question.at, (), "", 0, b"", None, "")
            )
        else:
            held = (call, verdict, question.at, calls, "", question.size, question.frame, None)
            self._open[call_id] = unchecked(OpenCall, (*held, _client_of(question, call)))
        records = (
            self._start_record(call_id, call, question),
            self._decision_record(call_id, call, verdict, question),
        )
        if question.size > MAX_PARSED:
            self._rendered = ({}, "")
        return unchecked(Ruling, (shown, call_id, records))

    def pack(self, call_id: str) -> None:
        """Keep only the frame of a large call, after its approval was requested."""
        held = self._open.get(call_id)
        if held is None or held.packed is not None or not held.calls:
            return
        packed = pack_calls(held.calls, held.size, held.frame)
        if packed is not None:
            call, calls = without_arguments(held.call), tuple(map(without_arguments, held.calls))
            self._open[call_id] = held._replace(call=call, calls=calls, frame=b"", packed=packed)

    def predict(self, call: Call, at: float) -> Verdict:
        """Return the verdict that a call would get, without counting it towards limits."""
        verdict = self._evaluate(call, at, counted=())
        return verdict if verdict.action == FORWARD else self._unless_observing(verdict)

    def settle(self, call_id: str, decision: Decision, at: float) -> Ruling:
        """Judge a held call again after its approval was decided, and return the final ruling."""
        held = self._open.get(call_id)
        if held is None:
            verdict = Verdict(DENY, "approval", "approval_withdrawn", "the call is no longer open")
            return Ruling(verdict, call_id, ())
        verdict = self._after(held, decision, at)
        if held.packed is not None:
            self._open[call_id] = held._replace(packed=SPENT)
        # Counted now, not when it was held: a denied call must not use up a limit.
        if verdict.action == FORWARD:
            verdict = self._count(held.calls, at) or verdict
        record = self._decided_record(call_id, held, decision, verdict, at)
        return Ruling(verdict, call_id, (record,))

    def asked(self, call_id: str, workflow: str, facts: dict[str, Any], at: float) -> Record | None:
        """Return the event that records the approval request for a held call."""
        held = self._open.get(call_id)
        if held is None:
            return None
        self._open[call_id] = held._replace(approval_id=facts.get("approval_id", ""))
        body = {
            "call": self._short(call_id, held.call),
            "approval": {"workflow": workflow, "rule_id": held.verdict.rule or None, **facts},
        }
        return Record(APPROVAL_REQUESTED, at, held.call.server, held.call.session, body)

    def note(self, record: Record) -> Record:
        """Complete an event that a session reports; the end of a call also updates the limits."""
        if record.type != CALL_END:
            if record.type == MESSAGE and record.body["message"]["method"] == TOOLS_CHANGED:
                self.tools.forget(record.server)
            return record
        call = record.body["call"]
        held = self._open.pop(call["call_id"], None)
        # A session reports the name as it was sent; only here are its secrets known.
        call["tool_name"] = self.recorded_name(
            call["tool_name"] if held is None else held.call.name
        )
        if held is None:
            return record
        call["args_hash"] = held.call.args_hash
        if held.call.extra_hash:
            call["extra_hash"] = held.call.extra_hash
        # The record format has a field for the result; results are measured, never stored.
        record.body.setdefault("preview", {"truncated": True})
        if not self.policy.limits:
            return record
        error = record.body.get("error")
        # A call that the gate refused says nothing about the server's health.
        blocked = error is not None and error.get("class") == "policy_block"
        is_error = record.body.get("is_error") is True
        failed = None if blocked else has_failed(record.body["status"], is_error=is_error)
        if failed is not None:
            self._limits.ended(held.call, record.at, failed=failed)
        return record

    def screen(
        self,
        server: str,
        session: str,
        method: str,
        entries: tuple[dict[str, Json], ...],
        at: float,
    ) -> tuple[frozenset[str], Record]:
        """Return which entries of a list are hidden, and remember the annotations of tools."""
        listing = LISTINGS[method]
        names = [entry[listing.key] for entry in entries if type(entry.get(listing.key)) is str]
        if method == "tools/list":
            self.tools.learn(server, entries)
        hidden = hidden_names(self.policy.visibility, server, listing.kind, names)
        # The development profile hides nothing, but records what production would hide.
        withheld = hidden if self.policy.profile == PRODUCTION else frozenset()
        body = {
            "list": {
                "method": method,
                "offered": len(entries),
                "returned": sum(name not in withheld for name in names),
                "hidden": sorted(map(self.recorded_name, hidden))[:MAX_LISTED],
                "entries": self._digests(entries, listing.key),
                "enforced": self.policy.profile == PRODUCTION,
            }
        }
        return withheld, Record(TOOLS_LIST, at, server, session, body)

    def _first_objection(
        self, question: CallRequest, calls: tuple[Call, ...]
    ) -> tuple[Call, Verdict]:
        objection: tuple[Call, Verdict] | None = None
        for call in calls:
            verdict = self._evaluate(call, question.at)
            if verdict.action == DENY:
                return call, verdict
            if objection is None or (verdict.action == APPROVE and objection[1].action == FORWARD):
                objection = (call, verdict)
            # One approval request has one workflow, so two different ones cannot both be met.
            elif verdict.action == APPROVE and verdict.workflow != objection[1].workflow:
                return call, _asking_nobody(verdict)
        assert objection is not None
        call, verdict = objection
        if verdict.action == APPROVE and len(calls) > 1:
            # The reviewer must see, and approve, everything that the request names.
            every = Named(call.kind, call.name, {"all": [_in_full(one) for one in calls]})
            return self._call(question, every, call.extra), verdict
        return objection

    def _evaluate(self, call: Call, at: float, *, counted: tuple[str, ...] = (FORWARD,)) -> Verdict:
        """Judge one call; ``counted`` are the actions after which the caller counts it at once."""
        verdict = evaluate(call, self.policy, at)
        if verdict.action == DENY or not self.policy.limits:
            return verdict
        # Counts that other processes share are checked and counted in one step.
        if self._limits.is_shared and verdict.action in counted:
            return verdict
        return self._limits.check(call, at) or verdict

    def _count(self, calls: tuple[Call, ...], at: float) -> Verdict | None:
        """Count forwarded calls, unless other processes have used up a limit: return the refusal."""
        refused = None
        if self.policy.limits:
            if self._limits.is_shared:
                refused = self._limits.take(calls, at)
                if refused is not None and self.policy.profile == PRODUCTION:
                    return refused
            else:
                for call in calls:
                    self._limits.commit(call, at)
        session = calls[0].session
        # Removed and inserted again, so that the first key is the session idle for longest.
        before = self._forwarded.pop(session, 0)
        if len(self._forwarded) >= MAX_SESSIONS:
            del self._forwarded[next(iter(self._forwarded))]
        self._forwarded[session] = before + len(calls)
        return refused

    def _after(self, held: OpenCall, decision: Decision, at: float) -> Verdict:
        if not decision.approved:
            denied = Verdict(DENY, "approval", decision.kind, decision.reason, held.verdict.rule)
            return denied._replace(retry_after_s=decision.retry_after_s)
        before = self._forwarded.get(held.call.session, 0)
        redact = False
        calls = held.calls if held.packed is None else unpack_calls(held.calls, held.packed)
        if calls is None:
            return Verdict(DENY, "internal", "internal_error", "the arguments have changed")
        for call in calls:
            again = self._evaluate(
                call._replace(session_calls=before), at, counted=(FORWARD, APPROVE)
            )
            if again.action == DENY:
                # The rules or the limits have changed since the call was held.
                kind = again.kind if again.kind in THROTTLES else "policy_drift"
                return again._replace(kind=kind)
            redact = redact or again.redact
        rule = held.verdict.rule
        return Verdict(FORWARD, "approval", "", decision.reason, rule, redact=redact)

    def _unless_observing(self, verdict: Verdict) -> Verdict:
        """Forward everything in the development profile; the record says what would be blocked."""
        if self.policy.profile == PRODUCTION:
            return verdict
        return verdict._replace(action=FORWARD, enforced=False)

    def _call(self, question: CallRequest, named: Named, extra: dict[str, Json] | None) -> Call:
        kind, name, arguments = named
        server, session, principal, method = question[:4]
        try:
            text = canonical_quickly(arguments)
            digest = sha256(text.encode()).hexdigest()
        except NotCanonical:
            # Still judged, but without a hash no approval can be bound to these arguments.
            text = digest = ""
        self._rendered = (arguments, text)
        is_tool = kind == TOOL
        said, definition = self.tools.find(server, name) if is_tool else UNLISTED
        return unchecked(
            Call,
            (
                server,
                kind,
                name,
                arguments,
                method,
                said,
                principal,
                session,
                digest,
                self._forwarded.get(session, 0),
                question.claims,
                "",
                None,
                extra,
                hash_of(extra) if extra else "",
                definition,
                bool(definition) or not is_tool,
            ),
        )

    def recorded_name(self, name: str) -> str:
        """Return the name of a tool or prompt, or a URI, as the record and logs show it."""
        shown = self._names.get(name)
        if shown is None:
            if len(self._names) >= MAX_NAMES:
                self._names.clear()
            shown = recorded_name(name, self.policy.redactor, MAX_NAME)
            if len(name) <= MAX_NAME:
                self._names[name] = shown
        return shown

    def _short(self, call_id: str, call: Call) -> dict[str, Any]:
        said = {
            "call_id": call_id,
            "server_name": call.server,
            "tool_name": self._names.get(call.name) or self.recorded_name(call.name),
            "args_hash": call.args_hash,
        }
        if call.extra_hash:
            said["extra_hash"] = call.extra_hash
        return said

    def _start_record(self, call_id: str, call: Call, question: CallRequest) -> Record:
        # Taken apart at once: a member of a named tuple takes longer to read than a variable.
        server, kind, name, arguments, method, _, principal, session, digest = call[:9]
        size, transport, at, params = question[5:9]
        said = {
            "call_id": call_id,
            "server_name": server,
            "tool_name": self._names.get(name) or self.recorded_name(name),
            "args_hash": digest,
            "kind": kind,
            "method": method,
            "transport": transport,
            "principal": principal,
            "bytes_in": size,
            "preview": self._preview(arguments, size),
            "seq": self._calls,
        }
        if call.extra:
            text, is_cut = preview(call.extra, "", size, self._preview_bytes, self.policy.redactor)
            said["extra_hash"] = call.extra_hash
            said["extra"] = {"truncated": is_cut, "preview": text}
        trace = question.trace or (traceparent(params) if META in params else "")
        if trace:
            said["traceparent"] = trace
        if "task" in params:
            said["task"] = True
        if kind in SERVER_KINDS:
            said["direction"] = SERVER_TO_AGENT
        return unchecked(Record, (CALL_START, at, server, session, {"call": said}))

    def _preview(self, arguments: dict[str, Any], size: int) -> dict[str, Any]:
        rendered, text = self._rendered
        if rendered is not arguments:
            text = ""
        text, is_cut = preview(arguments, text, size, self._preview_bytes, self.policy.redactor)
        return {"truncated": is_cut, "args_preview": text}

    def _decision_record(
        self, call_id: str, call: Call, verdict: Verdict, question: CallRequest
    ) -> Record:
        if self._said_by is not self.policy or len(self._said) > MAX_SAID:
            self._said_by = self.policy
            self._said.clear()
        decision = self._said.get(verdict)
        if decision is None:
            decision = self._said[verdict] = describe_verdict(verdict, self.policy)
        body = {"call": self._short(call_id, call), "decision": decision}
        return unchecked(Record, (CALL_DECISION, question.at, call.server, call.session, body))

    def _decided_record(
        self, call_id: str, held: OpenCall, decision: Decision, verdict: Verdict, at: float
    ) -> Record:
        approval: dict[str, Any] = {
            "workflow": held.verdict.workflow,
            "outcome": "approved" if decision.approved else decision.kind.removeprefix("approval_"),
            "decided_by": decision.by,
            "channel": decision.channel,
            # Reviewers may paste a secret into their reason.
            "reason": self.policy.redactor.mask_text(decision.reason),
            "auto_approved": decision.auto,
            "executes": verdict.action == FORWARD,
            "kind": verdict.kind or None,
        }
        if held.client:
            approval["client"] = recorded_name(held.client, self.policy.redactor, MAX_NAME)
        approval_id = decision.approval_id or held.approval_id
        if approval_id:
            approval["approval_id"] = approval_id
        if decision.votes:
            approval["votes"] = [describe_vote(vote, self.policy) for vote in decision.votes]
        body = {"call": self._short(call_id, held.call), "approval": approval}
        return Record(APPROVAL_DECIDED, at, held.call.server, held.call.session, body)

    def _digests(self, entries: tuple[dict[str, Json], ...], key: str) -> dict[str, str]:
        """Return the entries of a list by name, each with a digest that changes with its content."""
        digests: dict[str, str] = {}
        for entry in entries[:MAX_LISTED]:
            name = entry.get(key)
            if type(name) is str:
                digests[self.recorded_name(name)] = hash_of(entry)[:_DIGEST]
        return digests


def _client_of(question: CallRequest, call: Call) -> str:
    """Return what the client of a held call says it is; the server writes its own requests."""
    said = "" if call.kind in SERVER_KINDS else client_in(question.params)
    return said or question.client


def _in_full(call: Call) -> Any:
    """Return one of several things that a request names, as the reviewer sees it."""
    return {"name": call.name, "arguments": call.arguments} if call.arguments else call.name


def _asking_nobody(verdict: Verdict) -> Verdict:
    """Return the denial of a request whose parts need approval from different workflows."""
    reason = "different people must approve parts of it; ask for each alone"
    return verdict._replace(action=DENY, kind="governance_denied", reason=reason, workflow="")
