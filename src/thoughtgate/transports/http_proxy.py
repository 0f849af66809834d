"""Connections through an HTTP proxy: a tunnel for https, a plain connection for http.

Through a tunnel (CONNECT), TLS is spoken with the server itself, so the proxy sees only its name.
For http, the client writes the whole URL into the request and the proxy forwards it.
"""

import asyncio
import base64
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast
from urllib.parse import unquote, urlsplit

from thoughtgate.errors import PeerError, upstream_error

MAX_HEAD: Final = 16_384
"""Maximum bytes of a proxy's answer to CONNECT."""

_USUAL_PORT: Final = 80
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r]")
_CONNECTED: Final = range(200, 300)
_AUTHENTICATE: Final = 407

ProtocolT = TypeVar("ProtocolT", bound=asyncio.Protocol)


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """Where a proxy is, and the credentials for it."""

    host: str
    port: int
    authorization: bytes = field(default=b"", repr=False)
    """The value of Proxy-Authorization; empty if the proxy needs none."""

    @property
    def header(self) -> bytes:
        """The rendered header with the credentials, if there are any."""
        value = self.authorization
        return b"proxy-authorization: %b\r\n" % value if value else b""


def parse_proxy(url: str) -> ProxyAddress:
    """Read the URL of a proxy, which may contain a user name and a password.

    Raises:
        ValueError: it is not an http URL with a host; the message does not quote it.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("it is not the URL of an HTTP proxy")
    authorization = b""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = b"Basic " + base64.b64encode(pair.encode())
    return ProxyAddress(parts.hostname, parts.port or _USUAL_PORT, authorization)


async def connect_through(
    proxy: ProxyAddress,
    make_protocol: Callable[[], ProtocolT],
    host: str,
    port: int,
    tls: ssl.SSLContext | None,
    *,
    address: str = "",
) -> ProtocolT:
    """Connect to a server through a proxy; with ``tls``, through a tunnel to that server.

    The tunnel leads to ``address``, if one is given; otherwise the proxy resolves the host's name.

    Raises:
        PeerError: the proxy cannot be reached, or makes no tunnel.
        OSError: TLS with the server failed.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()
    tunnel = None if tls is None else _Tunnel(answer)
    protocol = make_protocol()
    try:
        transport, _ = await loop.create_connection(
            lambda: tunnel or protocol, proxy.host, proxy.port
        )
    except OSError:
        raise upstream_error("proxy_failed", "the HTTP proxy cannot be reached") from None
    if tunnel is None or tls is None:
        return protocol
    try:
        place = address or host
        target = f"[{place}]:{port}" if ":" in place else f"{place}:{port}"
        name = target.encode("idna")
        head = b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (name, name, proxy.header)
        transport.write(head)
        await answer
        secured = await loop.start_tls(transport, protocol, tls, server_hostname=host)
    except BaseException:
        transport.abort()
        raise
    # start_tls does not call this itself.
    protocol.connection_made(cast("asyncio.BaseTransport", secured))
    return protocol


class _Tunnel(asyncio.Protocol):
    """Reads a proxy's answer to CONNECT."""

    def __init__(self, answer: asyncio.Future[None]) -> None:
        self._answer = answer
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0 and len(self._head) <= MAX_HEAD:
            return
        found = _STATUS.match(self._head)
        status = int(found[1]) if found else 0
        # In TLS, the client speaks first. Bytes after the head therefore come from the proxy.
        is_open = status in _CONNECTED and end + 4 == len(self._head)
        self._settle(None if is_open else _refusal(status))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._settle(_refusal(0))

    def _settle(self, error: PeerError | None) -> None:
        if self._answer.done():
            return
        if error is None:
            self._answer.set_result(None)
        else:
            self._answer.set_exception(error)


def _refusal(status: int) -> PeerError:
    if status == _AUTHENTICATE:
        return upstream_error("status_407", status=status)
    return upstream_error("proxy_failed", status=status)
