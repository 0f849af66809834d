"""Interprets the messages of clients: answers them, has them judged and routed, or refuses them.

The hub is a server in both eras of the protocol: a request with an envelope in ``_meta`` is
modern and self-contained, any other request belongs to a legacy session.
"""

import logging
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeAlias

from thoughtgate.core.commands import ANSWER, ToAgent
from thoughtgate.core.events import AgentSent
from thoughtgate.core.negotiation import (
    GONE_IN_MODERN,
    LOG_LEVELS,
    UNSUPPORTED_VERSION,
    completed,
    discover_result,
    initialize_result,
    merge_capabilities,
)
from thoughtgate.core.record_events import AGENT_TO_SERVER, frame_refused, message_seen
from thoughtgate.core.task import lacks_correlation, refusal_kind, with_correlation
from thoughtgate.front.post import Post
from thoughtgate.front.stdio import StdioAgent
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Sink
from thoughtgate.hub.client import Client
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.manager_tools import ENTRIES
from thoughtgate.hub.namespace import NoSelection
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.hub.routes import Target
from thoughtgate.hub.subscriptions import HubListens
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.lines import length_of
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Fault, Message, RequestId
from thoughtgate.wire.methods import (
    CANCELLED,
    LISTEN,
    LISTINGS,
    TASK_METHODS,
    Named,
    named_by,
)
from thoughtgate.wire.replies import render, render_error
from thoughtgate.wire.revisions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    META,
    MODERN,
    SUPPORTED,
    traceparent,
    version_in,
)

Params: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[["Request"], dict[str, Any] | None]

_log: Final = logging.getLogger("thoughtgate.serve")


class Request(NamedTuple):
    """A request of a client that the hub handles."""

    client: Client
    message: Message
    id: RequestId
    params: Params
    modern: bool
    trace: str
    """The W3C trace context that it arrived with."""

    @property
    def method(self) -> str:
        """The request's method."""
        return self.message.method

    def reply(self, result: dict[str, Any]) -> None:
        """Answer with a result."""
        if self.modern:
            result = completed(self.method, result)
        self.client.reply(render({"jsonrpc": "2.0", "id": self.id, "result": result}), self.id)

    def refuse(self, kind: str, text: str = "", details: dict[str, Any] | None = None) -> None:
        """Answer with an error."""
        error = render_error(
            self.id,
            kind,
            modern=self.modern,
            message=text,
            details=details,
            correlation_id=self.client.note_error(self.method, kind),
        )
        self.client.reply(error, self.id, kind)

    def refuse_version(self, text: str, supported: tuple[str, ...]) -> None:
        """Answer that the request's revision is not supported."""
        kind = "invalid_request"
        data = {
            "supported": list(supported),
            "requested": version_in(self.params),
            "correlation_id": self.client.note_error(self.method, kind),
        }
        error = {"code": UNSUPPORTED_VERSION, "message": text, "data": data}
        reply = render({"jsonrpc": "2.0", "id": self.id, "error": error})
        self.client.reply(reply, self.id, kind)


class HubRequests:
    """Handles the messages of clients."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._listens = HubListens(hub)
        self._answers: dict[str, Answer] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "logging/setLevel": self._set_level,
            "resources/unsubscribe": self._unsubscribe,
        }

    def receive(self, client: Client, event: AgentSent, sink: Sink | None) -> int:
        """Handle one frame of a client; return how many frames answer it at once."""
        line, _, message, _ = event
        if message is None:
            if not line.strip():
                return 0
            message = read_frame(line)
        if isinstance(message, Fault):
            return self.refuse(client, message, line, sink)
        if message.shape == REQUEST:
            return self._asked(client, message, sink)
        if message.shape == NOTIFICATION:
            return self._notified(client, message, sink)
        return self._answered(client, message, sink)

    # Requests.

    def _asked(self, client: Client, message: Message, sink: Sink | None) -> int:
        facts = {"id": message.id, "method": message.method}
        _log.debug("request %s (%d bytes)", message.method, len(message.raw), extra=facts)
        fault = self._not_askable(client, message)
        if fault is not None or message.id is None:
            return 0 if fault is None else self.refuse(client, fault, message.raw, sink, message)
        params: Params = message.body.get("params") or {}
        modern = version_in(params) is not None
        request = Request(client, message, message.id, params, modern, client.trace)
        if modern and not self._take_envelope(request):
            return 1
        selection = self._hub.selection
        if isinstance(selection, NoSelection) and request.method != "ping":
            self._see(client, message)
            details = {"namespaces": list(selection.choices)}
            request.refuse("invalid_request", selection.reason, details)
            return 1
        return self._dispatch(request, sink)

    def _dispatch(self, request: Request, sink: Sink | None) -> int:
        client, message, method = request.client, request.message, request.method
        named = named_by(method, request.params)
        if isinstance(named, str):
            fault = Fault("invalid_params", named, "wrong_params", request.id)
            return self.refuse(client, fault, message.raw, sink, message)
        if named and method != LISTEN:
            self._gated(request, named[0])
            return 1
        self._see(client, message)
        answer = self._answers.get(method)
        if method in LISTINGS:
            self._work(request, self._list(request))
        elif method == LISTEN and request.modern:
            self._work(request, self._listens.open(client, request.id, request.params))
        elif method in TASK_METHODS:
            self._work(request, self._about_task(request))
        elif answer is None:
            request.refuse("method_not_found")
        elif (result := answer(request)) is not None:
            request.reply(result)
        return 1

    def _not_askable(self, client: Client, message: Message) -> Fault | None:
        ident = message.id
        if ident is not None and client.is_open(ident):
            return Fault("invalid_request", "the id is already in use", "id_in_use", ident)
        if client.is_full:
            return Fault("service_unavailable", "too many requests are open", "too_many", ident)
        return None

    def _take_envelope(self, request: Request) -> bool:
        """Check the envelope of a modern request and apply it; return False if it was refused."""
        client, meta = request.client, request.params[META]
        if version_in(request.params) not in MODERN:
            request.refuse_version("the protocol version is not supported", MODERN)
            return False
        if type(meta.get(CAPABILITIES_KEY)) is not dict:
            request.refuse("invalid_params", f"_meta must hold {CAPABILITIES_KEY}")
            return False
        if request.method in GONE_IN_MODERN:
            request.refuse("method_not_found")
            return False
        # Only now: a refused envelope must not change what is known about the client.
        client.is_modern = True
        client.introduce(meta[CAPABILITIES_KEY], meta.get(CLIENT_KEY))
        self._hub.declare(client)
        return True

    def _work(self, request: Request, work: Coroutine[Any, Any, None]) -> None:
        client, ident = request.client, request.id
        client.work[ident] = spawn(work)
        client.work[ident].add_done_callback(lambda _: client.work.pop(ident, None))

    # Requests that the hub itself answers.

    def _initialize(self, request: Request) -> dict[str, Any] | None:
        client, params = request.client, request.params
        if client.introduced.is_set() and not client.is_modern:
            request.refuse("invalid_request", "already initialized")
            return None
        client.is_modern = False
        client.introduce(params.get("capabilities"), params.get("clientInfo"))
        self._hub.declare(client)
        caller = client.callers.get(request.id)
        if isinstance(caller, Post):
            # The servers' session ids mean nothing to this client, so the hub assigns its own.
            caller.session_named(uuid.uuid4().hex)
        return self._when_introduced(request, self._initialized)

    def _initialized(self, request: Request) -> dict[str, Any]:
        asked, capabilities = (
            request.params.get("protocolVersion"),
            self._capabilities(request.client),
        )
        return initialize_result(asked, capabilities, self._hub.instructions())

    def _discover(self, request: Request) -> dict[str, Any] | None:
        if not request.modern:
            request.refuse_version("no protocol version", SUPPORTED)
            return None
        return self._when_introduced(request, self._discovered)

    def _discovered(self, request: Request) -> dict[str, Any]:
        return discover_result(self._capabilities(request.client), self._hub.instructions())

    def _when_introduced(
        self, request: Request, result: Callable[[Request], dict[str, Any]]
    ) -> dict[str, Any] | None:
        """Return a result that contains instructions; reply later if servers are starting."""
        if not self._hub.is_starting:
            return result(request)

        async def reply_later() -> None:
            await self._hub.introduced()
            request.reply(result(request))

        self._work(request, reply_later())
        return None

    def _capabilities(self, client: Client) -> dict[str, Any]:
        known = [one.capabilities for one in self._hub.supervisors if one.settings.enabled]
        merged = merge_capabilities(known, manager_tools=self._hub.settings.manager_tools)
        return self._hub.gate.advertise_tasks(merged, client) if "tools" in merged else merged

    def _set_level(self, request: Request) -> dict[str, Any] | None:
        level = request.params.get("level")
        if level not in LOG_LEVELS:
            request.refuse("invalid_params", f"level must be one of {', '.join(LOG_LEVELS)}")
            return None
        request.client.log_level = str(level)
        self._hub.set_log_level()
        return {}

    def _unsubscribe(self, request: Request) -> dict[str, Any] | None:
        client, uri = request.client, request.params.get("uri")
        server = client.followed.pop(uri, None) if type(uri) is str else None
        if server is not None and type(uri) is str:
            self._hub.unfollow(client, server, uri, self._trace(client, request.params))
        return {}

    def _trace(self, client: Client, params: Params) -> str:
        """Return the caller's trace context, for a request that is not judged and has no span."""
        carried = client.trace if self._hub.gate.governor.trace is not None else ""
        return carried or traceparent(params)

    # Lists.

    async def _list(self, request: Request) -> None:
        hub, client, method = self._hub, request.client, request.method
        cursor = request.params.get("cursor")
        supervisors = hub.supervisors_for(client)
        await hub.lists.collect(method, supervisors)
        own = ENTRIES if method == "tools/list" and hub.settings.manager_tools else ()
        entries = hub.lists.show(client, method, supervisors, hub.settings.separator, own)
        page = None
        if cursor is None or type(cursor) is str:
            page = hub.lists.page(entries, cursor)
        if page is None:
            request.refuse("invalid_params", "the cursor is not valid")
            return
        rest: dict[str, Any] = {"nextCursor": page.cursor} if page.cursor else {}
        if request.modern:
            rest = completed(method, rest)
        shown = entries[page.start : page.stop]
        reply = _rendered_list(request.id, LISTINGS[method].member, shown, rest)
        client.reply(reply, request.id)

    # Calls.

    def _gated(self, request: Request, named: Named) -> None:
        """Find the server of a call, and have the call judged in the session with it."""
        hub, client, params = self._hub, request.client, request.params
        if named.kind == "resource":
            target = hub.routes.owned(named.name, params, hub.supervisors_for(client))
            if not target.server and any(one.settings.enabled for one in hub.supervisors):
                # A URI does not name its server: only the servers' lists can tell.
                self._learn(request, self._find_owner(request, named.name))
                return
        else:
            target = hub.routes.named(
                request.method, named, params, hub.server_ids, hub.settings.separator
            )
        supervisor = hub.supervisor_for(client, target.server)
        if supervisor is not None and hub.routes.needs_list(target, supervisor):
            self._learn(request, self._learn_first(request, named.name, target, supervisor))
            return
        if supervisor is not None:
            hub.routes.teach(supervisor)
        self._carry(request, named.name, target)

    def _learn(self, request: Request, work: Coroutine[Any, Any, None]) -> None:
        client, ident = request.client, request.id
        client.learning.add(ident)
        self._work(request, work)
        client.work[ident].add_done_callback(lambda _: client.learning.discard(ident))

    async def _learn_first(
        self, request: Request, shown: str, target: Target, supervisor: ServerRelay
    ) -> None:
        await self._hub.routes.learn(target, supervisor)
        self._carry(request, shown, target)

    async def _find_owner(self, request: Request, uri: str) -> None:
        hub = self._hub
        supervisors = hub.supervisors_for(request.client)
        await hub.routes.collect_resources(supervisors)
        self._carry(request, uri, hub.routes.owned(uri, request.params, supervisors))

    def _carry(self, request: Request, shown: str, target: Target) -> None:
        """Have a call judged and carried; ``shown`` is the name that the client used."""
        hub, client, message = self._hub, request.client, request.message
        if client.is_gone:
            return
        client.work.pop(request.id, None)
        client.learning.discard(request.id)
        check = client.header_checks.pop(request.id, None)
        if check is not None and not check():
            return  # the check has answered the call
        offer = hub.offer_of(client, target)
        target = hub.routes.unless_unknown(target, shown, request.params, offer)
        carrier = hub.gate.carrier_of(client, message, modern=request.modern)
        session = hub.session(carrier, target.server)
        caller = client.callers.get(request.id, client.line)
        session.ask(message, target.params, shown, caller, request.trace)

    async def _about_task(self, request: Request) -> None:
        client, ident = request.client, request.id
        body = await self._hub.gate.ask_task(
            client, ident, request.method, request.params, modern=request.modern
        )
        if kind := lacks_correlation(body):
            body = with_correlation(body, client.note_error(request.method, kind))
        client.reply(render({"jsonrpc": "2.0", "id": ident, **body}), ident, refusal_kind(body))

    # Notifications and responses.

    def _notified(self, client: Client, message: Message, sink: Sink | None) -> int:
        method = message.method
        if named_by(method, message.body.get("params") or {}) or method in LISTINGS:
            # Without an id there is no way to report the verdict, so such a call is not made.
            fault = Fault("invalid_request", "this method needs an id", "missing_id")
            return self.refuse(client, fault, message.raw, sink, message)
        if method != CANCELLED:
            self._see(client, message)
        if method == CANCELLED:
            self._cancelled(client, message)
        # 2026-07-28 has no such notification, so only legacy servers get it.
        elif method == "notifications/roots/list_changed":
            for supervisor in self._hub.supervisors_for(client):
                upstream = supervisor.upstream
                if upstream is not None and upstream.is_open and not upstream.modern:
                    upstream.say({"jsonrpc": "2.0", "method": method})
        if isinstance(sink, Post | StdioAgent):
            client.outbox.later(sink.passed, 202, b"", b"")
        return 1

    def _cancelled(self, client: Client, message: Message) -> None:
        params = message.body.get("params") or {}
        ident = params.get("requestId")
        session = client.routes.get(ident) if isinstance(ident, str | int) else None
        if session is not None:
            session.feed(AgentSent(message.raw, now(), message), None)
            return
        self._see(client, message)
        if ident in client.listens:
            self._listens.close(client, ident)
        elif ident in client.work:
            client.work[ident].cancel()

    def _answered(self, client: Client, message: Message, sink: Sink | None) -> int:
        session = client.questions.get(message.id) if message.id is not None else None
        if session is not None:
            return session.feed(AgentSent(message.raw, now(), message), sink)
        fault = Fault("invalid_request", "", "unknown_response", None, answerable=False)
        return self.refuse(client, fault, message.raw, sink)

    # Records and replies.

    def _see(self, client: Client, message: Message) -> None:
        """Record a message that is not judged."""
        self._hub.gate.note(
            message_seen(
                now(),
                "",
                client.id,
                AGENT_TO_SERVER,
                message.shape,
                message.method,
                len(message.raw),
            )
        )

    def refuse(
        self,
        client: Client,
        fault: Fault,
        frame: bytes,
        sink: Sink | None,
        message: Message | None = None,
    ) -> int:
        """Refuse a frame: record the refusal, and answer its sender if an answer is due."""
        params = message.body.get("params") if message is not None else None
        correlation_id = self._hub.gate.governor.errors.next()
        self._hub.gate.note(
            frame_refused(
                now(),
                "",
                client.id,
                direction=AGENT_TO_SERVER,
                check=fault.check,
                kind=fault.kind,
                size=length_of(frame),
                start=frame,
                method=message.method if message is not None else "",
                correlation_id=correlation_id,
            )
        )
        if not fault.answerable or sink is None:
            return 0
        reply = render_error(
            fault.id,
            fault.kind,
            modern=version_in(params) is not None,
            message=fault.reason,
            correlation_id=correlation_id,
            details={"check": fault.check},
        )
        # Sent to the sink the frame came from, not looked up by id: the id may be missing or
        # belong to another open request.
        sink.take(ToAgent(reply, None, ANSWER, fault.kind))
        return 1


def _rendered_list(
    ident: RequestId, member: str, entries: list[bytes], rest: dict[str, Any]
) -> bytes:
    """Assemble the response to a list request from entries that are already rendered."""
    head = render({"jsonrpc": "2.0", "id": ident})[:-1]
    tail = b"," + render(rest)[1:-1] if rest else b""
    return b'%b,"result":{"%b":[%b]%b}}' % (head, member.encode(), b",".join(entries), tail)
