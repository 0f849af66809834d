"""The HTTP listener: authentication, the mapping of paths to endpoints, the gate's own pages.

A request that is refused because of its head is refused before its body is read. A listener
knows neither sessions nor servers; endpoints do.
"""

from collections.abc import Callable, Mapping
from typing import Final

from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, UNREAD_HTTP, Record
from thoughtgate.front.authentication import (
    IP_ALLOWLIST,
    Authenticator,
    Identity,
    KeySet,
    Rejection,
    misdirected,
)
from thoughtgate.front.endpoint import Endpoint
from thoughtgate.front.pages import Page
from thoughtgate.front.request_head import (
    JSON,
    RETRY_AFTER,
    SERVERS,
    Expected,
    HeadFacts,
    admit_page,
    is_ambiguous,
    read_head,
    refusal_kind,
    refuse,
)
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import now
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.replies import render_error

METADATA: Final = b"/.well-known/oauth-protected-resource"
"""The path of the metadata for OAuth clients (RFC 9728), before that of the endpoint."""


class Listener:
    """Answers every request that arrives at an address."""

    def __init__(
        self,
        authority: LocalAuthority,
        outbox: Outbox,
        authenticator: Authenticator,
        *,
        server: str = "",
        keys: KeySet | None = None,
        metadata: Callable[[], bytes | None] = lambda: None,
        pages: Mapping[bytes, Callable[[], Page]] | None = None,
        max_concurrent: int = 10_000,
    ) -> None:
        self._endpoints: dict[bytes, Endpoint] = {}
        self._served: list[Endpoint] = []
        self.expected = Expected(frozenset(), 0, frozenset())
        self.is_draining = False
        self.find_endpoint: Callable[[bytes], Endpoint | None] = lambda _path: None
        """Returns the endpoint of a path that is not in the table; may create it."""
        self._authority = authority
        self._outbox = outbox
        self._authenticator = authenticator
        self._server = server
        self._keys = keys
        self._metadata = metadata
        self._pages = dict(pages or {})
        self._max_concurrent = max_concurrent

    def _has_all_streams(self) -> bool:
        """Whether no more GET streams may be opened; they do not count as calls in progress."""
        return sum(endpoint.stream_count for endpoint in self._served) >= self._max_concurrent

    def add(self, path: bytes, endpoint: Endpoint) -> None:
        """Serve an endpoint at a path; an endpoint may have several paths."""
        self._endpoints[path] = endpoint
        self.include(endpoint)

    def include(self, endpoint: Endpoint) -> None:
        """Count an endpoint's calls and close it with the listener, however its path is found."""
        if endpoint not in self._served:
            self._served.append(endpoint)

    def remove(self, endpoint: Endpoint, reason: str) -> None:
        """Close an endpoint that is no longer served; requests still open there are answered."""
        if endpoint in self._served:
            self._served.remove(endpoint)
        endpoint.drain()
        endpoint.close(reason)
        self._outbox.schedule()

    # Callbacks of the HTTP server.

    def opened(self, exchange: Exchange) -> None:
        """Check the head, and refuse a bad request before its body is read."""
        facts = exchange.head.memo
        if type(facts) is not HeadFacts:
            facts = read_head(exchange, self.expected)
        if facts.place:
            ident = self._note_rejection(exchange, misdirected(facts.place))
            refuse(exchange, facts.place, correlation_id=ident)
        if facts.place or facts.is_page or (facts.has_origin and admit_page(exchange)):
            return
        who = self._authenticator.check(
            exchange.peer, exchange.headers, exchange.repeated, exchange.certificate
        )
        if isinstance(who, Rejection):
            self._reject(exchange, who)
            return
        exchange.facts = who
        if exchange.method == b"POST":
            if facts.post:
                self._refuse(exchange, facts.post, UNREAD_HTTP)
            elif self.is_draining or self._is_full():
                self._refuse(exchange, 503, UNREAD_HTTP, RETRY_AFTER)
        elif is_ambiguous(exchange):
            self._refuse(exchange, 400, UNREAD_HTTP)
        elif exchange.method == b"GET" and (self.is_draining or self._has_all_streams()):
            self._refuse(exchange, 503, UNREAD_HTTP, RETRY_AFTER)

    def _is_full(self) -> bool:
        active = 0
        for endpoint in self._served:
            active += endpoint.active
        return active >= self._max_concurrent

    def completed(self, exchange: Exchange) -> None:
        """Handle a request that has arrived completely."""
        facts: HeadFacts = exchange.head.memo
        if facts.is_page:
            self._page(exchange, facts.path)
        elif exchange.facts is None:
            spawn(self._identify_late(exchange, facts.path))
        elif type(exchange.facts) is Identity and facts.path in self._endpoints:
            self._endpoints[facts.path].receive(exchange, exchange.facts)
        else:
            self._identified(exchange, facts.path)

    def refused(self, exchange: Exchange, status: int) -> None:
        """Record and refuse a request that cannot be parsed."""
        self._refuse(exchange, status, UNREAD_HTTP)

    async def _identify_late(self, exchange: Exchange, path: bytes) -> None:
        """Fetch the issuer's keys and check again: the token's key is unknown and may be new."""
        if self._keys is not None:
            await self._keys.fetch()
        who = self._authenticator.check(exchange.peer, exchange.headers, exchange.repeated)
        if isinstance(who, Identity):
            exchange.facts = who
            self._identified(exchange, path)
        else:
            self._reject(exchange, who or Rejection(401, "jwt", "token signed by an unknown key"))

    def _identified(self, exchange: Exchange, path: bytes) -> None:
        who, endpoint = exchange.facts, self._endpoints.get(path) or self.find_endpoint(path)
        if not isinstance(who, Identity):
            refuse(exchange, 403)
        elif endpoint is not None:
            endpoint.receive(exchange, who)
        else:
            ident = self._note_refusal(exchange, 404, "unknown_path")
            self._outbox.later(refuse, exchange, 404, b"", ident)

    # Responses of the gate itself.

    def _refuse(self, exchange: Exchange, status: int, check: str, headers: bytes = b"") -> None:
        """Refuse a request at once, before the rest of it is read."""
        refuse(exchange, status, headers, self._note_refusal(exchange, status, check))

    def _note_refusal(self, exchange: Exchange, status: int, check: str) -> str:
        # No endpoint is responsible for the request, so the first one records its refusal.
        kind = refusal_kind(status)
        return self._served[0].refusals.note_request(exchange, check, kind)

    def _page(self, exchange: Exchange, path: bytes) -> None:
        page = self._pages.get(path)
        if page is not None and exchange.method == b"GET":
            exchange.respond(*page())
        elif page is not None:
            refuse(exchange, 405, b"allow: GET\r\n")
        elif path.startswith(METADATA) and (metadata := self._metadata()) is not None:
            exchange.respond(200, JSON, metadata)
        elif path.startswith(SERVERS) or exchange.method == b"POST":
            # Others are not recorded: browsers and clients look for pages that do not exist.
            self._refuse(exchange, 404, UNREAD_HTTP)
        else:
            refuse(exchange, 404)

    def _note_rejection(self, exchange: Exchange, rejection: Rejection) -> str:
        ident = self._authority.errors.next()
        facts = {
            "method": rejection.method,
            "reason": rejection.reason,
            "address": exchange.peer,
            "correlation_id": ident,
        }
        record = Record(AGENT_AUTH_REJECTED, now(), self._server, "0", {"agent": facts})
        self._authority.note(record)
        self._outbox.schedule()
        return ident

    def _reject(self, exchange: Exchange, rejection: Rejection) -> None:
        ident = self._note_rejection(exchange, rejection)
        if rejection.method == IP_ALLOWLIST:
            text = "this address may not connect"
            body = render_error(None, "invalid_request", message=text, correlation_id=ident)
            exchange.respond(rejection.status, JSON + rejection.headers, body)
        else:
            refuse(exchange, rejection.status, rejection.headers, ident)

    # Shutdown.

    def drain(self) -> None:
        """Accept no more calls, withdraw calls that wait for approval, and end the streams."""
        self.is_draining = True
        self._authority.held.withdraw_all("the gate is stopping")
        for endpoint in self._served:
            endpoint.drain()

    def close(self) -> None:
        """Stop, and answer every request that is still open."""
        for endpoint in self._served:
            endpoint.close("the gate is stopping")
        self._outbox.flush()
