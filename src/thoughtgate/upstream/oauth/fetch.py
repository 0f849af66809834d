"""Requests to authorization servers, whose URLs the MCP server chooses.

A hostile server could name any URL to make the gate call a service inside its own network (SSRF).
Therefore every URL must be https, or http on the loopback interface if the server is there too; its
host must not be nearer to the gate than the server is; the connection goes to the address that was
checked; redirects are not followed; and answers are limited in size and time.

Authlib's own HTTP clients are not used: they need requests or httpx, which follow redirects,
resolve names again and do not limit answers.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from thoughtgate.errors import LoginError, PeerError
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.http_proxy import ProxyAddress
from thoughtgate.transports.origin import Origin, parse_origin
from thoughtgate.transports.tls import client_context
from thoughtgate.upstream.oauth.challenge import Challenge, read_challenge

TIMEOUT_S: Final = 10.0
RESOLVE_S: Final = 5.0
MAX_ANSWER: Final = 256 * 1024
MAX_URL: Final = 2048

PUBLIC, PRIVATE, LOCAL, NOWHERE = range(4)
"""How near an address is: on the internet, in a private network, on this machine, or unusable."""

_JSON: Final = (b"accept", b"application/json")
_FORM: Final = (b"content-type", b"application/x-www-form-urlencoded")
_HOST: Final = re.compile(r"[0-9a-z._-]+|[0-9a-f:.]+")
"""A host name, or an address."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
"""Translation to the IPv4 addresses of a private network (RFC 8215)."""
_COMPATIBLE: Final = IPv6Network("::/96")
"""The former notation of IPv4 addresses in IPv6; no host on the internet has one."""


class JsonAnswer(NamedTuple):
    """The answer of an authorization server."""

    status: int
    body: Mapping[str, Any]
    """Empty if the answer is not a JSON object."""

    @property
    def is_ok(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300  # noqa: PLR2004  the statuses of success

    @property
    def error(self) -> str:
        """The error code of the answer, as far as it is a plain word; otherwise the status."""
        # A server chooses this text, and people see it: no sentence of its own, no control characters.
        code = self.body.get("error")
        if isinstance(code, str) and len(code) <= 64 and code.replace("_", "a").isalnum():  # noqa: PLR2004
            return code if code.isascii() else f"HTTP {self.status}"
        return f"HTTP {self.status}"


@dataclass(slots=True)
class Fetcher:
    """Sends the requests that belong to one MCP server."""

    server_url: str = field(repr=False)
    trusted: Sequence[str] = ()
    """URLs from the config, whose origins may be anywhere."""
    tls: ssl.SSLContext | None = None
    """For https; by default, the system's certificates are trusted."""
    choose_proxy: Callable[[str], ProxyAddress | None] = lambda _url: None
    """Returns the proxy that leads to a URL; None to connect directly."""

    async def get(self, url: str) -> JsonAnswer:
        """GET a JSON document.

        Raises:
            LoginError: the URL is not allowed, or there is no answer.
        """
        return await self._send("GET", url, [_JSON], b"")

    async def post_form(
        self, url: str, fields: Mapping[str, str], headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> JsonAnswer:
        """POST a form; raises as ``get`` does."""
        return await self._send("POST", url, [_JSON, _FORM, *headers], urlencode(fields).encode())

    async def post_json(self, url: str, body: Mapping[str, Any]) -> JsonAnswer:
        """POST a JSON document; raises as ``get`` does."""
        headers = [_JSON, (b"content-type", b"application/json")]
        return await self._send("POST", url, headers, orjson.dumps(body))

    async def ask_for_challenge(
        self, body: bytes, more: Sequence[tuple[bytes, bytes]] = ()
    ) -> Challenge | None:
        """POST to the MCP server without credentials, and return its challenge, if it has one.

        Raises:
            LoginError: there is no answer.
        """
        headers = [
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
            *more,
        ]
        origin = parse_origin(self.server_url)
        status, found, _ = await self._exchange("POST", origin, "", headers, body)
        return read_challenge(found) if status in {401, 403} else None

    async def check_link(self, url: str) -> None:
        """Check a URL that the user is about to open, as if the gate opened it.

        The browser reaches the user's machine and network, so a server elsewhere must not choose a
        link that leads there.

        Raises:
            LoginError: it is not allowed.
        """
        await self._checked_address(check_url(url))

    async def _send(
        self, method: str, url: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> JsonAnswer:
        origin = check_url(url)
        address = await self._checked_address(origin)
        status, _, text = await self._exchange(method, origin, address, headers, body)
        try:
            value = orjson.loads(text)
        except ValueError:
            value = None
        return JsonAnswer(status, value if isinstance(value, dict) else {})

    async def _exchange(
        self,
        method: str,
        origin: Origin,
        address: str,
        headers: list[tuple[bytes, bytes]],
        body: bytes,
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        tls = None
        if origin.scheme == "https":
            tls = self.tls = self.tls or client_context()
        url = f"{origin.scheme}://{origin.authority}{origin.target}"
        # No proxy for a loopback URL: the proxy's loopback is another machine. For other URLs, the
        # tunnel leads to the address that was checked.
        proxy = None if _is_local_name(origin.host) else self.choose_proxy(url)
        options = PoolOptions(tls=tls, max_idle=0, address=address, proxy=proxy)
        pool = HttpPool(url, options)
        try:
            answer = await pool.request(
                method, headers, body, timeout_s=TIMEOUT_S, limit=MAX_ANSWER
            )
        except PeerError as error:
            raise LoginError(f"{shown(origin)} cannot be used for the login: {error}") from None
        finally:
            await pool.close()
        return answer.status, answer.headers, answer.body

    async def _checked_address(self, origin: Origin) -> str:
        """Return the address to connect to; empty to leave it to the connection."""
        # The operator has chosen these origins, so they may be anywhere.
        if any(_same_origin(origin, parse_origin(url)) for url in (self.server_url, *self.trusted)):
            return ""
        addresses = await _resolve(origin)
        ours = parse_origin(self.server_url)
        # The owner of a name chooses its addresses, and may return others each time. Therefore the
        # farthest address counts, and only a loopback URL is taken to be on this machine.
        nearest = LOCAL if _is_local_name(ours.host) else PRIVATE
        allowed = min(nearest, *map(nearness, await _resolve(ours)))
        if not addresses or any(nearness(one) > allowed for one in addresses):
            raise LoginError(
                f"the server names {shown(origin)} for the login, which is in a private network or"
                " on this machine; if that is right, set it as auth.issuer of the server"
            )
        return addresses[0]


def check_url(url: str) -> Origin:
    """Read a URL that a server names.

    Raises:
        LoginError: it is not https, nor http on loopback; or it cannot be read.
    """
    try:
        origin = parse_origin(url[: MAX_URL + 1])
    except UnicodeError:
        raise LoginError("the server names a URL for the login that is not ASCII") from None
    except ValueError as error:
        raise LoginError(f"the server names a URL for the login that is wrong: {error}") from None
    if len(url) > MAX_URL:
        raise LoginError("the server names a URL for the login that is too long")
    if not _HOST.fullmatch(origin.host):
        # The host is shown to people, who could mistake look-alike characters for others.
        raise LoginError("the server names a URL for the login whose host is not a plain name")
    if origin.scheme != "https" and not _is_local_name(origin.host):
        raise LoginError(f"the server names {shown(origin)} for the login, which is not https")
    return origin


def check_server(url: str) -> None:
    """Check that tokens for a server would not be sent over the network unencrypted.

    Raises:
        LoginError: they would.
    """
    origin = parse_origin(url)
    if origin.scheme != "https" and not _is_local_name(origin.host):
        raise LoginError(
            f"{shown(origin)} is not https, so others could read its tokens on their way"
        )


def shown(origin: Origin) -> str:
    """Return an origin for messages: paths and queries may hold secrets."""
    return f"{origin.scheme}://{origin.authority}"


def nearness(address: str) -> int:
    """Tell how near an address is to this machine."""
    one = ip_address(address.partition("%")[0])
    if isinstance(one, IPv6Address):
        if one in _LOCAL_NAT64:
            return PRIVATE
        if one in _COMPATIBLE and not one.is_loopback:
            return NOWHERE
        inside = IPv4Address(int(one) & 0xFFFF_FFFF) if one in _NAT64 else None
        inner = one.ipv4_mapped or one.sixtofour or inside
        if inner is not None:
            return nearness(str(inner))
    if one.is_loopback:
        return LOCAL
    if one.is_unspecified or one.is_link_local or one.is_multicast:
        return NOWHERE
    return PUBLIC if one.is_global else PRIVATE


def _same_origin(one: Origin, other: Origin) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _is_local_name(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


async def _resolve(origin: Origin) -> list[str]:
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await asyncio.get_running_loop().getaddrinfo(
                origin.host, origin.port, type=socket.SOCK_STREAM
            )
    except (OSError, TimeoutError, UnicodeError):
        raise LoginError(f"the host name of {shown(origin)} cannot be resolved") from None
    return [str(entry[4][0]) for entry in found]
