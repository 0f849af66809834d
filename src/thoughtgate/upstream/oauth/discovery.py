"""Finding the authorization server of an MCP server, and checking the metadata of both.

The MCP server's metadata (RFC 9728) names the authorization server, whose own metadata (RFC 8414 or
OpenID Connect) names its endpoints. A server of revision 2025-03-26 has no such metadata; its own
origin is the authorization server.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from thoughtgate.errors import LoginError, visible
from thoughtgate.transports.origin import parse_origin
from thoughtgate.upstream.oauth.challenge import Challenge
from thoughtgate.upstream.oauth.fetch import Fetcher, JsonAnswer, check_url, shown

MAX_SCOPES: Final = 256
MAX_SCOPE: Final = 256
"""Longest scope, in characters."""

_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_SERVER: Final = "/.well-known/oauth-authorization-server"
_OPENID: Final = "/.well-known/openid-configuration"

OFFLINE: Final = "offline_access"
"""The scope that asks for a refresh token at authorization servers with OpenID Connect."""


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """The metadata of an authorization server; every URL was checked."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    device_endpoint: str = ""
    auth_methods: tuple[str, ...] = ("client_secret_basic",)
    """How clients may authenticate at the token endpoint; this is the default of RFC 8414."""
    scopes: tuple[str, ...] = ()
    has_s256: bool = False
    """Whether it supports PKCE with SHA-256."""
    sends_issuer: bool = False
    """Whether every redirect carries ``iss`` (RFC 9207)."""
    takes_metadata_documents: bool = False
    """Whether a client id may be the URL of a metadata document."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """Where to sign in, and for what."""

    server: AuthorizationServer
    resource: str
    """The resource to request tokens for; empty for a server of 2025-03-26."""
    scopes: tuple[str, ...]
    """The scopes to request."""


async def discover(
    fetch: Fetcher, challenge: Challenge | None, *, issuer: str = "", scopes: tuple[str, ...] = ()
) -> Discovery:
    """Find out where to sign in; ``issuer`` and ``scopes`` come from the config, if it has any.

    Raises:
        LoginError: the metadata is missing, invalid or contradictory.
    """
    challenge = challenge or Challenge()
    metadata = await _resource_metadata(fetch, challenge)
    if metadata is None:
        # 2025-03-26: the MCP server's origin is the authorization server.
        origin = shown(parse_origin(fetch.server_url))
        server = await _find_server(fetch, issuer or origin, is_guessed=not issuer)
        return Discovery(server, "", bounded_scopes(scopes or challenge.scopes))
    resource = _checked_resource(metadata.get("resource"), fetch.server_url)
    named = [one for one in _list(metadata, "authorization_servers") if one]
    if issuer and named and not any(is_same_issuer(issuer, one) for one in named):
        raise LoginError("the server does not accept tokens of the issuer in auth.issuer")
    chosen = issuer or next(iter(named), "") or shown(parse_origin(fetch.server_url))
    server = await _find_server(fetch, chosen)
    wanted = scopes or challenge.scopes or _list(metadata, "scopes_supported")
    return Discovery(server, resource, bounded_scopes(with_offline(server, wanted)))


def with_offline(server: AuthorizationServer, scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Add the scope for refresh tokens, if the authorization server has it."""
    return (*scopes, OFFLINE) if OFFLINE in server.scopes and OFFLINE not in scopes else scopes


def canonical(url: str) -> str:
    """Return the URL that identifies a server: without query, fragment and a final slash."""
    parts = urlsplit(url)
    path = parts.path.removesuffix("/")
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, "", ""))


async def _resource_metadata(fetch: Fetcher, challenge: Challenge) -> Mapping[str, Any] | None:
    if challenge.resource_metadata:
        answer = await fetch.get(challenge.resource_metadata)
        if not answer.is_ok or not answer.body:
            raise LoginError("the server's metadata (resource_metadata) cannot be read")
        return answer.body
    parts = urlsplit(fetch.server_url)
    base = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    for place in dict.fromkeys((f"{_RESOURCE}{path}", _RESOURCE)):
        answer = await fetch.get(base + place)
        if answer.is_ok and answer.body:
            return answer.body
    return None


def _checked_resource(value: Any, server_url: str) -> str:
    """Return the resource of the metadata, which must be the server or a path above it.

    Otherwise a server could make the gate request tokens for another server, get them, and use them
    there.
    """
    wrong = "the server's metadata is for a different resource, so no token is requested for it"
    if not isinstance(value, str) or not value:
        raise LoginError(wrong)
    try:
        found, ours = parse_origin(value), parse_origin(server_url)
    except ValueError:
        raise LoginError(wrong) from None
    above = found.target.partition("?")[0].rstrip("/") + "/"
    path = ours.target.partition("?")[0].rstrip("/") + "/"
    if shown(found) != shown(ours) or not path.startswith(above):
        raise LoginError(wrong)
    return value


async def _find_server(
    fetch: Fetcher, issuer: str, *, is_guessed: bool = False
) -> AuthorizationServer:
    origin = check_url(issuer)
    if "?" in origin.target:
        raise LoginError("the issuer of the authorization server has a query")
    for url in _places(issuer):
        answer = await fetch.get(url)
        if answer.is_ok and answer.body:
            return _read_server(answer, issuer)
    if is_guessed:
        # The default endpoints of 2025-03-26, for authorization servers without metadata.
        base = shown(origin)
        return AuthorizationServer(
            base, f"{base}/authorize", f"{base}/token", f"{base}/register", has_s256=True
        )
    raise LoginError(f"the authorization server {shown(origin)} has no metadata")


def _places(issuer: str) -> Iterator[str]:
    """Yield the URLs at which an authorization server may have its metadata."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield f"{base}{_SERVER}{path}"
    yield f"{base}{_OPENID}{path}"
    if path:
        yield f"{base}{path}{_OPENID}"


def _read_server(answer: JsonAnswer, issuer: str) -> AuthorizationServer:
    body = answer.body
    stated = body.get("issuer")
    if not isinstance(stated, str) or not is_same_issuer(stated, issuer):
        raise LoginError("the authorization server's metadata is for a different issuer")
    methods = _list(body, "token_endpoint_auth_methods_supported")
    return AuthorizationServer(
        stated,
        _endpoint(body, "authorization_endpoint"),
        _endpoint(body, "token_endpoint"),
        _endpoint(body, "registration_endpoint"),
        _endpoint(body, "revocation_endpoint"),
        _endpoint(body, "device_authorization_endpoint"),
        methods or ("client_secret_basic",),
        _list(body, "scopes_supported"),
        has_s256="S256" in _list(body, "code_challenge_methods_supported"),
        sends_issuer=body.get("authorization_response_iss_parameter_supported") is True,
        takes_metadata_documents=body.get("client_id_metadata_document_supported") is True,
    )


def _endpoint(body: Mapping[str, Any], name: str) -> str:
    url = body.get(name)
    if url is None or url == "":
        return ""
    if not isinstance(url, str):
        raise LoginError(f"{name} of the authorization server's metadata is not a URL")
    check_url(url)
    return url


def _list(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = body.get(name)
    members = value[:MAX_SCOPES] if isinstance(value, list) else []
    return tuple(one for one in members if isinstance(one, str))


def bounded_scopes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Return scopes that can be sent and shown; a server chooses them."""
    kept = (one for one in scopes if one and len(one) <= MAX_SCOPE and visible(one) == one)
    return tuple(dict.fromkeys(one for one in kept if one.isascii() and " " not in one))[
        :MAX_SCOPES
    ]


def is_same_issuer(one: str, other: str) -> bool:
    """Compare issuers. Only a final slash may differ: many libraries add one to a bare origin."""
    return one.removesuffix("/") == other.removesuffix("/")
