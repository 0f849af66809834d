"""Interprets clients' messages: the hub answers, lists, has them judged and routed, or refuses.

The hub is a server in both eras of the protocol: a request with an envelope in ``_meta`` is
modern and self-contained, any other request belongs to a legacy session.
"""

import logging
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeAlias

from thoughtgate import __version__
from thoughtgate.core.commands import ANSWER, ToAgent
from thoughtgate.core.events import AgentSent
from thoughtgate.core.namespace import NoSelection
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
from thoughtgate.core.task import refusal_kind
from thoughtgate.front.post import Post
from thoughtgate.front.stdio import StdioAgent
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Sink
from thoughtgate.hub.client import Client
from thoughtgate.hub.engine import TASK_METHODS
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.routes import Target
from thoughtgate.hub.subscriptions import HubListens
from thoughtgate.upstream.supervisor import Supervisor
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.lines import length_of
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Fault, Message, RequestId
from thoughtgate.wire.methods import CANCELLED, LISTEN, LISTINGS, Named, named_by
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
Answer: TypeAlias = Callable[[Client, Message, Params], dict[str, Any] | None]

_log: Final = logging.getLogger("thoughtgate.serve")


class HubRequests:
    """Handles the messages of clients."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._listens = HubListens(hub)
        self._refusals = 0
        self._answers: dict[str, Answer] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda *_: {},
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
        ident, method = message.id, message.method
        params: Params = message.body.get("params") or {}
        modern = version_in(params) is not None
        facts = {"id": ident, "method": method}
        _log.debug("request %s (%d bytes)", method, len(message.raw), extra=facts)
        fault = self._not_askable(client, message)
        if fault is not None or ident is None:
            return 0 if fault is None else self._refuse_request(client, fault, message, sink)
        if modern and not self._take_envelope(client, ident, method, params):
            return 1
        selection = self._hub.selection
        if isinstance(selection, NoSelection) and method != "ping":
            self._see(client, message)
            details = {"namespaces": list(selection.choices)}
            self._error(
                client, ident, "invalid_request", selection.reason, modern=modern, details=details
            )
            return 1
        return self._dispatch(client, message, ident, params, sink, modern=modern)

    def _dispatch(
        self,
        client: Client,
        message: Message,
        ident: RequestId,
        params: Params,
        sink: Sink | None,
        *,
        modern: bool,
    ) -> int:
        method = message.method
        named = named_by(method, params) if method != LISTEN else []
        if isinstance(named, str):
            fault = Fault("invalid_params", named, "wrong_params", ident)
            return self._refuse_request(client, fault, message, sink)
        if named:
            self._gated(client, message, ident, params, named[0], modern=modern)
            return 1
        self._see(client, message)
        answer = self._answers.get(method)
        if method in LISTINGS:
            self._work(client, ident, self._list(client, ident, method, params, modern=modern))
        elif method == LISTEN and modern:
            self._work(client, ident, self._listens.open(client, ident, params))
        elif method in TASK_METHODS:
            self._work(client, ident, self._about_task(client, ident, method, params, modern))
        elif answer is not None:
            result = answer(client, message, params)
            if result is not None:
                self._reply(client, ident, method, result, modern=modern)
        else:
            self._error(client, ident, "method_not_found", "", modern=modern)
        return 1

    def _not_askable(self, client: Client, message: Message) -> Fault | None:
        ident = message.id
        if ident is not None and client.is_open(ident):
            return Fault("invalid_request", "the id is already in use", "id_in_use", ident)
        if client.is_full:
            return Fault("service_unavailable", "too many requests are open", "too_many", ident)
        return None

    def _take_envelope(self, client: Client, ident: RequestId, method: str, params: Params) -> bool:
        """Check the envelope of a modern request and apply it; return False if it was refused."""
        version, meta = version_in(params), params[META]
        if version not in MODERN:
            error = {
                "code": UNSUPPORTED_VERSION,
                "message": "the protocol version is not supported",
                "data": {"supported": list(MODERN), "requested": version},
            }
            reply = render({"jsonrpc": "2.0", "id": ident, "error": error})
            client.reply(reply, ident, "invalid_request")
            return False
        if type(meta.get(CAPABILITIES_KEY)) is not dict:
            text = f"_meta must hold {CAPABILITIES_KEY}"
            self._error(client, ident, "invalid_params", text, modern=True)
            return False
        if method in GONE_IN_MODERN:
            self._error(client, ident, "method_not_found", "", modern=True)
            return False
        # Only now: a refused envelope must not change what is known of the client.
        client.is_modern = True
        client.introduce(meta[CAPABILITIES_KEY], meta.get(CLIENT_KEY))
        self._hub.declare(client)
        return True

    def _work(self, client: Client, ident: RequestId, work: Coroutine[Any, Any, None]) -> None:
        task = spawn(work)
        client.work[ident] = task
        task.add_done_callback(lambda _: client.work.pop(ident, None))

    # Requests that the hub itself answers.

    def _initialize(
        self, client: Client, message: Message, params: Params
    ) -> dict[str, Any] | None:
        if client.introduced.is_set() and not client.is_modern:
            self._error(client, message.id, "invalid_request", "already initialized", modern=False)
            return None
        client.is_modern = False
        client.introduce(params.get("capabilities"), params.get("clientInfo"))
        self._hub.declare(client)
        caller = client.callers.get(message.id) if message.id is not None else None
        if isinstance(caller, Post):
            # The servers' session ids mean nothing to this client, so the hub assigns its own.
            caller.session_named(uuid.uuid4().hex)
        asked = params.get("protocolVersion")
        capabilities = self._capabilities(client)
        return initialize_result(asked, capabilities, __version__, self._hub.instructions())

    def _discover(self, client: Client, message: Message, params: Params) -> dict[str, Any] | None:
        if version_in(params) is None:
            data = {"supported": list(SUPPORTED), "requested": None}
            error = {"code": UNSUPPORTED_VERSION, "message": "no protocol version", "data": data}
            reply = render({"jsonrpc": "2.0", "id": message.id, "error": error})
            client.reply(reply, message.id, "invalid_request")
            return None
        return discover_result(self._capabilities(client), __version__, self._hub.instructions())

    def _capabilities(self, client: Client) -> dict[str, Any]:
        known = [one.capabilities for one in self._hub.supervisors if one.settings.enabled]
        merged = merge_capabilities(known, manager_tools=self._hub.settings.manager_tools)
        return self._hub.gate.advertise_tasks(merged, client) if "tools" in merged else merged

    def _set_level(self, client: Client, message: Message, params: Params) -> dict[str, Any] | None:
        level = params.get("level")
        if level not in LOG_LEVELS:
            text = f"level must be one of {', '.join(LOG_LEVELS)}"
            self._error(client, message.id, "invalid_params", text, modern=False)
            return None
        client.log_level = str(level)
        self._hub.set_log_level()
        return {}

    def _unsubscribe(
        self, client: Client, message: Message, params: Params
    ) -> dict[str, Any] | None:
        del message
        uri = params.get("uri")
        server = client.followed.pop(uri, None) if type(uri) is str else None
        if server is not None and type(uri) is str:
            self._hub.unfollow(client, server, uri, self._trace(client, params))
        return {}

    def _trace(self, client: Client, params: Params) -> str:
        """Return the caller's trace context, for a request that is not judged and has no span."""
        carried = client.trace if self._hub.gate.governor.trace is not None else ""
        return carried or traceparent(params)

    # Lists.

    async def _list(
        self, client: Client, ident: RequestId, method: str, params: Params, *, modern: bool
    ) -> None:
        hub = self._hub
        cursor = params.get("cursor")
        supervisors = hub.supervisors_for(client)
        await hub.lists.collect(method, supervisors)
        own = hub.own_tools if method == "tools/list" else None
        entries = hub.lists.show(client, method, supervisors, hub.settings.separator, own)
        page = None
        if cursor is None or type(cursor) is str:
            page = hub.lists.page(entries, cursor)
        if page is None:
            self._error(client, ident, "invalid_params", "the cursor is not valid", modern=modern)
            return
        rest: dict[str, Any] = {"nextCursor": page.cursor} if page.cursor else {}
        if modern:
            rest = completed(method, rest, __version__)
        client.reply(
            _rendered_list(ident, LISTINGS[method].member, entries[page.start : page.stop], rest),
            ident,
        )

    # Calls.

    def _gated(
        self,
        client: Client,
        message: Message,
        ident: RequestId,
        params: Params,
        named: Named,
        *,
        modern: bool,
    ) -> None:
        """Find the server of a call, and have the call judged in the session with it."""
        hub, asked = self._hub, _Asked(message, named.name, client.trace, modern)
        if named.kind == "resource":
            target = hub.routes.owned(named.name, params, hub.supervisors_for(client))
            if not target.server and any(one.settings.enabled for one in hub.supervisors):
                # A URI does not name its server: only the servers' lists can tell.
                self._learn(client, ident, self._find_owner(client, asked))
                return
        else:
            target = hub.routes.named(
                message.method, named, params, hub.server_ids, hub.settings.separator
            )
        supervisor = hub.supervisor_for(client, target.server)
        if supervisor is not None and hub.routes.needs_list(target, supervisor):
            self._learn(client, ident, self._learn_first(client, asked, target, supervisor))
            return
        if supervisor is not None:
            hub.routes.teach(supervisor)
        self._carry(client, asked, target)

    def _learn(self, client: Client, ident: RequestId, work: Coroutine[Any, Any, None]) -> None:
        client.learning.add(ident)
        self._work(client, ident, work)
        client.work[ident].add_done_callback(lambda _: client.learning.discard(ident))

    async def _learn_first(
        self, client: Client, asked: "_Asked", target: Target, supervisor: Supervisor
    ) -> None:
        await self._hub.routes.learn(target, supervisor)
        self._carry(client, asked, target)

    async def _find_owner(self, client: Client, asked: "_Asked") -> None:
        hub = self._hub
        supervisors = hub.supervisors_for(client)
        await hub.routes.collect_resources(supervisors)
        params = asked.message.body.get("params") or {}
        self._carry(client, asked, hub.routes.owned(asked.shown, params, supervisors))

    def _carry(self, client: Client, asked: "_Asked", target: Target) -> None:
        message = asked.message
        if message.id is None or client.is_gone:
            return
        hub = self._hub
        client.work.pop(message.id, None)
        client.learning.discard(message.id)
        params = message.body.get("params") or {}
        target = hub.routes.unless_unknown(
            target, asked.shown, params, hub.offer_of(client, target)
        )
        carrier = hub.gate.carrier_of(client, message, modern=asked.modern)
        session = hub.session(carrier, target.server)
        caller = client.callers.get(message.id, client.line)
        session.ask(message, target.params, asked.shown, caller, asked.trace)

    async def _about_task(
        self, client: Client, ident: RequestId, method: str, params: Params, modern: bool
    ) -> None:
        body = await self._hub.gate.ask_task(client, ident, method, params, modern=modern)
        client.reply(render({"jsonrpc": "2.0", "id": ident, **body}), ident, refusal_kind(body))

    # Notifications and responses.

    def _notified(self, client: Client, message: Message, sink: Sink | None) -> int:
        method = message.method
        if named_by(method, message.body.get("params") or {}) or method in LISTINGS:
            # Without an id there is no way to report the verdict, so such a call is not made.
            fault = Fault("invalid_request", "this method needs an id", "missing_id")
            return self.refuse(client, fault, message.raw, sink, method=method)
        if method != CANCELLED:
            self._see(client, message)
        if method == CANCELLED:
            self._cancelled(client, message)
        # 2026-07-28 has no such notification, so only legacy servers get it.
        elif method == "notifications/roots/list_changed":
            for supervisor in self._hub.supervisors_for(client):
                upstream = supervisor.upstream
                if upstream is not None and upstream.is_open and not upstream.modern:
                    upstream.notify(method)
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

    def _refuse_request(
        self, client: Client, fault: Fault, message: Message, sink: Sink | None
    ) -> int:
        modern = version_in(message.body.get("params") or {}) is not None
        raw, method = message.raw, message.method
        return self.refuse(client, fault, raw, sink, modern=modern, method=method)

    def refuse(
        self,
        client: Client,
        fault: Fault,
        frame: bytes,
        sink: Sink | None,
        *,
        modern: bool = False,
        method: str = "",
    ) -> int:
        """Refuse a frame: record the refusal, and answer its sender if an answer is due."""
        self._refusals += 1
        correlation_id = f"{client.id}-h{self._refusals}"
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
                method=method,
                correlation_id=correlation_id,
            )
        )
        if not fault.answerable or sink is None:
            return 0
        reply = render_error(
            fault.id,
            fault.kind,
            modern=modern,
            message=fault.reason,
            correlation_id=correlation_id,
            details={"check": fault.check},
        )
        # Sent to the sink the frame came from, not looked up by id: the id may be missing or
        # belong to another open request.
        sink.take(ToAgent(reply, None, ANSWER, fault.kind))
        return 1

    def _reply(
        self, client: Client, ident: RequestId, method: str, result: dict[str, Any], *, modern: bool
    ) -> None:
        if modern:
            result = completed(method, result, __version__)
        client.reply(render({"jsonrpc": "2.0", "id": ident, "result": result}), ident)

    def _error(
        self,
        client: Client,
        ident: RequestId | None,
        kind: str,
        text: str,
        *,
        modern: bool,
        details: dict[str, Any] | None = None,
    ) -> None:
        reply = render_error(ident, kind, modern=modern, message=text, details=details)
        client.reply(reply, ident, kind)


class _Asked(NamedTuple):
    """A gated request that has not reached the session of its server yet."""

    message: Message
    shown: str
    """The composed name that the client used."""
    trace: str
    modern: bool


def _rendered_list(
    ident: RequestId, member: str, entries: list[bytes], rest: dict[str, Any]
) -> bytes:
    """Assemble the response to a list request from entries that are already rendered."""
    head = render({"jsonrpc": "2.0", "id": ident})[:-1]
    tail = b"," + render(rest)[1:-1] if rest else b""
    return b'%b,"result":{"%b":[%b]%b}}' % (head, member.encode(), b",".join(entries), tail)
