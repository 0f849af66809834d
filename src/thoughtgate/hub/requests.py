"""What a client's message means to the hub: answered here, listed, judged and routed, or refused.

The hub is a server of its own in both eras: a request with an envelope is modern and
stands alone, any other belongs to a legacy session.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from thoughtgate import __version__
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
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import now
from thoughtgate.hub.client import Client
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.routes import Target
from thoughtgate.hub.subscriptions import HubListens
from thoughtgate.hub.tasks import METHODS as TASK_METHODS
from thoughtgate.wire.frame import read_frame
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
    """Reads what clients send."""

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

    def receive(self, client: Client, line: bytes) -> None:
        """Take one frame of a client."""
        if not line.strip():
            return
        message = read_frame(line)
        if isinstance(message, Fault):
            self.refuse(client, message, len(line), modern=False)
        else:
            self.take(client, message)

    def take(self, client: Client, message: Message) -> None:
        """Take one message of a client."""
        if message.shape == REQUEST:
            self._asked(client, message)
        elif message.shape == NOTIFICATION:
            self._notified(client, message)
        else:
            self._answered(client, message)

    # Requests.

    def _asked(self, client: Client, message: Message) -> None:
        ident, method = message.id, message.method
        params: Params = message.body.get("params") or {}
        modern = version_in(params) is not None
        facts = {"id": ident, "method": method}
        _log.debug("request %s (%d bytes)", method, len(message.raw), extra=facts)
        fault = self._not_askable(client, message)
        if fault is not None or ident is None:
            if fault is not None:
                self.refuse(client, fault, len(message.raw), modern=modern, method=method)
            return
        if modern and not self._take_envelope(client, ident, method, params):
            return
        selection = self._hub.selection
        if isinstance(selection, NoSelection) and method != "ping":
            self._see(client, message)
            details = {"namespaces": list(selection.choices)}
            self._error(
                client, ident, "invalid_request", selection.reason, modern=modern, details=details
            )
            return
        self._dispatch(client, message, ident, params, modern=modern)

    def _dispatch(
        self, client: Client, message: Message, ident: RequestId, params: Params, *, modern: bool
    ) -> None:
        method = message.method
        named = named_by(method, params) if method != LISTEN else []
        if isinstance(named, str):
            fault = Fault("invalid_params", named, "wrong_params", ident)
            self.refuse(client, fault, len(message.raw), modern=modern, method=method)
            return
        if named:
            self._gated(client, message, ident, params, named[0], modern=modern)
            return
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

    def _not_askable(self, client: Client, message: Message) -> Fault | None:
        ident = message.id
        if ident is not None and client.is_taken(ident):
            return Fault("invalid_request", "the id is already in use", "id_in_use", ident)
        if client.is_full:
            return Fault("service_unavailable", "too many requests are open", "too_many", ident)
        return None

    def _take_envelope(self, client: Client, ident: RequestId, method: str, params: Params) -> bool:
        """Check what a modern request says of itself; False when it was refused."""
        version, meta = version_in(params), params[META]
        if version not in MODERN:
            error = {
                "code": UNSUPPORTED_VERSION,
                "message": "the protocol version is not supported",
                "data": {"supported": list(MODERN), "requested": version},
            }
            client.reply(render({"jsonrpc": "2.0", "id": ident, "error": error}), ident)
            return False
        if type(meta.get(CAPABILITIES_KEY)) is not dict:
            text = f"_meta must hold {CAPABILITIES_KEY}"
            self._error(client, ident, "invalid_params", text, modern=True)
            return False
        if method in GONE_IN_MODERN:
            self._error(client, ident, "method_not_found", "", modern=True)
            return False
        client.modern = True
        client.introduce(meta[CAPABILITIES_KEY], meta.get(CLIENT_KEY))
        self._hub.declare(client)
        return True

    def _work(self, client: Client, ident: RequestId, work: Coroutine[Any, Any, None]) -> None:
        task = spawn(work)
        client.work[ident] = task
        task.add_done_callback(lambda _: client.work.pop(ident, None))

    # Answered by the hub itself.

    def _initialize(
        self, client: Client, message: Message, params: Params
    ) -> dict[str, Any] | None:
        if client.introduced.is_set() and not client.modern:
            self._error(client, message.id, "invalid_request", "already initialized", modern=False)
            return None
        client.modern = False
        client.introduce(params.get("capabilities"), params.get("clientInfo"))
        self._hub.declare(client)
        asked = params.get("protocolVersion")
        capabilities = self._capabilities(client)
        return initialize_result(asked, capabilities, __version__, self._hub.instructions())

    def _discover(self, client: Client, message: Message, params: Params) -> dict[str, Any] | None:
        if version_in(params) is None:
            data = {"supported": list(SUPPORTED), "requested": None}
            error = {"code": UNSUPPORTED_VERSION, "message": "no protocol version", "data": data}
            client.reply(render({"jsonrpc": "2.0", "id": message.id, "error": error}), message.id)
            return None
        return discover_result(self._capabilities(client), __version__, self._hub.instructions())

    def _capabilities(self, client: Client) -> dict[str, Any]:
        known = [one.capabilities for one in self._hub.supervisors if one.settings.enabled]
        merged = merge_capabilities(known, manager_tools=self._hub.settings.manager_tools)
        return self._hub.gate.tasks.advertise(merged, client) if "tools" in merged else merged

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
        uri = params.get("uri")
        server = client.followed.pop(uri, None) if type(uri) is str else None
        if server is not None and type(uri) is str:
            self._hub.unfollow(client, server, uri, self._trace(client, message, params))
        return {}

    def _trace(self, client: Client, message: Message, params: Params) -> str:
        """Return the trace of a request that no gate judges and so no span stands for: the caller's."""
        carried = ""
        if self._hub.gate.governor.trace is not None and message.id is not None:
            carried = client.traces.get(message.id, "")
        return carried or traceparent(params)

    # Lists.

    async def _list(
        self, client: Client, ident: RequestId, method: str, params: Params, *, modern: bool
    ) -> None:
        hub = self._hub
        cursor = params.get("cursor")
        supervisors = hub.supervisors
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
        hub = self._hub
        if named.kind == "resource":
            target = hub.routes.owned(named.name, params, hub.supervisors)
            if not target.server and any(one.settings.enabled for one in hub.supervisors):
                self._work(client, ident, self._find_owner(client, message, named, modern=modern))
                return
        else:
            target = hub.routes.named(
                message.method, named, params, hub.server_ids, hub.settings.separator
            )
        supervisor = hub.servers.get(target.server)
        if supervisor is not None and hub.routes.needs_list(target, supervisor):
            self._work(client, ident, self._learn_first(client, message, target, named, modern))
            return
        if supervisor is not None:
            hub.routes.teach(supervisor)
        self._carry(client, message, target, named.name, modern=modern)

    async def _learn_first(
        self, client: Client, message: Message, target: Target, named: Named, modern: bool
    ) -> None:
        hub = self._hub
        await hub.routes.learn(target, hub.servers[target.server])
        self._carry(client, message, target, named.name, modern=modern)

    async def _find_owner(
        self, client: Client, message: Message, named: Named, *, modern: bool
    ) -> None:
        hub = self._hub
        await hub.routes.collect_resources(hub.supervisors)
        params = message.body.get("params") or {}
        target = hub.routes.owned(named.name, params, hub.supervisors)
        self._carry(client, message, target, named.name, modern=modern)

    def _carry(
        self, client: Client, message: Message, target: Target, exposed: str, *, modern: bool
    ) -> None:
        if message.id is not None and not client.is_gone:
            hub = self._hub
            client.work.pop(message.id, None)
            params = message.body.get("params") or {}
            target = hub.routes.unless_unknown(target, exposed, params, hub.offer_of(target))
            carrier = hub.gate.tasks.carrier_of(client, message, modern=modern)
            channel = hub.channel(carrier, target.server)
            channel.ask(message, message.id, target.params, exposed, modern=modern)

    async def _about_task(
        self, client: Client, ident: RequestId, method: str, params: Params, modern: bool
    ) -> None:
        gate = self._hub.gate
        gate.keep_time()
        body = await gate.tasks.about(client, ident, method, params, modern=modern)
        gate.flush()
        client.reply(render({"jsonrpc": "2.0", "id": ident, **body}), ident)

    # Notifications and responses.

    def _notified(self, client: Client, message: Message) -> None:
        method = message.method
        if named_by(method, message.body.get("params") or {}) or method in LISTINGS:
            fault = Fault("invalid_request", "this method needs an id", "missing_id")
            self.refuse(client, fault, len(message.raw), modern=False, method=method)
            return
        if method != CANCELLED:
            self._see(client, message)
        if method == CANCELLED:
            self._cancelled(client, message)
        elif method == "notifications/roots/list_changed":
            for supervisor in self._hub.supervisors:
                upstream = supervisor.upstream
                if upstream is not None and upstream.is_open and not upstream.modern:
                    upstream.notify(method)

    def _cancelled(self, client: Client, message: Message) -> None:
        params = message.body.get("params") or {}
        ident = params.get("requestId")
        if not isinstance(ident, str | int):
            self._see(client, message)
            return
        channel = client.routes.get(ident)
        if channel is not None:
            channel.cancel(message, ident)
            return
        self._see(client, message)
        if ident in client.listens:
            self._listens.close(client, ident)
        elif ident in client.work:
            client.work[ident].cancel()

    def _answered(self, client: Client, message: Message) -> None:
        channel = client.questions.get(message.id) if message.id is not None else None
        if channel is not None and message.id is not None:
            channel.answered(message, message.id)
            return
        fault = Fault("invalid_request", "", "unknown_response", None, answerable=False)
        self.refuse(client, fault, len(message.raw), modern=False)

    # Words.

    def _see(self, client: Client, message: Message) -> None:
        """Put a message that no gate judges on the record."""
        hub = self._hub
        hub.gate.note(
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
        hub.gate.flush()

    def refuse(
        self, client: Client, fault: Fault, size: int, *, modern: bool, method: str = ""
    ) -> None:
        """Refuse a frame: on the record, and to the one who asked with it."""
        self._refusals += 1
        correlation_id = f"{client.id}-h{self._refusals}"
        gate = self._hub.gate
        gate.note(
            frame_refused(
                now(),
                "",
                client.id,
                direction=AGENT_TO_SERVER,
                check=fault.check,
                kind=fault.kind,
                size=size,
                method=method,
                correlation_id=correlation_id,
            )
        )
        gate.flush()
        if fault.answerable:
            client.reply(
                render_error(
                    fault.id,
                    fault.kind,
                    modern=modern,
                    message=fault.reason,
                    correlation_id=correlation_id,
                    details={"check": fault.check},
                ),
                fault.id,
            )

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
        client.reply(reply, ident)


def _rendered_list(
    ident: RequestId, member: str, entries: list[bytes], rest: dict[str, Any]
) -> bytes:
    """Put a list's reply together from entries that are rendered already."""
    head = render({"jsonrpc": "2.0", "id": ident})[:-1]
    tail = b"," + render(rest)[1:-1] if rest else b""
    return b'%b,"result":{"%b":[%b]%b}}' % (head, member.encode(), b",".join(entries), tail)
