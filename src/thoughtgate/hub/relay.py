"""Carries an allowed call to its server and the response back, across protocol revisions.

A modern server that needs input says so in its result; a legacy server sends a request in
the middle of the call. The relay asks the client in the form of the client's revision and
answers the server in the form of the server's.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.negotiation import (
    LOG_LEVEL_KEY,
    NEEDS,
    carried_capabilities,
    completed,
    input_requests,
    plain,
)
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.hub.client import HIDDEN, Carried, ServerSession
from thoughtgate.hub.parked_calls import Inflight, Parking, binding
from thoughtgate.upstream.client import Carrier, ServerConnection
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.supervisor import Owner, Supervisor
from thoughtgate.wire.message import RESPONSE, Message, RequestId
from thoughtgate.wire.message_ids import with_id, with_result
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import CAPABILITIES_KEY, META, traceparent

MAX_ROUNDS: Final = 10
"""How often one call may ask its client for input before the hub gives up."""

_NOT_FOUND: Final = -32002
"""The error code for a resource that is not found, before 2026-07-28."""
_INVALID_PARAMS: Final = -32602

_LISTED: Final = {"tools/call": "tools/list", "prompts/get": "prompts/list"}


class ServerRelay(Supervisor):
    """One server of the hub, to which calls are carried."""

    def __init__(
        self,
        settings: ServerSettings,
        carry: Callable[[ServerLog], Carrier],
        owner: Owner,
        parking: Parking,
    ) -> None:
        super().__init__(settings, carry, owner)
        self.private_to: tuple[bool, str] | None = None
        """The owner of a private process, see ``Client.owner``; None for a shared one."""
        self.principal = ""
        """Whose login it carries, if it is not shared."""
        self.inflight: list[Inflight] = []
        self._parking = parking

    async def relay(self, session: ServerSession, call: Carried) -> Message:
        """Carry one call.

        Raises:
            PeerError: there is no response; the error says why.
            PeerGone: the server disconnected.
        """
        self.used_by(session.client.principal)
        if call.method == "resources/subscribe":
            return await self._follow(session, call)
        self._check_offered(call)
        # Checked before the start, so that an unknown name starts nothing, and again after it,
        # because only then may the list be known.
        upstream = await self.ready()
        await self._learn_offer(call)
        self._check_offered(call)
        self.calls += 1
        if call.modern and not upstream.modern:
            return await self._with_parking(session, call, upstream)
        reply = await self._plainly(session, call, upstream)
        return _for_client(call, reply, upstream)

    def _check_offered(self, call: Carried) -> None:
        """Refuse a name that the server does not list, in the same way as a hidden one."""
        listed = _LISTED.get(call.method)
        offer = self.known(listed) if listed is not None else None
        if offer is not None and call.params.get("name") not in offer.names:
            raise PeerError(HIDDEN, "")

    async def _learn_offer(self, call: Carried) -> None:
        """Fetch the list that must contain the call's name; refuse the call if that fails."""
        listed = _LISTED.get(call.method)
        if listed is None or self.known(listed) is not None:
            return
        if not self.has_just_failed(listed):
            with contextlib.suppress(PeerError, PeerGone):
                await self.offer(listed)
        if self.known(listed) is None:
            raise self.list_error(listed)

    async def _follow(self, session: ServerSession, call: Carried) -> Message:
        uri = call.params["uri"]
        if uri not in session.client.followed:
            refusal = await self.follow(uri, traceparent(call.params))
            if refusal is not None:
                return with_id(refusal, call.key)
            session.client.followed[uri] = self.id
        return _response(call.key, {})

    async def _plainly(
        self, session: ServerSession, call: Carried, upstream: ServerConnection
    ) -> Message:
        inflight = _inflight(session, call)
        self.inflight.append(inflight)
        params = call.params
        try:
            for _ in range(MAX_ROUNDS):
                reply = await _ask(inflight, call, upstream, params)
                wanted = input_requests(reply.body.get("result"))
                # A modern client handles input_required itself, so its result is passed on.
                if wanted is None or call.modern:
                    return reply
                params = {**call.params, "inputResponses": await _collect(session, call, wanted)}
                state = reply.body["result"].get("requestState")
                if state is not None:
                    params["requestState"] = state
        finally:
            self.inflight.remove(inflight)
        raise PeerError("upstream_timeout", "the server asked too often")

    async def _with_parking(
        self, session: ServerSession, call: Carried, upstream: ServerConnection
    ) -> Message:
        """Carry a modern client's call to a legacy server; park it when the server asks."""
        params = call.params
        bound = binding(session.client.principal, self.id, call.method, params)
        inflight = self._parking.take(params.get("requestState"), bound)
        if inflight is None:
            inflight = _inflight(session, call)
            inflight.inbox, inflight.bound = asyncio.Queue(), bound
            inflight.reply = asyncio.ensure_future(_ask(inflight, call, upstream, params))
            inflight.reply.add_done_callback(lambda _: self._forget(inflight))
            self.inflight.append(inflight)
        else:
            _deliver(inflight, params.get("inputResponses"))
        try:
            return await self._until_asked(inflight, call, upstream)
        except asyncio.CancelledError:
            if inflight.reply is not None:
                inflight.reply.cancel()
            raise

    async def _until_asked(
        self, inflight: Inflight, call: Carried, upstream: ServerConnection
    ) -> Message:
        reply, inbox = inflight.reply, inflight.inbox
        if reply is None or inbox is None:
            raise PeerError("internal_error", "the parked call is incomplete")
        if not inflight.asked:
            question = asyncio.ensure_future(inbox.get())
            try:
                both: set[asyncio.Future[Any]] = {reply, question}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if reply.done():
                    return _for_client(call, reply.result(), upstream)
                _note(inflight, *question.result())
            finally:
                question.cancel()
        while not inbox.empty():
            _note(inflight, *inbox.get_nowait())
        wanted = {
            key: {"method": message.method, "params": message.body.get("params") or {}}
            for key, (_, message) in inflight.asked.items()
        }
        state = self._parking.park(inflight)
        # The call stays open at the server while the client obtains the input.
        result = {"resultType": "input_required", "inputRequests": wanted, "requestState": state}
        return _response(call.key, result)

    def _forget(self, inflight: Inflight) -> None:
        if inflight in self.inflight:
            self.inflight.remove(inflight)
        if inflight.reply is not None and not inflight.reply.cancelled():
            # Retrieved so that asyncio does not log it as never retrieved.
            inflight.reply.exception()


async def _ask(
    inflight: Inflight, call: Carried, upstream: ServerConnection, params: dict[str, Any]
) -> Message:
    session = inflight.session
    wants_progress = call.token is not None
    return await upstream.ask(
        call.method,
        params,
        capabilities=inflight.declared,
        log_level=inflight.log_level if call.modern else session.client.log_level,
        on_progress=(lambda told: session.progress(call, told)) if wants_progress else None,
    )


def _inflight(session: ServerSession, call: Carried) -> Inflight:
    """Return the facts about the client for which a call is made."""
    inflight = Inflight(session.client, session, call.key)
    meta = call.params.get(META)
    # A modern request carries its own capabilities and log level; a legacy client declared its
    # capabilities once.
    if not call.modern:
        inflight.declared = carried_capabilities(session.client.capabilities)
    elif type(meta) is dict:
        inflight.declared = carried_capabilities(meta.get(CAPABILITIES_KEY))
        level = meta.get(LOG_LEVEL_KEY)
        inflight.log_level = level if type(level) is str else ""
    return inflight


def _note(inflight: Inflight, upstream: ServerConnection, message: Message) -> None:
    inflight.count += 1
    inflight.asked[f"question-{inflight.count}"] = (upstream, message)


def _deliver(inflight: Inflight, answers: Any) -> None:
    """Pass the client's answers to the server; ignore keys that were not asked for."""
    if type(answers) is not dict:
        return
    for key in list(inflight.asked):
        if key in answers and type(answers[key]) is dict:
            upstream, message = inflight.asked.pop(key)
            upstream.answer(message.id, answers[key])


async def _collect(
    session: ServerSession, call: Carried, wanted: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Ask a legacy client for every input that a modern server requests."""
    answers: dict[str, Any] = {}
    for key, request in wanted.items():
        method, params = request.get("method"), request.get("params")
        if type(method) is not str or NEEDS.get(method) not in session.client.capabilities:
            raise PeerError("invalid_request", "the server asks for what the client does not offer")
        said = await session.question(method, params if type(params) is dict else {}, call.key)
        if type(said.get("result")) is not dict:
            raise PeerError("invalid_request", "the client refused what the server asked for")
        answers[key] = said["result"]
    return answers


def _for_client(call: Carried, reply: Message, upstream: ServerConnection) -> Message:
    """Return a server's response with the client's request id, in the client's revision."""
    result, error = reply.body.get("result"), reply.body.get("error")
    if call.modern == upstream.modern:
        return with_id(reply, call.key)
    if type(result) is dict:
        shown = completed(call.method, result) if call.modern else plain(result)
        return with_result(reply, call.key, shown)
    if type(error) is dict and call.modern and error.get("code") == _NOT_FOUND:
        # 2026-07-28 reports an unknown resource as invalid params.
        body = {**reply.body, "id": call.key, "error": {**error, "code": _INVALID_PARAMS}}
        return reply._replace(id=call.key, body=body, raw=render(body))
    return with_id(reply, call.key)


def _response(ident: RequestId, result: dict[str, Any]) -> Message:
    body = {"jsonrpc": "2.0", "id": ident, "result": result}
    return Message(RESPONSE, ident, "", body, render(body))
