"""Signing in to a server: the authorization code flow, the device flow and client credentials."""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from thoughtgate.config.server_auth import CLIENT_CREDENTIALS, ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.negotiation import initialize_params, params_for_modern
from thoughtgate.errors import LoginError
from thoughtgate.upstream.client import DISCOVER
from thoughtgate.upstream.oauth.challenge import Challenge
from thoughtgate.upstream.oauth.discovery import OFFLINE, Discovery, bounded_scopes, discover
from thoughtgate.upstream.oauth.fetch import Fetcher, check_server
from thoughtgate.upstream.oauth.registration import (
    DEVICE_GRANT,
    choose_client,
    configured_client,
    has_given_client,
)
from thoughtgate.upstream.oauth.token_endpoint import (
    RefusedGrant,
    grant_tokens,
    read_tokens,
    request_token,
)
from thoughtgate.upstream.oauth.tokens import DevicePrompt, OAuthClient, SignedIn, TokenSet
from thoughtgate.wire.headers import mirrored
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import LATEST

MAX_QUERY: Final = 32 * 1024
MAX_DEVICE_S: Final = 1800.0
"""The longest that a sign-in on another device may take."""
MIN_POLL_S: Final = 1.0
MAX_POLL_S: Final = 60.0
SLOWER_S: Final = 5.0
"""RFC 8628, 3.5: how much longer to wait after ``slow_down``."""

_MARK: Final = 16
"""Digits of an issuer's digest in a redirect URI."""
_OTHER_SERVER: Final = "the redirect comes from a different authorization server"

Save = Callable[[TokenSet], Awaitable[SignedIn]]


@dataclass(slots=True)
class LoginPlan:
    """The parameters of a sign-in."""

    server: ServerSettings
    principal: str
    environ: Mapping[str, str] = field(repr=False)
    save: Save
    """Stores the tokens."""
    load: Callable[[], Awaitable[tuple[TokenSet | None, tuple[str, ...]]]]
    """Returns the tokens of an earlier login, and the scopes that the server asked for since."""
    issuers: Callable[[], Awaitable[frozenset[str]]]
    """Returns the issuers of all logins."""
    fetch: Fetcher

    @property
    def auth(self) -> ServerAuth | None:
        """The ``auth`` of the server in the config."""
        return self.server.auth


class LoginFlow:
    """One sign-in of one principal at one server; ``OAuthAccess.login`` makes it.

    Call ``begin`` and ``finish``, or ``begin_device`` and ``finish_device``, or
    ``use_client_credentials``. Each raises ``LoginError`` with a text for the user. A finished flow
    has stored the tokens. No connection stays open between the calls.
    """

    def __init__(self, plan: LoginPlan, *, clock: Callable[[], float] = time.time) -> None:
        self.server = plan.server
        self.principal = plan.principal
        self.state = secrets.token_urlsafe(32)
        """The ``state`` of the link; the redirect must carry it."""
        self._plan = plan
        self._clock = clock
        self._verifier = secrets.token_urlsafe(64)
        self._redirect_uri = ""
        self._is_refused = False
        """Whether the server refused a request without a token."""
        self._needs_issuer = False
        """Whether only ``iss`` in the redirect tells which authorization server it comes from."""
        self._found: Discovery | None = None
        self._client: OAuthClient | None = None
        self._scopes: tuple[str, ...] = ()
        self._device: Mapping[str, Any] = {}

    async def __aenter__(self) -> Self:
        """Return the flow."""
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Do nothing: no connection stays open."""

    # The authorization code flow.

    async def begin(self, redirect_uri: str, challenge: Challenge | None = None) -> str:
        """Return the link that the user must open in a browser.

        Without a challenge, the server is asked for one. The redirect goes to ``redirect_uri``, or to
        a path below it that belongs to the authorization server alone.
        """
        found, client = await self._prepare(challenge, redirect_uri)
        server = found.server
        if not server.authorization_endpoint:
            raise LoginError("the authorization server has no authorization endpoint")
        if not server.has_s256:
            raise LoginError(
                "the authorization server does not support PKCE with S256, which MCP requires"
            )
        await self._plan.fetch.check_link(server.authorization_endpoint)
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        fields = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": self._redirect_uri,
            "state": self.state,
            "code_challenge": create_s256_code_challenge(self._verifier),
            "code_challenge_method": "S256",
            **self._about(found),
        }
        if OFFLINE in self._scopes:
            # OpenID Connect Core, 11: without it, no refresh token is issued.
            fields["prompt"] = "consent"
        join = "&" if "?" in server.authorization_endpoint else "?"
        return f"{server.authorization_endpoint}{join}{urlencode(fields)}"

    async def finish(self, target: str) -> SignedIn:
        """Redeem the redirect, and store the tokens; ``target`` is its path and query."""
        if self._found is None or self._client is None or not self._redirect_uri:
            raise LoginError("the login was not begun")
        found, client = self._found, self._client
        path, _, query = target.partition("?")
        if not hmac.compare_digest(path.encode(), urlsplit(self._redirect_uri).path.encode()):
            raise LoginError(_OTHER_SERVER)
        code = read_redirect(query, self.state, found, needs_issuer=self._needs_issuer)
        # Even if the rest fails, a second redirect must not be redeemed.
        self._found = None
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": self._verifier,
        }
        if found.resource:
            fields["resource"] = found.resource
        return await self._redeem(found, client, fields, "authorization_code")

    # The device flow.

    async def begin_device(self) -> DevicePrompt:
        """Return what to show the user; ``LoginError`` if there is no device flow."""
        found, client = await self._prepare(None, "", for_device=True)
        server = found.server
        answer = await request_token(
            self._plan.fetch, server.device_endpoint, client, server.issuer, self._about(found)
        )
        body = answer.body
        uri, code = body.get("verification_uri"), body.get("user_code")
        if not answer.is_ok or not all(isinstance(one, str) and one for one in (uri, code)):
            raise LoginError(f"the authorization server began no device login ({answer.error})")
        if not isinstance(body.get("device_code"), str):
            raise LoginError("the authorization server's answer holds no device code")
        whole = str(body.get("verification_uri_complete") or "")
        for link in filter(None, (str(uri), whole)):
            await self._plan.fetch.check_link(link)
        self._device = body
        return DevicePrompt(str(uri), str(code)[:64], _seconds(body, "expires_in", 600.0))

    async def finish_device(self) -> SignedIn:
        """Wait until the user has signed in on the other device, and store the tokens."""
        if self._found is None or self._client is None or not self._device:
            raise LoginError("the login was not begun")
        found, client = self._found, self._client
        delay = min(max(_seconds(self._device, "interval", 5.0), MIN_POLL_S), MAX_POLL_S)
        fields = {"grant_type": DEVICE_GRANT, "device_code": str(self._device["device_code"])}
        if found.resource:
            fields["resource"] = found.resource
        try:
            async with asyncio.timeout(
                min(_seconds(self._device, "expires_in", 600.0), MAX_DEVICE_S)
            ):
                while True:
                    await asyncio.sleep(delay)
                    try:
                        return await self._redeem(found, client, fields, "device_code")
                    except RefusedGrant as refused:
                        if refused.code == "slow_down":
                            delay = min(delay + SLOWER_S, MAX_POLL_S)
                        elif refused.code != "authorization_pending":
                            raise
        except TimeoutError:
            raise LoginError("nobody signed in on the other device in time") from None

    # Client credentials.

    async def use_client_credentials(self, challenge: Challenge | None = None) -> SignedIn:
        """Get tokens for the gate itself, without a user, and store them."""
        found = await self._discover(challenge)
        client = configured_client(self._plan.auth, self._plan.environ, found.server)
        if client is None or not client.client_secret:
            raise LoginError(
                "client credentials need auth.client_id and auth.client_secret_env in the config"
            )
        # There is no refresh token: the gate can sign in again at any time.
        self._scopes = tuple(one for one in self._scopes if one != OFFLINE)
        fields = {"grant_type": CLIENT_CREDENTIALS, **self._about(found)}
        return await self._redeem(found, client, fields, CLIENT_CREDENTIALS)

    # Common parts.

    async def _discover(self, challenge: Challenge | None) -> Discovery:
        plan, auth = self._plan, self._plan.auth
        check_server(plan.server.url)
        if challenge is None:
            challenge = await self._ask_for_challenge()
        self._is_refused = challenge is not None
        found = await discover(
            plan.fetch,
            challenge,
            issuer=auth.issuer if auth is not None else "",
            scopes=auth.scopes if auth is not None else (),
        )
        if not found.server.token_endpoint:
            raise LoginError("the authorization server has no token endpoint")
        self._scopes = found.scopes
        return found

    async def _ask_for_challenge(self) -> Challenge | None:
        """Return the challenge to the first request that the server refuses, in either era."""
        for method in (DISCOVER, "initialize", "tools/list"):
            if method == "initialize":
                params, headers = initialize_params({}), []
            else:
                params = params_for_modern({}, capabilities={})
                headers = mirrored(method, params, LATEST, ())
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            challenge = await self._plan.fetch.ask_for_challenge(render(body), headers)
            if challenge is not None:
                return challenge
        return None

    async def _prepare(
        self, challenge: Challenge | None, redirect_uri: str, *, for_device: bool = False
    ) -> tuple[Discovery, OAuthClient]:
        found = await self._discover(challenge)
        if for_device and not found.server.device_endpoint:
            raise LoginError(
                "the authorization server offers no login on another device; use a browser"
            )
        known, missing = await self._plan.load()
        if known is not None and known.issuer == found.server.issuer and missing:
            # Step-up: the scopes that were granted, and those that the server has asked for since.
            self._scopes = bounded_scopes((*self._scopes, *known.scopes, *missing))
        if not for_device:
            await self._separate(found, redirect_uri)
        try:
            client = await choose_client(
                self._plan.fetch,
                found.server,
                self._plan.auth,
                self._plan.environ,
                redirect_uri=self._redirect_uri,
                known=known,
                now=self._clock(),
            )
        except LoginError:
            if self._is_refused or found.resource:
                raise
            raise LoginError(
                "the server did not ask for a login and names no place to sign in:"
                " it needs none, or this is not its URL"
            ) from None
        self._found, self._client = found, client
        return found, client

    async def _separate(self, found: Discovery, redirect_uri: str) -> None:
        """Choose a redirect URI that no other authorization server's answer can use.

        A hostile authorization server could send the browser on to an honest one, so that the gate
        redeems the honest server's code at the hostile one (mix-up, RFC 9700, 4.4). Only ``iss`` in
        the redirect, or a redirect URI of its own for each authorization server, tells them apart.
        A client that was registered by hand has one URI for all.
        """
        auth, issuer = self._plan.auth, found.server.issuer
        if not has_given_client(auth, found.server):
            mark = hashlib.sha256(issuer.encode()).hexdigest()[:_MARK]
            self._redirect_uri = f"{redirect_uri}/{mark}"
            return
        self._redirect_uri = redirect_uri
        is_chosen = auth is not None and bool(auth.issuer)
        self._needs_issuer = not is_chosen and bool(await self._plan.issuers() - {issuer})

    def _about(self, found: Discovery) -> dict[str, str]:
        fields = {"scope": " ".join(self._scopes)} if self._scopes else {}
        return {**fields, "resource": found.resource} if found.resource else fields

    async def _redeem(
        self, found: Discovery, client: OAuthClient, fields: Mapping[str, str], grant: str
    ) -> SignedIn:
        server = found.server
        answer = await grant_tokens(
            self._plan.fetch, server.token_endpoint, client, server.issuer, fields
        )
        if self._plan.auth is not None and self._plan.auth.client_id:
            # The secret of the config stays in its variable.
            client = OAuthClient(client.client_id, "", client.auth_method)
        tokens = TokenSet(
            issuer=server.issuer,
            resource=found.resource,
            token_endpoint=server.token_endpoint,
            client=client,
            revocation_endpoint=server.revocation_endpoint,
            grant=grant,
            **read_tokens(answer, self._clock(), self._scopes),
        )
        return await self._plan.save(tokens)


def read_redirect(query: str, state: str, found: Discovery, *, needs_issuer: bool = False) -> str:
    """Return the code of a redirect, after checking that it belongs to this login.

    With ``needs_issuer``, it must say who sent it, even if the authorization server did not promise
    that it does.

    Raises:
        LoginError: it does not, or the user or the authorization server refused.
    """
    try:
        pairs = parse_qsl(query[:MAX_QUERY], keep_blank_values=True, max_num_fields=64)
    except ValueError:
        pairs = []
    fields = dict(pairs)
    # A parameter that occurs twice could be read differently by whoever checked the first.
    if len(fields) < len(pairs) or not hmac.compare_digest(
        fields.get("state", "").encode(), state.encode()
    ):
        raise LoginError("the redirect does not belong to this login; start it again")
    # RFC 9207: before anything else is believed, errors included.
    issuer = fields.get("iss")
    if issuer is None and found.server.sends_issuer:
        raise LoginError("the redirect does not say which authorization server it comes from")
    if issuer is None and needs_issuer:
        raise LoginError(
            "the redirect does not say which authorization server it comes from, and this gate has"
            f" logins at others; set auth.issuer of the server in the config ({found.server.issuer})"
        )
    if issuer is not None and issuer != found.server.issuer:
        raise LoginError(_OTHER_SERVER)
    if "error" in fields:
        code = fields["error"][:64]
        words = code if code.isascii() and code.replace("_", "a").isalnum() else "unknown error"
        raise LoginError(f"the authorization server refused the login ({words})")
    if not fields.get("code"):
        raise LoginError("the redirect holds no code")
    return fields["code"]


def _seconds(body: Mapping[str, Any], name: str, usual: float) -> float:
    value = body.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else usual
