"""The gate's own client at an authorization server: chosen, or registered if necessary."""

from collections.abc import Mapping
from typing import Any, Final

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.errors import LoginError
from thoughtgate.upstream.oauth.discovery import AuthorizationServer
from thoughtgate.upstream.oauth.fetch import Fetcher, check_url
from thoughtgate.upstream.oauth.token_endpoint import (
    BASIC,
    NONE,
    POST,
    choose_auth_method,
)
from thoughtgate.upstream.oauth.tokens import OAuthClient, TokenSet

CLIENT_NAME: Final = "ThoughtGate"
DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
MAX_CLIENT: Final = 4096
"""Longest client id or secret."""


def configured_client(
    auth: ServerAuth | None, environ: Mapping[str, str], server: AuthorizationServer | None = None
) -> OAuthClient | None:
    """Return the client of the config; None if it has none."""
    if auth is None or not auth.client_id:
        return None
    secret = environ.get(auth.client_secret_env, "").strip() if auth.client_secret_env else ""
    offered = server.auth_methods if server is not None else ()
    return OAuthClient(auth.client_id, secret, choose_auth_method(secret, offered))


def has_given_client(auth: ServerAuth | None, server: AuthorizationServer) -> bool:
    """Tell whether the config names the client, so that the gate does not register itself."""
    if auth is None:
        return False
    has_document = bool(auth.client_metadata_url) and server.takes_metadata_documents
    return bool(auth.client_id) or has_document


async def choose_client(
    fetch: Fetcher,
    server: AuthorizationServer,
    auth: ServerAuth | None,
    environ: Mapping[str, str],
    *,
    redirect_uri: str,
    known: TokenSet | None,
    now: float,
) -> OAuthClient:
    """Return the client to sign in with: configured, known, described by a document, or registered.

    ``known`` are the tokens of an earlier login. Its client is used only at the same issuer.

    Raises:
        LoginError: there is no client, and the authorization server registers none.
    """
    configured = configured_client(auth, environ, server)
    if configured is not None:
        return configured
    if auth is not None and auth.client_metadata_url and server.takes_metadata_documents:
        check_url(auth.client_metadata_url)
        return OAuthClient(auth.client_metadata_url)
    if known is not None and _is_usable(known, server, redirect_uri, now):
        return known.client
    if not server.registration_endpoint:
        raise LoginError(
            "the authorization server registers no clients by itself; register ThoughtGate there,"
            " and set auth.client_id of the server in the config"
        )
    return await register(fetch, server, redirect_uri)


async def register(fetch: Fetcher, server: AuthorizationServer, redirect_uri: str) -> OAuthClient:
    """Register a new client (RFC 7591).

    Raises:
        LoginError: the authorization server refuses.
    """
    offered = server.auth_methods
    # A public client if possible: with PKCE it needs no secret, and none has to be kept.
    method = next((one for one in (NONE, BASIC, POST) if one in offered), NONE)
    grants = ["authorization_code", "refresh_token"]
    if server.device_endpoint:
        grants.append(DEVICE_GRANT)
    is_web = redirect_uri.startswith("https:")
    wanted: dict[str, Any] = {
        "client_name": CLIENT_NAME,
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "web" if is_web else "native",
    }
    if redirect_uri:
        wanted["redirect_uris"] = [redirect_uri]
    else:
        wanted |= {"grant_types": [DEVICE_GRANT, "refresh_token"], "response_types": []}
        wanted["redirect_uris"] = []
    answer = await fetch.post_json(server.registration_endpoint, wanted)
    if not answer.is_ok:
        raise LoginError(
            f"the authorization server does not register this gate ({answer.error}); register it"
            " there, and set auth.client_id of the server in the config"
        )
    return _read_client(answer.body, method, redirect_uri)


def _read_client(body: Mapping[str, Any], wanted: str, redirect_uri: str) -> OAuthClient:
    ident, secret = body.get("client_id"), body.get("client_secret") or ""
    method = body.get("token_endpoint_auth_method") or (wanted if secret or wanted == NONE else "")
    ends = body.get("client_secret_expires_at") or 0
    is_whole = all(isinstance(one, str) and len(one) <= MAX_CLIENT for one in (ident, secret))
    if not is_whole or not ident or method not in {NONE, BASIC, POST}:
        raise LoginError("the authorization server's registration of this gate cannot be used")
    if method != NONE and not secret:
        raise LoginError("the authorization server registered this gate without a secret")
    ends_at = float(ends) if isinstance(ends, int | float) else 0.0
    return OAuthClient(str(ident), str(secret), str(method), redirect_uri, ends_at)


def _is_usable(known: TokenSet, server: AuthorizationServer, redirect_uri: str, now: float) -> bool:
    client = known.client
    if known.issuer != server.issuer or not client.redirect_uri:
        return False
    return client.redirect_uri == redirect_uri and not 0 < client.secret_expires_at <= now
