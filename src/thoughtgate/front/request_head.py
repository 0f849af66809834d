"""Checks of a request's head, and the choice of headers to forward.

This module decides whether the head is unambiguous, whether the request is meant for this
gate (Host, Origin), what the client accepts (Accept), and whether the headers match the
body. The body itself is judged elsewhere.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from thoughtgate.config.checks import is_loopback
from thoughtgate.transports.content_coding import OFFERED
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.transports.http_heads import Headers
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.replies import render, render_error
from thoughtgate.wire.revisions import LEGACY, is_traceparent, version_in

PATHS: Final = (b"/mcp", b"/mcp/v1")
SERVERS: Final = b"/servers/"
SERVER_PATH: Final = re.compile(SERVERS + rb"([^/]+)/mcp")
"""The paths at which ``serve`` offers a single server."""

JSON: Final = b"content-type: application/json\r\n"
RETRY_AFTER: Final = b"retry-after: 1\r\n"

HEADER_MISMATCH: Final = -32020
"""The error code for headers that contradict the body (2026-07-28, transports)."""

SINGLE: Final = frozenset(
    {
        b"content-type",
        b"accept",
        b"origin",
        mirror.SESSION,
        mirror.VERSION,
        mirror.METHOD,
        mirror.NAME,
        mirror.LAST_EVENT,
    }
)
"""Headers that must not be repeated: one reader may use the first copy, another the last."""

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

_TO_PAGES: Final = (
    b"vary: origin\r\n"
    b"access-control-expose-headers: mcp-session-id, mcp-protocol-version, www-authenticate\r\n"
)
_MAY_CALL: Final = (
    b"access-control-allow-methods: POST, GET, DELETE\r\naccess-control-max-age: 600\r\n"
)

_LEGACY: Final = frozenset(version.encode() for version in LEGACY)

_NOT_UPSTREAM: Final = mirror.HOP_BY_HOP | {
    b"host",
    b"content-length",
    b"content-type",
    b"authorization",
    b"cookie",
    b"origin",
    b"referer",
    b"expect",
    b"accept-encoding",
    b"forwarded",
    b"x-real-ip",
    b"x-http-method",
    b"x-http-method-override",
    b"x-method-override",
    b"x-original-url",
    b"x-rewrite-url",
    mirror.SESSION,
}
"""Headers that are not forwarded; the agent's credentials and addresses stay at the gate. Some
servers take another method or path from a header than the one that was judged."""

_OF_PROXIES: Final = b"x-forwarded-"
"""The prefix of headers with which a trusted proxy tells a server who calls; agents could forge
them."""

_TEXTS: Final = {
    400: "the request cannot be read",
    401: "authenticate with a token in the header Authorization: Bearer",
    404: "there is nothing at this path; MCP messages go to /mcp",
    405: "this method is not allowed here; send MCP messages to /mcp with POST: the transport is "
    "Streamable HTTP, and the older HTTP+SSE is not offered to clients",
    406: "accept application/json or text/event-stream",
    408: "the request took too long",
    413: "the request is too large",
    415: "send JSON, with the header Content-Type: application/json",
    421: "this gate does not answer to that Host; add it to listen.hosts in the gate's config",
    403: "this gate does not accept the client's Origin, address or certificate; see listen.origins"
    " and listen.auth in the gate's config",
    431: "the request has too many headers",
    503: "the gate cannot take this call now",
}


class Expected(NamedTuple):
    """The values of Host and Origin that this gate accepts."""

    hosts: frozenset[str]
    """Accepted host names; empty for any."""
    port: int
    origins: frozenset[str]
    """Origins of web pages that may call the gate."""


def expected_names(host: str, port: int, hosts: Iterable[str], origins: Iterable[str]) -> Expected:
    """Return the values of Host and Origin that a listener accepts."""
    named = {name.lower() for name in hosts}
    if is_loopback(host):
        # For all of 127.0.0.0/8, because of DNS rebinding: a web page whose name was changed
        # to a loopback address must not get in.
        named |= {*LOOPBACK, host.lower()}
    elif named:
        # Without names in the config, any Host is accepted here: the gate cannot know its names.
        named.add(host.lower())
    return Expected(frozenset(named), port, frozenset(origin.lower() for origin in origins))


def wrong_place(exchange: Exchange, expected: Expected) -> int:
    """Return 421 or 403 for a request with a wrong Host or Origin header; 0 if both are right."""
    headers = exchange.headers
    if b"origin" in exchange.repeated:
        return 403
    return _wrong_names(headers.get(b"host", b""), headers.get(b"origin"), expected)


def admit_page(exchange: Exchange) -> bool:
    """Add the CORS headers for a web page; return True if this was a preflight, now answered.

    Whether the origin may call was decided before, by ``wrong_place``.
    """
    origin = exchange.headers.get(b"origin")
    if origin is None:
        return False
    # A preflight carries no credentials, so it is answered before authentication.
    exchange.also = b"access-control-allow-origin: %b\r\n" % origin + _TO_PAGES
    if exchange.method != b"OPTIONS" or b"access-control-request-method" not in exchange.headers:
        return False
    wanted = exchange.headers.get(b"access-control-request-headers", b"")
    exchange.respond(204, _MAY_CALL + b"access-control-allow-headers: %b\r\n" % wanted)
    return True


class HeadFacts:
    """Facts derived from the head of a request; valid for every request with an equal head."""

    __slots__ = (
        "_prepared",
        "_session",
        "accepts_stream",
        "has_origin",
        "is_mirrored",
        "is_modern",
        "is_page",
        "path",
        "place",
        "post",
        "session",
        "trace",
    )

    def __init__(self, exchange: Exchange, expected: "Expected") -> None:
        headers = exchange.headers
        self.path = exchange.target.partition(b"?")[0]
        self.is_page = self.path not in PATHS and SERVER_PATH.fullmatch(self.path) is None
        self.place = (wrong_page if self.is_page else wrong_place)(exchange, expected)
        """The status for a wrong Host or Origin header; 0 if both are right."""
        self.has_origin = b"origin" in headers
        self.post = wrong_post(exchange)
        """The status for a POST that cannot carry MCP; 0 if it can."""
        self.accepts_stream = accepts_stream(headers)
        version = headers.get(mirror.VERSION)
        self.is_modern = version is not None and version.strip() not in _LEGACY
        """Whether the header, whatever the body says, names a revision without sessions."""
        self.is_mirrored = any(one != mirror.VERSION and mirror.is_mirrored(one) for one in headers)
        self.session = headers.get(mirror.SESSION)
        trace = headers.get(b"traceparent", b"").decode("latin-1")
        self.trace = trace if is_traceparent(trace) else ""
        """The W3C trace context of the caller."""
        self._prepared = b""
        self._session = ""

    def prepared(self, pool: HttpPool, exchange: Exchange, session: str) -> bytes:
        """Return the rendered head of the request to the server."""
        if not self._prepared or self._session != session:
            headers = [*upstream_headers(exchange, session), CONTENT]
            self._prepared = pool.prepare(b"POST", headers)
            self._session = session
        return self._prepared


def read_head(exchange: Exchange, expected: "Expected") -> HeadFacts:
    """Return the facts of a request's head and keep them as its memo: most clients repeat it."""
    facts = exchange.head.memo = HeadFacts(exchange, expected)
    return facts


def wrong_page(exchange: Exchange, expected: Expected) -> int:
    """Return 421 or 403 for a page request that DNS rebinding may have sent to the loopback.

    On other addresses, probes and scrapers connect by IP address, and no page holds a secret.
    """
    return 0 if LOOPBACK.isdisjoint(expected.hosts) else wrong_place(exchange, expected)


@lru_cache(maxsize=1024)
def _wrong_names(host: bytes, origin: bytes | None, expected: Expected) -> int:
    """Compare Host and Origin with the accepted values; cached, as few values recur."""
    name, port = _split_host(host.decode("latin-1").lower())
    if expected.hosts and name not in expected.hosts:
        return 421
    # Another port names another service on this machine, so the request is not for this gate.
    if name in expected.hosts and is_loopback(name) and port not in {None, expected.port}:
        return 421
    if origin is None:
        return 0
    text = origin.decode("latin-1").lower()
    if text in expected.origins:
        return 0
    # A page that this listener itself could serve is not a foreign one.
    page, page_port = _split_host(text.partition("://")[2])
    is_own = page in expected.hosts and is_loopback(page) and page_port == expected.port
    return 0 if is_own else 403


def wrong_post(exchange: Exchange) -> int:
    """Return the status for a POST that cannot carry MCP; 0 if it can."""
    headers = exchange.headers
    if is_ambiguous(exchange):
        return 400
    # A browser sends "simple" content types without a preflight; requiring JSON prevents that.
    if b"content-encoding" in headers or not _is_json(headers.get(b"content-type", b"")):
        return 415
    return 0 if accepts_stream(headers) or accepts_json(headers) else 406


def is_ambiguous(exchange: Exchange) -> bool:
    """Whether two copies of a header could let the gate and the server read different values."""
    repeated = exchange.repeated
    return bool(repeated) and (
        not repeated.isdisjoint(SINGLE) or any(map(mirror.is_mirrored, repeated))
    )


def accepts_stream(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the agent accepts server-sent events."""
    return _accepts(headers.get(b"accept"), b"text/event-stream", b"text/*")


def accepts_json(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the agent accepts JSON."""
    return _accepts(headers.get(b"accept"), b"application/json", b"application/*")


@lru_cache(maxsize=256)
def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def is_modern_request(exchange: Exchange, params: Any) -> bool:
    """Whether the body or the header of a request names a revision without sessions."""
    if version_in(params) is not None:
        return True
    version = exchange.headers.get(mirror.VERSION)
    return version is not None and version.strip() not in _LEGACY


def header_mismatch(exchange: Exchange, message: Message) -> mirror.Mismatch | None:
    """Compare the headers that repeat parts of the body with the body.

    From 2026-07-28 on they are required. In older revisions they are optional, but they must
    not contradict the body, because a server or proxy might route by them.
    """
    headers = exchange.headers
    params = message.body.get("params") or {}
    version = version_in(params)
    if version is None and mirror.METHOD not in headers and mirror.NAME not in headers:
        return None
    if version is not None:
        stated = headers.get(mirror.VERSION)
        if stated is None:
            return mirror.Mismatch("MCP-Protocol-Version", "is missing")
        if stated.strip() != version.encode():
            return mirror.Mismatch("MCP-Protocol-Version", "differs from the body")
    required = version is not None and message.id is not None
    return mirror.check_method(
        headers.get(mirror.METHOD), message.method, required=required
    ) or mirror.check_name(headers.get(mirror.NAME), message.method, params, required=required)


def render_mismatch(
    ident: RequestId | None, mismatch: mirror.Mismatch, correlation_id: str
) -> bytes:
    """Render the error that 2026-07-28 prescribes for headers that contradict the body."""
    text = f"the header {mismatch.header} {mismatch.reason}"
    error = {
        "code": HEADER_MISMATCH,
        "message": text,
        "data": {
            "kind": "header_mismatch",
            "header": mismatch.header,
            "correlation_id": correlation_id,
        },
    }
    return render({"jsonrpc": "2.0", "id": ident, "error": error})


def refuse(exchange: Exchange, status: int, headers: bytes = b"", correlation_id: str = "") -> None:
    """Respond with a status of the gate itself; the id is that of the refusal on the record."""
    exchange.respond(status, JSON + headers, render_refusal(status, correlation_id))


def render_refusal(status: int, correlation_id: str = "") -> bytes:
    """Render the body for a status of the gate itself."""
    return render_error(
        None, refusal_kind(status), message=_TEXTS[status], correlation_id=correlation_id
    )


def refusal_kind(status: int) -> str:
    """Return the kind of error for a status of the gate itself."""
    unavailable = status == HTTPStatus.SERVICE_UNAVAILABLE
    return "service_unavailable" if unavailable else "invalid_request"


def upstream_headers(exchange: Exchange, session: str = "") -> Headers:
    """Return the headers that are forwarded to the server."""
    dropped = _NOT_UPSTREAM
    connection = exchange.headers.get(b"connection")
    if connection is not None and connection.lower() not in {b"keep-alive", b"close"}:
        # RFC 9110, 7.6.1: headers named in Connection are for this hop only.
        dropped |= {name.strip().lower() for name in connection.split(b",")}
    kept = [
        header
        for header in exchange.wire_headers
        if header[0] not in dropped
        and not header[0].startswith(_OF_PROXIES)
        and (b"_" not in header[0] or not _is_disguised(header[0]))
    ]
    kept.append(OFFERED)
    if session:
        kept.append((mirror.SESSION, session.encode("latin-1")))
    return kept


def _is_disguised(name: bytes) -> bool:
    """Tell whether a server that treats ``_`` as ``-`` reads a header that the gate controls."""
    read = name.replace(b"_", b"-")
    is_own = read in _NOT_UPSTREAM or read in SINGLE or mirror.is_mirrored(read)
    return is_own or read.startswith(_OF_PROXIES)


def unmirrored(headers: Headers) -> Headers:
    """Leave out the headers that repeat a body, for requests sent with a different body."""
    return [
        header
        for header in headers
        if header[0] == mirror.VERSION or not mirror.is_mirrored(header[0])
    ]


CONTENT: Final = (b"content-type", b"application/json")


@lru_cache(maxsize=256)
def _accepts(accept: bytes | None, exact: bytes, family: bytes) -> bool:
    if accept is None:
        return True
    accept = accept.lower()
    if exact in accept:
        return True
    kinds = {part.partition(b";")[0].strip() for part in accept.split(b",")}
    return not kinds.isdisjoint({family, b"*/*"})


def _split_host(text: str) -> tuple[str, int | None]:
    """Split ``host:port``, and remove the brackets of an IPv6 address."""
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError:
        return "", None
    return parts.hostname or "", port
