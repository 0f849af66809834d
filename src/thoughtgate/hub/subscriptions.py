"""The ``subscriptions/listen`` requests of modern clients, judged like subscriptions."""

from typing import Any, Final

from thoughtgate.core.commands import JudgeCall
from thoughtgate.core.record_events import ERROR, OK, call_ended
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.gate.clock import now
from thoughtgate.hub.client import MAX_LISTENS, Client, Listen
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.notifications import acknowledge
from thoughtgate.policy.call import FORWARD
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.methods import LISTEN, Named, named_by
from thoughtgate.wire.replies import render_error

CHANGES: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


class HubListens:
    """Opens and closes the listens of clients."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def open(self, client: Client, ident: RequestId, params: dict[str, Any]) -> None:
        """Open a listen for what the client may receive, and acknowledge what was accepted."""
        named = named_by(LISTEN, params)
        problem = named if isinstance(named, str) else ""
        if len(client.listens) >= MAX_LISTENS:
            problem = "too many listens are open"
        if problem or isinstance(named, str):
            kind = "invalid_params"
            found = client.note_error(LISTEN, kind)
            reply = render_error(ident, kind, modern=True, message=problem, correlation_id=found)
            client.reply(reply, ident, kind)
            return
        asked = params.get("notifications") or {}
        wanted: dict[str, Any] = {key: True for key in CHANGES if asked.get(key) is True}
        uris: dict[str, str] = {}
        if named:
            uris = await self._follow(client, named)
            wanted["resourceSubscriptions"] = list(uris)
        client.work.pop(ident, None)
        client.listens[ident] = Listen(wanted, uris)
        acknowledge(client, ident, wanted)

    def close(self, client: Client, ident: RequestId) -> None:
        """Close a listen and end its subscriptions."""
        listen = client.listens.pop(ident, None)
        for uri, server in listen.uris.items() if listen is not None else ():
            self._hub.unfollow(client, server, uri)

    async def _follow(self, client: Client, named: list[Named]) -> dict[str, str]:
        """Follow the resources that the policy lets this client follow."""
        hub = self._hub
        supervisors = hub.supervisors_for(client)
        await hub.routes.collect_resources(supervisors)
        followed: dict[str, str] = {}
        for one in named:
            server = hub.routes.owned(one.name, {}, supervisors).server
            if server and one.name not in followed and await self._may(client, server, one):
                followed[one.name] = server
        return followed

    async def _may(self, client: Client, server: str, named: Named) -> bool:
        """Judge and record one subscription; one that would need approval is not accepted."""
        gate, session, at = self._hub.gate, self._hub.session(client, server), now()
        # The session may carry a call, whose trace context does not belong to this subscription.
        session.trace, session.claims = "", client.claims
        session.address = client.address
        command = JudgeCall(named.name, LISTEN, (named,), {}, 0, modern=True, at=at)
        ruling = gate.governor.rule(gate.authority.call_request(session, command))
        status, error = OK, None
        if ruling.verdict.action != FORWARD:
            status = ERROR
            error = {"class": "policy_block", "kind": ruling.verdict.kind or "approval_withdrawn"}
        # The verdict must be on the record before the server is asked.
        elif not gate.authority.flush():
            return False
        else:
            relay = self._hub.relay(client, server) or self._hub.servers[server]
            try:
                refusal = await relay.follow(named.name, ruling.verdict.trace)
            except (PeerError, PeerGone):
                status, error = ERROR, {"class": "transport", "kind": "upstream_connection_failed"}
            else:
                if refusal is not None:
                    status, error = ERROR, {"class": "upstream_error"}
        gate.note(
            call_ended(
                now(),
                server,
                client.id,
                call_id=ruling.call_id,
                tool=named.name,
                status=status,
                latency_ms=max(0, round((now() - at) * 1000)),
                size=0,
                error=error,
            )
        )
        return status == OK
