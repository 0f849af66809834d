"""Judge: evaluates a request against the policy and the limits, and creates its record events.

The judge is pure: the time comes with the request and call ids are numbered within the run,
so the same requests at the same times produce the same verdicts. Every governor has one: the
standalone shim, the governance service, the proxy, the hub.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

from thoughtgate.core.answers import UPSTREAM_ERROR, has_failed
from thoughtgate.core.approval import Decision, session_key
from thoughtgate.core.definitions.known_definitions import DEFINITION_HELD, KnownDefinitions
from thoughtgate.core.known_tools import UNLISTED, KnownTools, hash_of, list_event
from thoughtgate.core.open_calls import (
    SPENT,
    CallRequest,
    OpenCall,
    Ruling,
    in_full,
    pack_calls,
    unpack_calls,
    without_arguments,
)
from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    CALL_DECISION,
    CALL_END,
    CALL_START,
    CANCELLED,
    MAX_NAME,
    MESSAGE,
    SERVER_TO_AGENT,
    TOOLS_LIST,
    Record,
    content_found,
)
from thoughtgate.core.run_summary import describe_approval, describe_verdict
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
from thoughtgate.policy.evaluation import establish, evaluate, hidden_names
from thoughtgate.policy.facts import NO_FACTS, LocalFacts, SharedFacts
from thoughtgate.policy.inspection.content_policy import BLOCK, RESULT_KIND, UNCHANGED
from thoughtgate.policy.limits import THROTTLES, Limit, LimitState
from thoughtgate.policy.names import recorded_name
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.previews import MAX_PREVIEW, preview
from thoughtgate.policy.scopes import INSUFFICIENT_SCOPE, deny_mixed_workflows, stricter
from thoughtgate.policy.stops import STOP, Stops
from thoughtgate.wire.canonical import NotCanonical
from thoughtgate.wire.extra_params import extra_params
from thoughtgate.wire.fast_frame import canonical_quickly
from thoughtgate.wire.message import Json, RequestId
from thoughtgate.wire.methods import LISTINGS, LISTS_CHANGED, TOOLS_CHANGED, Named
from thoughtgate.wire.packed_message import MAX_PARSED
from thoughtgate.wire.revisions import META, client_in, traceparent
from thoughtgate.wire.unchecked import unchecked

MAX_KEPT: Final = 1024
"""Requests up to this size keep their arguments in memory until they are answered."""

MAX_NAMES: Final = 10_000
"""Cached names as the record shows them."""
MAX_MESSAGE_ID: Final = 128
"""Characters of a request's id that the record stores; agents choose the ids."""

MAX_SESSIONS: Final = 10_000
"""Sessions whose calls are counted: as many as a listener accepts."""

MAX_DECISIONS: Final = 256
"""Cached decision objects; bounded because the reason of some verdicts is specific to a call."""

_REDEFINED: Final = "the server changed the definition of the tool while the call waited"

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
        facts: SharedFacts | None = None,
    ) -> None:
        """Judge by ``policy``; record events show at most ``preview`` bytes of the arguments.

        ``count`` returns the counts for some limits; ``facts`` are those of all principals.
        """
        self.stops: Stops | None = None
        """The stop orders in force; None for none."""
        self.facts = facts if facts is not None else LocalFacts()
        """What is known about the data that principals have seen."""
        self._needs_facts = policy.looks_at_facts()
        self._establishes = policy.establishes_facts()
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
        self.definitions = KnownDefinitions(policy.definitions)
        self._needs_lists = policy.looks_at_annotations()
        self._inspects = policy.contents
        self._forwarded: dict[str, int] = {}
        self._decisions: dict[Verdict, dict[str, Any]] = {}
        """Cached decision objects for the record: few rules decide most calls. Record events share
        them, so they must not be modified."""
        self._decisions_policy = policy
        """The policy that the cache belongs to."""
        self._names: dict[str, str] = {}
        """Cached names for the record, masked by the redactor of the policy in force."""

    def replace_policy(self, policy: Policy) -> None:
        """Judge by another policy from now on. Open calls and the counters of limits are kept."""
        self.policy = policy
        self.definitions.use(policy.definitions)
        self._needs_lists = policy.looks_at_annotations()
        self._inspects = policy.contents
        self._needs_facts = policy.looks_at_facts()
        self._establishes = policy.establishes_facts()
        self._names.clear()
        # Counters move to the new policy: a reload must not reset a rate limit or a budget.
        before, self._limits = self._limits, self._new_counts(policy.limits)
        self._limits.continue_from(before)
        # Whatever the new limits did not take over is returned to the shared store.
        before.release()

    def close(self) -> None:
        """Stop counting calls; StoreError if the counts are in a store that is away."""
        self._limits.close()

    def open_call(self, call_id: str) -> OpenCall | None:
        """Return a call that has not ended, or None."""
        return self._open.get(call_id)

    def judge(self, request: CallRequest) -> Ruling:
        """Judge a request. If it names several things, all of them must be allowed."""
        # For a task, the list says whether the server or the gate makes it.
        needed = self._needs_lists or ("task" in request.params and self.policy.offers_tasks())
        if needed and self.tools.must_list(request.server, request.named, request.listed):
            return _LIST_FIRST
        if self.definitions.enforces and self.definitions.must_list(
            request.server, request.named, request.listed
        ):
            return _LIST_FIRST
        self._calls += 1
        call_id = f"{self._run_id}.{self._calls}"
        named = request.named
        extra = extra_params(request.method, request.params)
        calls: tuple[Call, ...]
        if len(named) == 1:
            call = self._call(request, named[0], extra)
            calls, verdict = (call,), self._evaluate(call, request.at)
        else:
            calls = tuple([self._call(request, one, extra) for one in named])
            call, verdict = self._first_objection(request, calls)
        # The caller was told that a person decides. Even if the rules forward the call by now, it
        # must not run without that decision.
        if request.must_hold and verdict.action == FORWARD:
            verdict = verdict._replace(action=APPROVE, gate="approval")
        shown = verdict if verdict.action == FORWARD else self._unless_observing(verdict)
        if shown.action == FORWARD:
            refused = self._count(calls, request.at)
            if refused is not None and verdict.action != DENY:
                verdict, shown = refused, self._unless_observing(refused)
        # A forwarded call is not judged again, so large arguments need not stay in memory.
        if shown.action == FORWARD:
            kept = call if request.size <= MAX_KEPT else call._replace(arguments={}, extra=None)
            self._open[call_id] = unchecked(
                OpenCall, (kept, verdict, request.at, (), "", 0, b"", None, "", "", "", ())
            )
            when = self._inspects.result_inspection(request.server) if self._inspects else 0
            shown = shown._replace(inspect=when) if when else shown
        else:
            held = (call, verdict, request.at, calls, "", request.size, request.frame, None)
            said = (_client_of(request, call), "", request.session_name)
            listed = tuple(map(self._definition, calls))
            self._open[call_id] = unchecked(OpenCall, (*held, *said, listed))
        records: tuple[Record, ...] = (
            self._start_record(call_id, call, request),
            self._decision_record(call_id, call, verdict, request),
        )
        if verdict.findings:
            content = {"findings": verdict.findings, "direction": AGENT_TO_SERVER, "action": BLOCK}
            records += (self.found(call_id, call, request.at, **content),)
        if request.size > MAX_PARSED:
            # The cache would keep a large call in memory until the next one.
            self._rendered = ({}, "")
        return unchecked(Ruling, (shown, call_id, records))

    def hold_result(self, ident: str, held: OpenCall) -> None:
        """Keep a result that waits for a person; ``settle`` ends that."""
        self._open[ident] = held

    def found(self, call_id: str, call: Call, at: float, **content: Any) -> Record:
        """Return the event that records what the content checks found, and what happens to it."""
        enforced = self.policy.profile == PRODUCTION or content["action"] in UNCHANGED
        said = self._short(call_id, call)
        return content_found(at, call.server, call.session, said, enforced=enforced, **content)

    def pack(self, call_id: str) -> None:
        """Keep only the frame of a large call, after its approval was requested."""
        held = self._open.get(call_id)
        if held is not None and held.answers:
            # The session has the result, and the approval request what the reviewer sees.
            self._open[call_id] = held._replace(call=without_arguments(held.call))
            return
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
        if held.answers:
            del self._open[call_id]
        elif held.packed is not None or verdict.redact:
            packed = held.packed and SPENT
            kept = held.verdict._replace(redact=verdict.redact)
            self._open[call_id] = held._replace(packed=packed, verdict=kept)
        # Counted now, not when it was held: a denied call must not use up a limit.
        if verdict.action == FORWARD and held.calls:
            verdict = self._count(held.calls, at) or verdict
        record = self._decided_record(call_id, held, decision, verdict, at)
        return Ruling(verdict, call_id, (record,))

    def asked(self, call_id: str, workflow: str, facts: dict[str, Any], at: float) -> Record | None:
        """Return the event that records the approval request for a held call."""
        held = self._open.get(call_id)
        if held is None:
            return None
        self._open[call_id] = held._replace(approval_id=facts.get("approval_id", ""))
        if held.answers:
            facts = {**facts, "about": RESULT_KIND}
        body = {
            "call": self._short(held.answers or call_id, held.call),
            "approval": {"workflow": workflow, "rule_id": held.verdict.rule or None, **facts},
        }
        return Record(APPROVAL_REQUESTED, at, held.call.server, held.call.session, body)

    def note(self, record: Record) -> Record:
        """Complete an event that a session reports; the end of a call also updates the limits."""
        if record.type != CALL_END:
            if record.type == MESSAGE and record.body["message"]["method"] in LISTS_CHANGED:
                self.definitions.forget(record.server)
                if record.body["message"]["method"] == TOOLS_CHANGED:
                    self.tools.forget(record.server)
            return record
        call = record.body["call"]
        held = self._open.pop(call["call_id"], None)
        # A session reports the name as it was sent; only here are its secrets known.
        name = call["tool_name"] if held is None else held.call.name
        call["tool_name"] = self._names.get(name) or self.recorded_name(name)
        if held is None:
            return record
        call["args_hash"] = held.call.args_hash
        if held.call.extra_hash:
            call["extra_hash"] = held.call.extra_hash
        # The record format has a field for the result; results are measured, never stored.
        record.body.setdefault("preview", {"truncated": True})
        error = record.body.get("error")
        answered = error is None or error.get("class") == UPSTREAM_ERROR
        if answered and record.body["status"] != CANCELLED:
            self.renew_facts(held.call.server, held.call.principal, record.at)
        if not self.policy.limits:
            return record
        # A call that the gate refused says nothing about the server's health.
        blocked = error is not None and error.get("class") == "policy_block"
        is_error = record.body.get("is_error") is True
        failed = None if blocked else has_failed(record.body["status"], is_error=is_error)
        if failed is not None:
            self._limits.ended(held.call, record.at, failed=failed)
        return record

    def renew_facts(self, server: str, principal: str, at: float) -> bool:
        """Let facts that a server's results establish hold for a whole window after a result.

        A call may take longer than the window, and a task is fetched at any time later. Returns
        False if other gates cannot be told.
        """
        if not self._establishes:
            return True
        call = Call(server, TOOL, "", {}, principal=principal)
        return establish(call, self.policy, self.facts, at) is None

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
        hidden |= self.definitions.hidden(server, listing.kind, names)
        # The development profile hides nothing, but records what production would hide.
        enforced = self.policy.profile == PRODUCTION
        withheld = hidden if enforced else frozenset()
        body = list_event(method, entries, (hidden, withheld), self.recorded_name)
        body["list"]["enforced"] = enforced
        return withheld, Record(TOOLS_LIST, at, server, session, body)

    def _first_objection(
        self, request: CallRequest, calls: tuple[Call, ...]
    ) -> tuple[Call, Verdict]:
        objection: tuple[Call, Verdict] | None = None
        lacking: tuple[Call, Verdict] | None = None
        for call in calls:
            verdict = self._evaluate(call, request.at)
            if verdict.action == DENY:
                if verdict.kind != INSUFFICIENT_SCOPE:
                    return call, verdict
                # The refusal names the scopes that all the calls need.
                lacking = (call, verdict if lacking is None else stricter(lacking[1], verdict))
                continue
            if objection is None or (verdict.action == APPROVE and objection[1].action == FORWARD):
                objection = (call, verdict)
            # One approval request has one workflow, so two different ones cannot both be met.
            elif verdict.action == APPROVE and verdict.workflow != objection[1].workflow:
                return call, deny_mixed_workflows(verdict)
        if lacking is not None:
            return lacking
        assert objection is not None
        call, verdict = objection
        if verdict.action == APPROVE and len(calls) > 1:
            # The reviewer must see, and approve, everything that the request names.
            every = Named(call.kind, call.name, {"all": in_full(calls)})
            return self._call(request, every, call.extra), verdict
        return objection

    def _evaluate(self, call: Call, at: float, *, counted: tuple[str, ...] = (FORWARD,)) -> Verdict:
        """Judge one call; ``counted`` are the actions after which the caller counts it at once."""
        if self.stops is not None and (stopped := self.stops.refuse(call)) is not None:
            return stopped
        verdict = evaluate(call, self.policy, at)
        if self.definitions.is_relevant:
            verdict = self.definitions.review(call, verdict)
        if verdict.action == DENY or not self.policy.limits:
            return verdict
        # Counts that other processes share are checked and counted in one step.
        if self._limits.is_shared and verdict.action in counted:
            return verdict
        return self._limits.check(call, at) or verdict

    def _count(self, calls: tuple[Call, ...], at: float) -> Verdict | None:
        """Count forwarded calls, unless other processes have used up a limit: return the refusal."""
        refused = establish(calls[0], self.policy, self.facts, at) if self._establishes else None
        if refused is not None:
            return refused
        if self.policy.limits:
            if self._limits.is_shared:
                refused = self._limits.take(calls, at)
                # The development profile forwards the call anyway, so it still counts below.
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
            # For a refused result, only this kind says that the call itself was made.
            kind = "content_blocked" if held.answers else decision.kind
            denied = Verdict(DENY, "approval", kind, decision.reason, held.verdict.rule)
            denied = denied._replace(findings=held.verdict.findings)
            return denied._replace(retry_after_s=decision.retry_after_s)
        before = self._forwarded.get(held.call.session, 0)
        redact = False
        calls = held.calls if held.packed is None else unpack_calls(held.calls, held.packed)
        if calls is None:
            return Verdict(DENY, "internal", "internal_error", "the arguments have changed")
        for call, definition in zip(calls, held.definitions, strict=True):
            if definition and self._definition(call) != definition:
                return Verdict(DENY, "definitions", "policy_drift", _REDEFINED)
            if self._needs_facts:
                call = call._replace(facts=self.facts.of(call.principal, at))  # noqa: PLW2901
            now = call._replace(session_calls=before, annotations=self._annotations(call))
            again = self._evaluate(now, at, counted=(FORWARD, APPROVE))
            if again.action == DENY:
                # The rules or the limits have changed since the call was held, or it is stopped.
                is_own = again.gate == STOP or again.kind in {*THROTTLES, DEFINITION_HELD}
                return again if is_own else again._replace(kind="policy_drift")
            redact = redact or again.redact
        rule = held.verdict.rule
        inspect = self._inspects.result_inspection(held.call.server) if self._inspects else 0
        given = Verdict(FORWARD, "approval", "", decision.reason, rule, redact=redact)
        return given._replace(inspect=inspect) if inspect else given

    def _definition(self, call: Call) -> str:
        """Return which definition the server listed last of a held call's tool."""
        return self.tools.listed_last(call.server, call.name) if call.kind == TOOL else ""

    def _annotations(self, call: Call) -> dict[str, Any] | None:
        """Return what the server says now of a held call's tool, as far as that is known."""
        said = self.tools.find(call.server, call.name)[0] if call.kind == TOOL else None
        return call.annotations if said is None else said

    def _unless_observing(self, verdict: Verdict) -> Verdict:
        """Forward everything in the development profile; the record says what would be blocked."""
        if self.policy.profile == PRODUCTION or verdict.gate == STOP:
            return verdict
        return verdict._replace(action=FORWARD, enforced=False)

    def _call(self, request: CallRequest, named: Named, extra: dict[str, Json] | None) -> Call:
        kind, name, arguments = named
        server, session, principal, method = request[:4]
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
                request.claims,
                "",
                None,
                extra,
                hash_of(extra) if extra else "",
                definition,
                bool(definition) or not is_tool,
                self.facts.of(principal, request.at) if self._needs_facts else NO_FACTS,
                session_key(self._run_id, session, request.session_name),
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

    def _message_id(self, given: RequestId) -> str:
        """Return the id of a request for the record; agents choose it, so it may be anything."""
        if type(given) is int:
            return str(given)[:MAX_MESSAGE_ID]
        return recorded_name(str(given), self.policy.redactor, MAX_MESSAGE_ID)

    def _start_record(self, call_id: str, call: Call, request: CallRequest) -> Record:
        # Taken apart at once: a member of a named tuple takes longer to read than a variable.
        server, kind, name, arguments, method, _, principal, session, digest = call[:9]
        size, transport, at, params = request[5:9]
        rendered, text = self._rendered
        redactor, limit = self.policy.redactor, self._preview_bytes
        text = text if rendered is arguments else ""
        text, is_cut = preview(arguments, text, size, limit, redactor)
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
            "preview": {"truncated": is_cut, "args_preview": text},
            "seq": self._calls,
        }
        if call.extra:
            text, is_cut = preview(call.extra, "", size, limit, redactor)
            said["extra_hash"] = call.extra_hash
            said["extra"] = {"truncated": is_cut, "preview": text}
        trace = request.trace
        if META in params:
            trace = trace or traceparent(params)
            if kind not in SERVER_KINDS and (client := client_in(params)):
                said["client"] = self.recorded_name(client)
        if request.message_id is not None:
            said["message_id"] = self._message_id(request.message_id)
        if request.address:
            said["address"] = request.address
        if trace:
            said["traceparent"] = trace
        if "task" in params:
            said["task"] = True
        if kind in SERVER_KINDS:
            said["direction"] = SERVER_TO_AGENT
        return unchecked(Record, (CALL_START, at, server, session, {"call": said}))

    def _decision_record(
        self, call_id: str, call: Call, verdict: Verdict, request: CallRequest
    ) -> Record:
        if self._decisions_policy is not self.policy or len(self._decisions) > MAX_DECISIONS:
            self._decisions_policy = self.policy
            self._decisions.clear()
        decision = self._decisions.get(verdict)
        if decision is None:
            decision = self._decisions[verdict] = describe_verdict(verdict, self.policy)
        body = {"call": self._short(call_id, call), "decision": decision}
        if self._needs_facts and call.facts is not None:
            # Not in the cached decision: facts are those of the call.
            body["decision"] = {**decision, "facts": sorted(call.facts)}
        return unchecked(Record, (CALL_DECISION, request.at, call.server, call.session, body))

    def _decided_record(
        self, call_id: str, held: OpenCall, decision: Decision, verdict: Verdict, at: float
    ) -> Record:
        approval = describe_approval(decision, verdict, self.policy)
        approval["workflow"] = held.verdict.workflow
        if held.answers:
            approval["about"] = RESULT_KIND
        if held.client:
            approval["client"] = recorded_name(held.client, self.policy.redactor, MAX_NAME)
        approval_id = decision.approval_id or held.approval_id
        if approval_id:
            approval["approval_id"] = approval_id
        body = {"call": self._short(held.answers or call_id, held.call), "approval": approval}
        return Record(APPROVAL_DECIDED, at, held.call.server, held.call.session, body)


def _client_of(request: CallRequest, call: Call) -> str:
    """Return what the client of a held call says it is; the server writes its own requests."""
    said = "" if call.kind in SERVER_KINDS else client_in(request.params)
    return said or request.client
