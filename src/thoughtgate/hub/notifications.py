"""Delivery of unsolicited server messages to the clients they concern.

These are changes of lists and resources, log messages, and server requests that belong to a
call. A legacy client receives every change; a modern one only the changes it listens for.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from thoughtgate.core.negotiation import NEEDS, SUBSCRIPTION_KEY, is_at_least
from thoughtgate.errors import PeerError
from thoughtgate.gate.background import spawn
from thoughtgate.hub.client import Client, ServerSession
from thoughtgate.hub.parked_calls import Inflight
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.wire.message import REQUEST, Message, RequestId
from thoughtgate.wire.methods import CANCELLED
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import META

UPDATED: Final = "notifications/resources/updated"
LOGGED: Final = "notifications/message"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

MAX_QUESTIONS: Final = 100
"""Maximum number of server requests that wait for clients; a person answers only a few."""

FindSession = Callable[[Client, str], ServerSession]


class HubNotices:
    """Delivers server messages to clients."""

    def __init__(
        self, clients: Mapping[str, Client], session: FindSession, separator: Callable[[], str]
    ) -> None:
        self._clients = clients
        self._session = session
        self._separator = separator
        self._asking: dict[tuple[ServerRelay, RequestId], asyncio.Task[None]] = {}
        """Keyed by relay, not by server id: with one process per session, several share an id."""

    # Notifications.

    def lists_changed(self, capability: str, owner: tuple[bool, str] | None = None) -> None:
        """Notify all clients, or those of a private server process, that a list has changed."""
        method = f"notifications/{capability}/list_changed"
        for client in self._audience(owner):
            if not client.is_modern and client.introduced.is_set():
                client.tell(render({"jsonrpc": "2.0", "method": method}), None)
            for ident, listen in list(client.listens.items()):
                if listen.wanted.get(f"{capability}ListChanged"):
                    client.tell(_tagged(method, {}, ident), ident)

    def _audience(self, owner: tuple[bool, str] | None) -> list[Client]:
        """Return the clients of a server process: all, or only its owner's if it is private."""
        clients = self._clients.values()
        return [one for one in clients if owner is None or owner in (one.owner, one.login_owner)]

    def resource_changed(self, relay: ServerRelay, message: Message) -> None:
        """Notify the clients that follow a resource that it has changed."""
        server = relay.id
        params = message.body.get("params") or {}
        uri = params.get("uri")
        if type(uri) is not str:
            return
        plain = {key: value for key, value in params.items() if key != META}
        for client in self._audience(relay.private_to):
            if client.followed.get(uri) == server:
                session = self._session(client, server)
                session.notify_client(UPDATED, plain, None)
            for ident, listen in list(client.listens.items()):
                if listen.uris.get(uri) == server:
                    client.tell(_tagged(UPDATED, plain, ident), ident)

    def logged(self, relay: ServerRelay, message: Message) -> None:
        """Pass a log message on to the clients it concerns, with the server's id in ``logger``."""
        params = message.body.get("params")
        if type(params) is not dict:
            return
        server, level = relay.id, str(params.get("level"))
        logger = params.get("logger")
        named = f"{server}{self._separator()}{logger}" if type(logger) is str and logger else server
        told = {**params, "logger": named}
        # ``_meta`` is about the connection to the server, not about the client's.
        told.pop(META, None)
        audience = self._audience(relay.private_to)
        for client in (one for one in audience if relay.may_hear(one.principal)):
            if client.is_modern:
                self._log_to_modern(relay, client, level, told)
            elif is_at_least(level, client.log_level or "debug"):
                self._session(client, server).notify_client(LOGGED, told, None)

    def _log_to_modern(
        self, relay: ServerRelay, client: Client, level: str, told: dict[str, Any]
    ) -> None:
        """Send a log message to an open request that asked for logs, as 2026-07-28 requires."""
        for inflight in relay.inflight:
            if inflight.client is client and inflight.log_level:
                if is_at_least(level, inflight.log_level):
                    inflight.session.notify_client(LOGGED, told, inflight.key)
                return

    # Server requests.

    def asked(self, relay: ServerRelay, message: Message) -> None:
        """Pass a server's request on to the client whose call it is about, or refuse it."""
        upstream = relay.upstream
        if upstream is None:
            return
        if message.method == "ping":
            upstream.answer(message.id, {})
            return
        needed = NEEDS.get(message.method)
        inflight = self._concerned(relay)
        if needed is None:
            upstream.refuse(message.id, "method_not_found", "there is no such method")
        elif inflight is None:
            # Asking the wrong client could reveal one client's data to another.
            upstream.refuse(message.id, "invalid_request", "no client can be asked now")
        elif needed not in inflight.declared:
            upstream.refuse(message.id, "method_not_found", f"the client offers no {needed}")
        elif self._is_too_many(inflight):
            upstream.refuse(message.id, "service_unavailable", "too many questions are open")
        elif inflight.inbox is not None:
            inflight.inbox.put_nowait((upstream, message))
        elif message.id is not None:
            key = (relay, message.id)
            self._asking[key] = spawn(self._ask(relay, inflight, message))
            self._asking[key].add_done_callback(lambda _: self._asking.pop(key, None))

    def _is_too_many(self, inflight: Inflight) -> bool:
        waiting = inflight.inbox.qsize() if inflight.inbox is not None else len(self._asking)
        return waiting >= MAX_QUESTIONS

    def cancelled(self, relay: ServerRelay, message: Message) -> None:
        """Cancel a request that the server has cancelled."""
        ident = (message.body.get("params") or {}).get("requestId")
        task = self._asking.get((relay, ident)) if isinstance(ident, str | int) else None
        if task is not None:
            task.cancel()

    async def _ask(self, relay: ServerRelay, inflight: Inflight, message: Message) -> None:
        upstream = relay.upstream
        if upstream is None:
            return
        params = message.body.get("params")
        try:
            said = await inflight.session.question(message.method, params, inflight.key)
        except PeerError as error:
            upstream.refuse(message.id, error.kind, str(error))
        except asyncio.CancelledError:
            upstream.refuse(message.id, "invalid_request", "the client is gone")
            raise
        else:
            upstream.pass_on(message.id, said)

    def _concerned(self, relay: ServerRelay) -> Inflight | None:
        """Return the call that a server's request belongs to; None if that is ambiguous.

        A legacy server's requests do not name a call. If only one client has open calls, the
        request is for that client; if none has, it can only be for a client that is alone.
        """
        clients = {inflight.client.id for inflight in relay.inflight}
        if len(clients) == 1:
            return relay.inflight[-1]
        if clients:
            return None
        alone = [
            client
            for client in self._audience(relay.private_to)
            if (client.sole or relay.private_to is not None) and not client.is_modern
        ]
        if len(alone) != 1:
            return None
        session = self._session(alone[0], relay.id)
        return Inflight(alone[0], session, None, declared=alone[0].capabilities)

    def deliver(self, relay: ServerRelay, message: Message) -> None:
        """Deliver a message that is not about a list or the progress of a request."""
        if message.shape == REQUEST:
            self.asked(relay, message)
        elif message.method == UPDATED:
            self.resource_changed(relay, message)
        elif message.method == LOGGED:
            self.logged(relay, message)
        elif message.method == CANCELLED:
            self.cancelled(relay, message)
        elif message.method != ACKNOWLEDGED:
            inflight = self._concerned(relay)
            params = message.body.get("params")
            if inflight is not None and not inflight.client.is_modern and type(params) is dict:
                inflight.session.notify_client(message.method, params, inflight.key)


def acknowledge(client: Client, ident: RequestId, wanted: dict[str, Any]) -> None:
    """Send the first message of a listen, which states what was accepted (2026-07-28)."""
    client.tell(_tagged(ACKNOWLEDGED, {"notifications": wanted}, ident), ident)


def _tagged(method: str, params: dict[str, Any], ident: RequestId) -> bytes:
    meta = {META: {SUBSCRIPTION_KEY: ident}}
    return render({"jsonrpc": "2.0", "method": method, "params": {**params, **meta}})
