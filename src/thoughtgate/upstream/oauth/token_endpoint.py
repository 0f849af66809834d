"""Requests to the token endpoint of an authorization server, with the client's authentication.

Authlib prepares the authentication of the client; ``fetch`` sends the requests.
"""

import re
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from thoughtgate.errors import LoginError
from thoughtgate.upstream.oauth.fetch import Fetcher, JsonAnswer
from thoughtgate.upstream.oauth.tokens import OAuthClient, TokenSet, expiry, scopes_in

MAX_TOKEN: Final = 16 * 1024
"""Longest token; it must fit into a request's head."""

BASIC: Final = "client_secret_basic"
POST: Final = "client_secret_post"
PRIVATE_KEY: Final = "private_key_jwt"
NONE: Final = "none"

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_PEM: Final = "-----BEGIN"
_ALGORITHMS: Final = {"RSA": "RS256", "EC": "ES256"}
"""The signature of a client assertion, by the type of the key."""


class RefusedGrant(LoginError):  # noqa: N818 - names what happened
    """The authorization server refused the grant: the user must sign in again."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the authorization server refused the request ({code})")
        self.code = code


def choose_auth_method(secret: str, offered: tuple[str, ...]) -> str:
    """Return how a client authenticates, given what the authorization server supports."""
    if not secret:
        return NONE
    if secret.lstrip().startswith(_PEM):
        return PRIVATE_KEY
    return POST if POST in offered and BASIC not in offered else BASIC


async def request_token(
    fetch: Fetcher, endpoint: str, client: OAuthClient, issuer: str, fields: Mapping[str, str]
) -> JsonAnswer:
    """POST to the token, device or revocation endpoint, authenticated as the client.

    Raises:
        LoginError: there is no answer.
    """
    form, headers = _authenticate(endpoint, client, issuer, dict(fields))
    return await fetch.post_form(endpoint, form, headers)


async def grant_tokens(
    fetch: Fetcher, endpoint: str, client: OAuthClient, issuer: str, fields: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return a valid token response.

    Raises:
        RefusedGrant: the authorization server refuses the grant for good.
        LoginError: there is no usable answer; it may work later.
    """
    answer = await request_token(fetch, endpoint, client, issuer, fields)
    if not answer.is_ok:
        if 400 <= answer.status < 500 and answer.status != 429:  # noqa: PLR2004  429 is temporary
            raise RefusedGrant(answer.error)
        raise LoginError(f"the authorization server did not issue a token ({answer.error})")
    token, kind = answer.body.get("access_token"), answer.body.get("token_type", "Bearer")
    if not isinstance(token, str) or len(token) > MAX_TOKEN or not _TOKEN.fullmatch(token):
        raise LoginError("the authorization server's answer holds no usable access token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise LoginError("the authorization server issued a token that is not a Bearer token")
    renewal = answer.body.get("refresh_token")
    if renewal is not None and (not isinstance(renewal, str) or len(renewal) > MAX_TOKEN):
        raise LoginError("the authorization server's answer holds no usable refresh token")
    return answer.body


async def refresh(fetch: Fetcher, tokens: TokenSet, client: OAuthClient, now: float) -> TokenSet:
    """Return renewed tokens; raises as ``grant_tokens`` does."""
    fields = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token}
    if tokens.resource:
        fields["resource"] = tokens.resource
    answer = await grant_tokens(fetch, tokens.token_endpoint, client, tokens.issuer, fields)
    return tokens.renewed(answer, now)


async def revoke(fetch: Fetcher, tokens: TokenSet, client: OAuthClient) -> bool:
    """Revoke the tokens (RFC 7009); False if the authorization server did not confirm it."""
    if not tokens.revocation_endpoint:
        return False
    is_done = True
    for kind in ("refresh_token", "access_token"):
        token = getattr(tokens, kind)
        if token:
            fields = {"token": token, "token_type_hint": kind}
            try:
                answer = await request_token(
                    fetch, tokens.revocation_endpoint, client, tokens.issuer, fields
                )
            except LoginError:
                return False
            is_done = is_done and answer.is_ok
    return is_done


def read_tokens(answer: Mapping[str, Any], now: float, scopes: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a token set that come from a token response."""
    return {
        "access_token": str(answer["access_token"]),
        "refresh_token": str(answer.get("refresh_token") or ""),
        "expires_at": expiry(answer, now),
        # RFC 6749, 5.1: without a scope, all requested ones were granted.
        "scopes": scopes_in(answer) or scopes,
    }


def _authenticate(
    endpoint: str, client: OAuthClient, issuer: str, fields: dict[str, str]
) -> tuple[dict[str, str], list[tuple[bytes, bytes]]]:
    from authlib.oauth2.auth import ClientAuth

    method = client.auth_method
    if method == PRIVATE_KEY:
        return {**fields, **_assertion(client, issuer)}, []
    ident, secret = client.client_id, client.client_secret
    if method == BASIC:
        # RFC 6749, 2.3.1: both are form-encoded first, which Authlib does not do itself.
        ident, secret = quote(ident, safe=""), quote(secret, safe="")
    auth = ClientAuth(ident, secret, method)
    _, headers, body = auth.prepare("POST", endpoint, {}, "")
    sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return {**fields, **dict(parse_qsl(body, keep_blank_values=True))}, sent


def _assertion(client: OAuthClient, issuer: str) -> dict[str, str]:
    """Return the fields with a signed assertion that authenticates the client (RFC 7523).

    Its audience is the issuer, as the security considerations of RFC 7523bis demand.
    """
    from authlib.oauth2.rfc7523 import private_key_jwt_sign
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    try:
        key = import_key(client.client_secret, _key_type(client.client_secret))
        signed = private_key_jwt_sign(
            key,
            client_id=client.client_id,
            token_endpoint=issuer,
            claims={"nbf": int(time.time()) - 5},
            alg=_ALGORITHMS[key.key_type],
        )
    except (JoseError, ValueError, KeyError, TypeError):
        raise LoginError("auth.client_secret_env does not hold a usable private key") from None
    return {
        "client_id": client.client_id,
        "client_assertion": signed,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    }


def _key_type(pem: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem.encode(), password=None)
    if isinstance(key, rsa.RSAPrivateKey):
        return "RSA"
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return "EC"
    raise TypeError("the key is neither RSA nor EC")
