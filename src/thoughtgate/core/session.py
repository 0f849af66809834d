"""Protocol state machine between one agent and one server: what is open, and what may pass.

It knows frames, ids and open requests; it does not know rules, pipes, sockets or clocks.
"""

from typing import Any, Final

from thoughtgate.core import events
from thoughtgate.core.answers import REPORT, screened
from thoughtgate.core.commands import (
    ANSWER,
    NOTICE,
    AskPeople,
    AskTask,
    Command,
    JudgeCall,
    ToAgent,
    ToServer,
    Withdraw,
)
from thoughtgate.core.contents.inspected_answers import (
    InspectedAnswers,
    answer_call,
    inspection_of,
    is_answered,
)
from thoughtgate.core.elicitation import METHOD
from thoughtgate.core.record_events import AGENT_TO_SERVER, CANCELLED, ERROR, OK, SERVER_TO_AGENT
from thoughtgate.core.server_requests import InputRequests, ServerRequests, is_server_key
from thoughtgate.core.session_replies import (
    ASKED_IN_AGENT,
    CALLER_GONE,
    STOPPING,
    STRAY,
    UNREADABLE,
    CorrelationIds,
    OfferedList,
    OpenRequests,
    PendingRequest,
    SessionReplies,
    SessionSettings,
    find_offer,
    sent,
    size_of,
    task_notice,
    tell_progress,
    to_server_frame,
    traced,
)
from thoughtgate.core.task import names_our_task, wants_task
from thoughtgate.core.task_calls import TaskCalls
from thoughtgate.core.tool_listing import FAILED, ToolListings
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, INSPECT_BEFORE, LIST, Verdict
from thoughtgate.wire import methods
from thoughtgate.wire.frame import UNREAD, find_id, read_frame
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Fault, Message, RequestId
from thoughtgate.wire.packed_message import pack, unpack
from thoughtgate.wire.replies import render_cancelled
from thoughtgate.wire.revisions import META, is_modern, progress_token
from thoughtgate.wire.unchecked import unchecked


class Session:
    """The state of one session. ``receive`` is its only input."""

    def __init__(self, setup: SessionSettings, errors: CorrelationIds | None = None) -> None:
        self.setup = setup
        self._replies = SessionReplies(setup, errors)
        self._waiting: dict[RequestId, PendingRequest] = {}
        """Agent requests that are held or have no verdict yet."""
        self._abandoned: dict[RequestId, PendingRequest] = {}
        """Requests whose caller left before the verdict arrived: their ids stay reserved, so that
        no other call can inherit the verdict."""
        self._open = OpenRequests()
        self._offered: dict[RequestId, OfferedList] = {}
        """Lists and handshakes from the server that wait to be screened."""
        self.served = ServerRequests(self._replies)
        self.inputs = InputRequests(self._replies)
        self._listings = ToolListings(self._waiting, self._abandoned, self._open, self._offered)
        self._taken: tuple[dict[RequestId, Any], ...] = (
            self._waiting,
            self._open,
            self._open.late,
            self._offered,
            self._listings,
            self._abandoned,
        )
        """The tables with the ids that the agent must not use again yet."""
        self._passing = (*self._taken[:-1], self.served, self._open.tokens, self.inputs)
        """The tables to clear when the server is gone. Not the abandoned requests: their verdicts
        may still come."""
        self._tasked = TaskCalls()
        self.prompts = self._replies.prompts
        self._answers = InspectedAnswers(self._waiting, self._replies)
        self._held = 0
        self._agent_gone = False
        self._server_gone: events.ServerGone | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no agent request is open, so that nothing can time out."""
        return not (self._waiting or self._open or self._offered)

    @property
    def is_untouched(self) -> bool:
        """Whether the session has no state that can affect later requests."""
        busy = self._abandoned or self._tasked.is_used or self.prompts.is_used or any(self._passing)
        return not (busy or self._agent_gone or self._server_gone)

    def is_open(self, key: RequestId) -> bool:
        """Tell whether an agent request has no answer yet."""
        return key in self._waiting or key in self._open or key in self._offered

    def is_undecided(self, key: RequestId) -> bool:
        """Tell whether a call still waits for its first verdict, as while tools are being listed."""
        asked = self._waiting.get(key)
        # A request that names nothing, such as one for a task's result, is not judged.
        return asked is not None and bool(asked.name) and not asked.call_id

    @property
    def open_requests(self) -> int:
        """The number of agent requests that have no answer yet."""
        return len(self._waiting) + len(self._open) + len(self._offered)

    @property
    def held_calls(self) -> int:
        """The number of calls that wait for a person."""
        return self._held + self._answers.held

    def receive(self, event: events.Event) -> list[Command]:
        """Handle an event and return the commands to carry out, in order."""
        commands: list[Command] = self._HANDLERS[type(event)](self, event)
        return self._tasked.divert(commands, event.at) if self._tasked.is_used else commands

    # Frames from the agent.

    def _agent_sent(self, event: events.AgentSent) -> list[Command]:
        line, at, message, shown = event
        if not line or line == b"\r":
            return []
        if message is None:
            message = read_frame(line)
        if isinstance(message, Fault):
            return self._replies.refused(message, line, at, AGENT_TO_SERVER)
        if message.shape == REQUEST:
            return self._agent_asked(message, at, shown)
        if message.shape == NOTIFICATION:
            return self._agent_notified(message, at)
        return self._agent_answered(message, at)

    def _agent_asked(self, message: Message, at: float, shown: str) -> list[Command]:
        params = message.body.get("params") or {}
        answer = None
        if "requestState" in params:
            message, answer = self.prompts.take_state(message, at)
            params = message.body["params"]
        ident, method = message.id, message.method
        assert ident is not None
        named = methods.named_by(method, params)
        fault = self._not_askable(ident)
        if isinstance(named, str):
            fault = fault or Fault("invalid_params", named, "wrong_params", ident)
            named = []
        if fault is not None:
            return self._replies.refused(fault, message.raw, at, AGENT_TO_SERVER, message)
        name = named[0].name if named else ""
        has_meta = META in params
        token = progress_token(params) if has_meta else None
        modern = has_meta and is_modern(params)
        given = (message, method, name, at, modern, token, "", 0.0, 0, False, 0.0, answer, shown)
        asked = unchecked(PendingRequest, (*given, "", "", ""))
        if (gone := self._server_gone) is not None:
            refusal = self._replies.unserved(ident, asked, gone, at)
            return [self._replies.seen(message, at, AGENT_TO_SERVER), *refusal]
        if named:
            self._waiting[ident] = asked
            facts = (ident, method, tuple(named), params, len(message.raw), modern, at)
            return [unchecked(JudgeCall, (*facts, "", message.raw))]
        seen = self._replies.seen(message, at, AGENT_TO_SERVER)
        self.prompts.learn(method, params)
        if names_our_task(method, params):
            self._waiting[ident] = asked
            return [seen, AskTask(ident, method, params, asked.modern, at)]
        self._open.add(ident, sent(asked, at, asked.call_id, asked.inspect))
        return [seen, ToServer(message.raw, ident, message)]

    def _not_askable(self, ident: RequestId) -> Fault | None:
        if any(self._taken):
            for table in self._taken:
                if ident in table:
                    return Fault("invalid_request", "the id is already in use", "id_in_use", ident)
            if sum(map(len, self._taken)) >= self.setup.max_open:
                return Fault("service_unavailable", "too many requests are open", "too_many", ident)
        return None

    def _agent_notified(self, message: Message, at: float) -> list[Command]:
        if message.method in methods.NEEDS_ID or methods.is_variant(message.method):
            fault = Fault("invalid_request", "this method needs an id", "missing_id")
            return self._replies.refused(fault, message.raw, at, AGENT_TO_SERVER, message)
        seen = self._replies.seen(message, at, AGENT_TO_SERVER)
        commands: list[Command] = [seen, ToServer(message.raw, None, message)]
        if message.method == methods.CANCELLED:
            commands += self._agent_cancelled(message, at)
        return commands

    def _agent_cancelled(self, message: Message, at: float) -> list[Command]:
        ident = (message.body.get("params") or {}).get("requestId")
        if type(ident) is not str and type(ident) is not int:
            return []
        if (waiting := self._waiting.get(ident)) is not None:
            return self._give_up(ident, waiting, "the caller cancelled", at)
        asked = self._open.close_early(ident, at)
        return [] if asked is None else self._replies.ended(asked, at, CANCELLED, 0)

    def _agent_answered(self, message: Message, at: float) -> list[Command]:
        answered = self.prompts.take(message, at)
        if answered is not None:
            return [self._replies.seen(message, at, AGENT_TO_SERVER, METHOD), *answered]
        recorded = self.served.answered(message, at)
        if recorded is None:
            return self._replies.unasked(message, at, AGENT_TO_SERVER)
        return [*recorded, ToServer(message.raw, None, message)]

    # Frames from the server.

    def _server_sent(self, event: events.ServerSent) -> list[Command]:
        line, at, message = event
        if not line or line == b"\r":
            return []
        if message is None:
            message = read_frame(line)
        if isinstance(message, Fault):
            return self._server_faulted(message, line, at)
        if message.shape == REQUEST:
            return self.served.ask(message, at, inspect=self.inputs.inspects_notices)
        if message.shape == NOTIFICATION:
            if message.method == REPORT and self.setup.relay_key:
                return self._replies.relayed_report(message, at)
            return self._server_notified(message, at)
        return self._server_answered(message, at)

    def _server_notified(self, message: Message, at: float) -> list[Command]:
        ended: list[Command] = []
        is_known = True
        if message.method == methods.PROGRESS:
            self._open.note_progress(message, at)
        elif message.method == methods.CANCELLED:
            ended, is_known = self.served.cancelled(message.body.get("params"), at)
        elif requests := methods.input_requests(message.body.get("params") or {}):
            return self.inputs.judge_notice(self.served.new_key(), message, requests, at)
        seen = [self._replies.seen(message, at, SERVER_TO_AGENT), *ended]
        if is_known and self.inputs.must_inspect(message):
            return [*seen, *self.inputs.inspect_notice(self.served.new_key(), message, at)]
        return [*seen, ToAgent(message.raw, None, NOTICE)] if is_known else seen

    def _server_answered(self, message: Message, at: float) -> list[Command]:
        ident = message.id
        if ident is not None and ident in self._listings:
            return self._listings.answered(ident, message, at)
        asked = self._open.close(ident) if ident is not None else None
        if asked is None or ident is None:
            # A late answer to a request of ours is no fault; it is still dropped.
            if ident is None or self._open.late.pop(ident, None) is None:
                return self._replies.unasked(message, at, SERVER_TO_AGENT)
            return [self._replies.seen(message, at, SERVER_TO_AGENT)]
        told = self._replies.relayed(ident, asked, message, at) if self.setup.relay_key else []
        requests = methods.input_requests(message.body)
        if requests:
            named = methods.named_in_requests(requests)
            if isinstance(named, str):
                return self._replies.failed(ident, asked, "internal_error", at, text=UNREADABLE)
            if named:
                self._waiting[ident] = asked._replace(message=pack(message))
                return self.inputs.judge(self.served.new_key(), message, requests, named, at)
        return told or self._deliver(ident, asked, message, at)

    def _deliver(
        self, ident: RequestId, asked: PendingRequest, message: Message, at: float
    ) -> list[Command]:
        """Give the agent an answer of the server, screened or inspected where that is needed."""
        if (found := find_offer(message, asked, ident, at)) is not None:
            self._offered[ident], screen = found
            is_list = asked.method in methods.LISTINGS
            seen = self._replies.seen(message, at, SERVER_TO_AGENT, asked.method)
            return [screen] if is_list else [seen, screen]
        if not asked.call_id:
            seen = self._replies.seen(message, at, SERVER_TO_AGENT, asked.method)
            if asked.method == methods.TASKS_LIST:
                self._waiting[ident] = asked._replace(message=message)
                return [seen, AskTask(ident, asked.method, {}, asked.modern, at, message.body)]
            if asked.method in methods.TASK_RESULTS:
                return [seen, self._answers.begin(ident, asked, message, at, of_task=True)]
            return [seen, ToAgent(message.raw, ident)]
        if asked.inspect == INSPECT_BEFORE:
            return [self._answers.begin(ident, asked, message, at)]
        return answer_call(self._replies, asked, message, at)

    def _answer_inspected(self, event: events.AnswerInspected) -> list[Command]:
        if event.key in self.inputs:
            return self.inputs.notice_inspected(event)
        if is_server_key(event.key):
            return self.served.inspected(event)
        if event.key not in self._waiting:
            self._abandoned.pop(event.key, None)
            return [Withdraw(event.key, event.held, CALLER_GONE)] if event.held else []
        has_room = self.held_calls < self.setup.max_held and not self._agent_gone
        return self._answers.inspected(event, has_room=has_room)

    def _server_faulted(self, fault: Fault, line: bytes, at: float) -> list[Command]:
        """Refuse an invalid frame from the server; if it was an answer, its caller gets an error."""
        unread = fault.check in UNREAD
        answered = find_id(line) if unread and fault.id is None else fault.id
        is_answer = (unread or not fault.answerable) and answered in self._open
        if unread or fault.check in STRAY:
            # Nothing shows that this was a request, so the server must not get an error response.
            fault = fault._replace(answerable=False)
        commands = self._replies.refused(fault, line, at, SERVER_TO_AGENT)
        asked = self._open.close(answered) if is_answer and answered is not None else None
        if asked is None or answered is None:
            return commands
        if self._replies.passes(fault):
            return [*commands, *self._replies.ended(asked, at, OK, len(line))]
        failed = self._replies.failed(answered, asked, "internal_error", at, text=UNREADABLE)
        return [*commands, *failed]

    def _kept_alive(self, event: events.KeptAlive) -> list[Command]:
        self._open.keep_alive(event.key, event.at)
        return []

    # Replies to commands of the session.

    def _call_judged(self, event: events.CallJudged) -> list[Command]:
        if is_server_key(event.key):
            return self._server_judged(event)
        tasked = self._tasked.take(event.call_id) if self._tasked.is_used else None
        if tasked is not None:
            return [*self.prompts.close(event.call_id), *self._task_judged(tasked, event)]
        asked = self._waiting.get(event.key)
        # As ``is_answered``, without a function call: every call passes here.
        if asked is None or (asked.message is not None and asked.message.shape != REQUEST):
            if asked is not None and asked.release and asked.release == event.call_id:
                return self._answers.decided(asked, event)
            return self._judged_too_late(event)
        return self._agent_judged(asked, event)

    def _agent_judged(self, asked: PendingRequest, event: events.CallJudged) -> list[Command]:
        key, verdict, call_id, at = event
        if verdict.action == LIST:
            return self._listings.begin(key, at)
        if verdict.action == APPROVE and not asked.held_since:
            return self._hold(event, asked._replace(call_id=call_id))
        del self._waiting[key]
        if asked.held_since:
            self._held -= 1
        closed = self.prompts.close(call_id) if self.prompts.is_used else ()
        if verdict.action == FORWARD and asked.message is not None:
            message = traced(unpack(asked.message), verdict.trace)
            inspect = inspection_of(verdict)
            self.inputs.inspects_notices |= inspect
            self._open.add(key, sent(asked, at, call_id, inspect))
            return [*closed, unchecked(ToServer, (message.raw, key, message, False, ""))]
        return [*closed, *self._replies.denied(key, asked._replace(call_id=call_id), verdict, at)]

    def _server_judged(self, event: events.CallJudged) -> list[Command]:
        """Handle the verdict on a request of the server, or on those in one of its results."""
        if event.key not in self.inputs:
            return self.served.judged(event)
        if (ident := self.inputs[event.key].message.id) is None:
            return self.inputs.notice_judged(event)
        asked = self._waiting.get(ident)
        decided, commands = self.inputs.judged(event, is_awaited=asked is not None)
        if decided is None or asked is None:
            return commands
        del self._waiting[ident]
        if event.verdict.action == FORWARD and asked.message is not None:
            return [*commands, *self._deliver(ident, asked, unpack(asked.message), event.at)]
        return [*commands, *self._replies.denied(ident, asked, event.verdict, event.at)]

    def _judged_too_late(self, event: events.CallJudged) -> list[Command]:
        """Withdraw a call whose caller left before the verdict; a service may have asked people."""
        if (asked := self._abandoned.pop(event.key, None)) is None:
            return []
        asked = asked._replace(call_id=event.call_id)
        ended = self._replies.withdrawn(asked, event.at, asked.given_up)
        withdraw = Withdraw(event.key, event.call_id, asked.given_up)
        return [withdraw, *ended] if event.verdict.action == APPROVE else ended

    def _hold(self, event: events.CallJudged, asked: PendingRequest) -> list[Command]:
        if self.held_calls >= self.setup.max_held:
            del self._waiting[event.key]
            verdict = Verdict(DENY, "approval", "service_unavailable", "too many calls are held")
            return self._replies.denied(event.key, asked, verdict, event.at)
        self._held += 1
        asked = self._waiting[event.key] = asked._replace(held_since=event.at)
        if self._agent_gone:
            return self._give_up(event.key, asked, CALLER_GONE, event.at)
        workflow, at = event.verdict.workflow, event.at
        assert asked.message is not None
        params = asked.message.body.get("params")
        self._waiting[event.key] = asked._replace(message=pack(asked.message))
        if params is not None and not wants_task(asked.method, params, modern=asked.modern):
            params = None
        asks = AskPeople(event.key, event.call_id, workflow, at, params, asked.modern)
        return [asks, *self.prompts.answered(event.call_id, asked.answer, at)]

    def _person_asked(self, event: events.PersonAsked) -> list[Command]:
        asked = self._waiting.get(event.key)
        # A result is never released in the agent's own prompt.
        if asked is None or not asked.held_since or is_answered(asked):
            return []
        assert asked.message is not None
        message = None if asked.answer else unpack(asked.message)
        shown = self.prompts.show(event, message, asked.call_id, modern=asked.modern)
        if any(frame.carries == ANSWER for frame in shown):
            return [*self._give_up(event.key, asked, ASKED_IN_AGENT, event.at), *shown]
        self._waiting[event.key] = asked._replace(waits=event.waits)
        return [*tell_progress(self._waiting, event.at), *shown]

    # Held calls that became tasks.

    def _task_made(self, event: events.TaskMade) -> list[Command]:
        if (asked := self._waiting.pop(event.key, None)) is None:
            return []
        self._held -= 1
        reply = self._replies.about_task(event.key, asked, event.body, event.at)
        if "error" not in event.body:
            self._tasked.hold(asked)
            return reply
        ended = self._replies.withdrawn(asked, event.at, "no task", ERROR, size_of(reply))
        return [Withdraw(event.key, asked.call_id, "the task could not be made"), *ended, *reply]

    def _task_answered(self, event: events.TaskAnswered) -> list[Command]:
        asked = self._waiting.pop(event.key, None)
        if asked is None:
            self._abandoned.pop(event.key, None)
            return []
        if event.body is None and asked.message is not None:
            self._open.add(event.key, sent(asked, event.at, asked.call_id, asked.inspect))
            return [ToServer(asked.message.raw, event.key, asked.message)]
        return self._replies.about_task(event.key, asked, event.body or {}, event.at)

    def _task_judged(self, asked: PendingRequest, event: events.CallJudged) -> list[Command]:
        """Run or refuse the call of a task, after a person has decided."""
        asked = asked._replace(inspect=inspection_of(event.verdict))
        assert asked.message is not None
        ready = traced(unpack(asked.message), event.verdict.trace)
        message = self._tasked.run(asked._replace(message=ready))
        ident = message.id
        assert ident is not None
        if event.verdict.action != FORWARD or self._not_askable(ident) is not None:
            return self._replies.denied(ident, asked, event.verdict, event.at)
        if self._server_gone is not None:
            return self._replies.unserved(ident, asked, self._server_gone, event.at)
        self._open.add(ident, sent(asked, event.at, asked.call_id, asked.inspect))
        return [ToServer(message.raw, ident, message)]

    def _list_screened(self, event: events.ListScreened) -> list[Command]:
        key, hidden, at, _ = event
        if key in (own := self._listings):
            return own.finish(key, FAILED, at) if hidden is None else own.screened(key, at)
        if (offered := self._offered.pop(key, None)) is None:
            return []
        message, asked = offered
        if hidden is None:
            return self._replies.failed(key, asked, "service_unavailable", at)
        if asked.method == "initialize":
            self.prompts.revision = message.body["result"].get("protocolVersion")
        revision = ("" if asked.modern else self.prompts.revision) if event.offers_tasks else None
        return [ToAgent(screened(message, asked.method, hidden, revision), key)]

    def _not_sent(self, event: events.NotSent) -> list[Command]:
        key, kind, at, facts, text = event
        if key in self._listings:
            return self._listings.finish(key, FAILED, at)
        if (asked := self._open.close(key)) is None:
            return []
        return self._replies.failed(key, asked, kind, at, text=text, facts=facts)

    # The agent, a caller or the server is gone, or the gate stops.

    def _agent_left(self, event: events.AgentGone) -> list[Command]:
        """Withdraw held calls; forwarded requests stay open, as the agent may read the answers."""
        self._agent_gone = True
        commands = self.served.withdraw_waiting(CALLER_GONE, event.at)
        for key, asked in list(self._waiting.items()):
            if asked.held_since or not asked.name:
                commands += self._give_up(key, asked, CALLER_GONE, event.at)
        for asked in self._tasked.take_all():
            commands.append(Withdraw(asked.call_id, asked.call_id, CALLER_GONE))
            commands += self._replies.withdrawn(asked, event.at, CALLER_GONE)
        return commands

    def _gate_stopping(self, event: events.GateStopping) -> list[Command]:
        """Deny every held call, because no decision can reach it after the stop."""
        verdict = Verdict(DENY, "approval", "approval_withdrawn", STOPPING)
        commands = self.served.withdraw_waiting(STOPPING, event.at)
        commands += self.inputs.withdraw_all(STOPPING, event.at)
        for key, asked in [one for one in self._waiting.items() if one[1].held_since]:
            del self._waiting[key]
            if asked.release:
                commands += self._answers.refuse(key, asked, STOPPING, event.at)
                continue
            self._held -= 1
            commands += [Withdraw(key, asked.call_id, STOPPING), *self.prompts.close(asked.call_id)]
            commands += self._replies.denied(key, asked, verdict, event.at)
        return commands

    def _caller_left(self, event: events.CallerGone) -> list[Command]:
        """Since MCP 2026-07-28 a disconnect cancels the request; in older revisions it does not."""
        key, at, is_given_up = event
        waiting = self._waiting.get(key)
        if waiting is not None:
            return self._give_up(key, waiting, CALLER_GONE, at)
        opened = self._open.get(key)
        if opened is None or not (opened.modern or is_given_up):
            return []
        self._open.close_early(key, at)
        ended = self._replies.ended(opened, at, CANCELLED, 0)
        return [*ended, to_server_frame(render_cancelled(key, CALLER_GONE))]

    def _server_left(self, event: events.ServerGone) -> list[Command]:
        """Answer every open request with an error; nothing stays open."""
        self._server_gone = event
        commands = self.served.end_all(event.reason, event.at)
        commands += self.inputs.withdraw_all(event.reason, event.at)
        for key, asked in self._waiting.items():
            if asked.held_since and not asked.release:
                commands.append(Withdraw(key, asked.call_id, event.reason))
        lost = {**self._waiting, **self._open}
        lost.update((key, offered.asked) for key, offered in self._offered.items())
        for key, asked in lost.items():
            if asked.release:
                commands += self._answers.refuse(key, asked, event.reason, event.at)
            else:
                commands += self._replies.unserved(key, asked, event, event.at)
        for key, asked in self._waiting.items():
            if not asked.call_id:
                self._abandoned[key] = asked._replace(message=None, given_up=event.reason)
        for table in self._passing:
            table.clear()
        self._held = 0
        return commands

    def _server_started(self, _: events.ServerStarted) -> list[Command]:
        self._server_gone = None
        return []

    def _give_up(
        self, key: RequestId, asked: PendingRequest, reason: str, at: float
    ) -> list[Command]:
        """Give up a request whose caller has left: even if a person approves it, it is not made."""
        if is_answered(asked):
            if not asked.release:
                # The inspection's outcome is still to come, and must not reach another request.
                self._abandoned[key] = asked._replace(message=None, given_up=reason)
            return self._answers.give_up(key, asked, reason, at)
        del self._waiting[key]
        if not asked.call_id:
            self._abandoned[key] = asked._replace(message=None, given_up=reason)
            return []
        self._held -= 1
        ended = self._replies.withdrawn(asked, at, reason)
        return [Withdraw(key, asked.call_id, reason), *self.prompts.close(asked.call_id), *ended]

    def _ticked(self, event: events.Ticked) -> list[Command]:
        oldest, commands = event.at - self.setup.timeout_s, list[Command]()
        for key, asked in list(self._open.items()):
            # A subscription stays open for as long as its caller listens.
            if asked.alive_at < oldest and asked.method != methods.LISTEN:
                self._open.close_early(key, event.at)
                commands += self._replies.timed_out(key, asked, event.at)
        self._open.forget_late(event.at)
        if self._listings:
            commands += self._listings.end_late(event.at)
        if self.held_calls:
            commands += tell_progress(self._waiting, event.at)
        return commands

    _HANDLERS: Final[dict[type, Any]] = {
        events.AgentSent: _agent_sent,
        events.ServerSent: _server_sent,
        events.CallJudged: _call_judged,
        events.ListScreened: _list_screened,
        events.AnswerInspected: _answer_inspected,
        events.PersonAsked: _person_asked,
        events.TaskMade: _task_made,
        events.TaskAnswered: _task_answered,
        events.TaskChanged: lambda _, event: [task_notice(event.body)],
        events.NotSent: _not_sent,
        events.KeptAlive: _kept_alive,
        events.GateStopping: _gate_stopping,
        events.AgentGone: _agent_left,
        events.CallerGone: _caller_left,
        events.ServerGone: _server_left,
        events.ServerStarted: _server_started,
        events.Ticked: _ticked,
    }
