"""What the gateway reads in a request's head, and which headers go on.

Decided here: whether the head has one reading, whether the caller came for this gate
(Host, Origin), what it can read (Accept), and whether the headers repeat the body. The
body is judged elsewhere.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from thoughtgate.config.checks import is_loopback
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.transports.http_heads import Headers
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.replies import render, render_error
from thoughtgate.wire.revisions import LEGACY, is_traceparent, version_in

PATHS: Final = (b"/mcp", b"/mcp/v1")
SERVER_PATH: Final = re.compile(rb"/servers/([^/]+)/mcp")
"""Where ``serve`` offers one of its servers by itself."""

JSON: Final = b"content-type: application/json\r\n"

HEADER_MISMATCH: Final = -32020
"""2026-07-28, transports: the headers and the body disagree."""

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
"""Headers on whose first and last copy two readers could disagree."""

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

_TO_PAGES: Final = (
    b"vary: origin\r\n"
    b"access-control-expose-headers: mcp-session-id, mcp-protocol-version, www-authenticate\r\n"
)
_MAY_CALL: Final = (
    b"access-control-allow-methods: POST, GET, DELETE\r\naccess-control-max-age: 600\r\n"
)

REMOVED: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""Methods that 2026-07-28 no longer has."""

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
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-real-ip",
    mirror.SESSION,
}
"""The agent's credentials and addresses are not the server's business."""

_TEXTS: Final = {
    400: "the request cannot be read",
    404: "there is nothing at this path",
    405: "this method is not allowed here",
    406: "accept application/json or text/event-stream",
    408: "the request took too long",
    413: "the request is too large",
    415: "send application/json",
    421: "this gate does not answer to that Host",
    403: "this gate does not answer to that Origin",
    431: "the request has too many headers",
    503: "the gate cannot take this call now",
}


class Expected(NamedTuple):
    """Who this gate is, to those that come for it."""

    hosts: frozenset[str]
    """Host names it answers to; empty for any."""
    port: int
    origins: frozenset[str]
    """Origins of web pages that may call."""


def expected_names(host: str, port: int, hosts: Iterable[str], origins: Iterable[str]) -> Expected:
    """Return what Host and Origin may say for a listener."""
    named = {name.lower() for name in hosts}
    if is_loopback(host):
        # Also for the rest of 127.0.0.0/8: a page whose name was rebound must not get in.
        named |= {*LOOPBACK, host.lower()}
    elif named:
        named.add(host.lower())
    return Expected(frozenset(named), port, frozenset(origin.lower() for origin in origins))


def wrong_place(exchange: Exchange, expected: Expected) -> int:
    """Return 421 or 403 for a request that was meant for somebody else; 0 when it was not."""
    headers = exchange.headers
    if b"origin" in exchange.repeated:
        return 403
    return _wrong_names(headers.get(b"host", b""), headers.get(b"origin"), expected)


def admit_page(exchange: Exchange) -> bool:
    """Let a web page whose origin may call read the answers; True if it only asked whether it may.

    Whether its origin may call was decided before; pages of this listener itself may.
    """
    origin = exchange.headers.get(b"origin")
    if origin is None:
        return False
    exchange.also = b"access-control-allow-origin: %b\r\n" % origin + _TO_PAGES
    if exchange.method != b"OPTIONS" or b"access-control-request-method" not in exchange.headers:
        return False
    wanted = exchange.headers.get(b"access-control-request-headers", b"")
    exchange.respond(204, _MAY_CALL + b"access-control-allow-headers: %b\r\n" % wanted)
    return True


class HeadFacts:
    """What follows from the head of a request to the gateway, whenever it comes."""

    __slots__ = (
        "_prepared",
        "_session",
        "accepts_stream",
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
        """The status for whoever came for somebody else; 0 for others."""
        self.post = wrong_post(exchange)
        """The status for a POST that cannot be MCP; 0 for one that can."""
        self.accepts_stream = accepts_stream(headers)
        version = headers.get(mirror.VERSION)
        self.is_modern = version is not None and version.strip() not in _LEGACY
        """Whether the header, whatever the body says, names the era without sessions."""
        self.is_mirrored = mirror.METHOD in headers or mirror.NAME in headers
        self.session = headers.get(mirror.SESSION)
        trace = headers.get(b"traceparent", b"").decode("latin-1")
        self.trace = trace if is_traceparent(trace) else ""
        """The W3C trace context of the caller."""
        self._prepared = b""
        self._session = ""

    def prepared(self, pool: HttpPool, exchange: Exchange, session: str) -> bytes:
        """Return the head of the request to the server that this one becomes."""
        if not self._prepared or self._session != session:
            headers = [*upstream_headers(exchange, session), CONTENT]
            self._prepared = pool.prepare(b"POST", headers)
            self._session = session
        return self._prepared


def read_head(exchange: Exchange, expected: "Expected") -> HeadFacts:
    """Find out what follows from a request's head; an equal head that came before has told already."""
    facts = exchange.head.memo
    if type(facts) is not HeadFacts:
        facts = exchange.head.memo = HeadFacts(exchange, expected)
    return facts


def facts_of(exchange: Exchange) -> HeadFacts:
    """Return what followed from a head that was read."""
    facts: HeadFacts = exchange.head.memo
    return facts


def wrong_page(exchange: Exchange, expected: Expected) -> int:
    """Return 421 or 403 for a page that a name rebound to the loopback would read.

    Elsewhere probes and scrapers come by address, and no page tells a secret.
    """
    return 0 if LOOPBACK.isdisjoint(expected.hosts) else wrong_place(exchange, expected)


@lru_cache(maxsize=1024)
def _wrong_names(host: bytes, origin: bytes | None, expected: Expected) -> int:
    """Compare Host and Origin with what they may say; the same few come again and again."""
    name, port = _split_host(host.decode("latin-1").lower())
    if expected.hosts and name not in expected.hosts:
        return 421
    if name in expected.hosts and is_loopback(name) and port not in {None, expected.port}:
        return 421
    if origin is None:
        return 0
    text = origin.decode("latin-1").lower()
    if text in expected.origins:
        return 0
    page, page_port = _split_host(text.partition("://")[2])
    is_own = page in expected.hosts and is_loopback(page) and page_port == expected.port
    return 0 if is_own else 403


def wrong_post(exchange: Exchange) -> int:
    """Return the status for a POST that cannot be MCP; 0 when it can."""
    headers = exchange.headers
    if exchange.repeated and (
        not exchange.repeated.isdisjoint(SINGLE) or any(map(mirror.is_mirrored, exchange.repeated))
    ):
        return 400
    if b"content-encoding" in headers or not _is_json(headers.get(b"content-type", b"")):
        return 415
    return 0 if accepts_stream(headers) or accepts_json(headers) else 406


def accepts_stream(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the agent can read server-sent events."""
    return _accepts(headers.get(b"accept"), b"text/event-stream", b"text/*")


def accepts_json(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the agent can read JSON."""
    return _accepts(headers.get(b"accept"), b"application/json", b"application/*")


@lru_cache(maxsize=256)
def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def is_modern_request(exchange: Exchange, params: Any) -> bool:
    """Whether a request belongs to the era without sessions: by its body, or by its header."""
    if version_in(params) is not None:
        return True
    version = exchange.headers.get(mirror.VERSION)
    return version is not None and version.strip() not in _LEGACY


def header_mismatch(exchange: Exchange, message: Message) -> mirror.Mismatch | None:
    """Compare the headers that repeat the body with the body.

    From 2026-07-28 on they must be there; before, whoever sends them must not contradict
    himself, since a server on the way might go by them.
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


def render_mismatch(ident: RequestId | None, mismatch: mirror.Mismatch) -> bytes:
    """Write the refusal that 2026-07-28 prescribes for headers that contradict the body."""
    text = f"the header {mismatch.header} {mismatch.reason}"
    error = {
        "code": HEADER_MISMATCH,
        "message": text,
        "data": {"kind": "header_mismatch", "header": mismatch.header},
    }
    return render({"jsonrpc": "2.0", "id": ident, "error": error})


def refuse(exchange: Exchange, status: int, headers: bytes = b"") -> None:
    """Answer with a status of the gate's own."""
    exchange.respond(status, JSON + headers, render_refusal(status))


def render_refusal(status: int) -> bytes:
    """Write what goes with a status of the gate's own."""
    unavailable = status == HTTPStatus.SERVICE_UNAVAILABLE
    kind = "service_unavailable" if unavailable else "invalid_request"
    return render_error(None, kind, message=_TEXTS[status])


def upstream_headers(exchange: Exchange, session: str = "") -> Headers:
    """Return the headers that go on to the server."""
    dropped = _NOT_UPSTREAM
    connection = exchange.headers.get(b"connection")
    if connection is not None and connection.lower() not in {b"keep-alive", b"close"}:
        dropped |= {name.strip().lower() for name in connection.split(b",")}
    kept = [
        header
        for header in exchange.wire_headers
        if header[0] not in dropped and (b"_" not in header[0] or not _is_disguised(header[0]))
    ]
    kept.append(_IDENTITY)
    if session:
        kept.append((mirror.SESSION, session.encode("latin-1")))
    return kept


def _is_disguised(name: bytes) -> bool:
    """Whether servers that take ``_`` and ``-`` for the same read a header that is not this one."""
    read = name.replace(b"_", b"-")
    return read in _NOT_UPSTREAM or read in SINGLE or mirror.is_mirrored(read)


def unmirrored(headers: Headers) -> Headers:
    """Leave out the headers that repeat a body, where they stand for no body in particular."""
    return [
        header
        for header in headers
        if header[0] == mirror.VERSION or not mirror.is_mirrored(header[0])
    ]


CONTENT: Final = (b"content-type", b"application/json")
_IDENTITY: Final = (b"accept-encoding", b"identity")
"""The gate reads every answer; a compressed one would only cost both sides time."""


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
    """Split ``host:port``; brackets of IPv6 addresses are taken off."""
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError:
        return "", None
    return parts.hostname or "", port
