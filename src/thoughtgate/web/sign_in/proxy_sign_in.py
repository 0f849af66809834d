"""Sign-in through an authenticating proxy, which adds a token to each request.

The token is verified on every request, by the code that also verifies agents' tokens. If anything
is wrong with it, nobody is signed in. Reasons never contain the token itself.
"""

import asyncio
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from thoughtgate.channels.console_channel import NAME as CONSOLE
from thoughtgate.config.console_settings import ConsoleSettings, SignInSettings
from thoughtgate.config.listen_settings import ListenAuth
from thoughtgate.core.approval import Reviewer
from thoughtgate.errors import ConfigError, Problem
from thoughtgate.front.authentication import (
    IP_ALLOWLIST,
    JWT,
    LEEWAY_S,
    Authenticator,
    Identity,
    KeySet,
    open_authenticator,
)

LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
"""Who may connect without TLS if the config names no proxy: others could read the token."""

EVERYBODY: Final = ("0.0.0.0/0", "::/0")

MAX_GROUPS: Final = 256
"""Maximum number of groups of a token, which are stored with each vote."""

MAX_GROUP: Final = 256
"""Maximum length of a group in characters."""

_PORTS: Final = {"http": 80, "https": 443}


class SignedIn(NamedTuple):
    """A reviewer with a verified token."""

    reviewer: Reviewer
    until: float
    """When the token expires."""

    @property
    def subject(self) -> str:
        """What a session is bound to."""
        return f"{self.reviewer.issuer} {self.reviewer.by}"


class ProxySignIn:
    """Verifies the tokens of one console."""

    def __init__(
        self, settings: SignInSettings, authenticator: Authenticator, keys: KeySet, *, has_tls: bool
    ) -> None:
        self.settings = settings
        self._tokens = authenticator
        self._keys = keys
        self._fetching = asyncio.Lock()
        allowed = settings.trusted_proxies or (EVERYBODY if has_tls else LOOPBACK)
        self._peers = Authenticator(ListenAuth(IP_ALLOWLIST, allow=allowed))

    async def open(self) -> None:
        """Fetch the issuer's keys; if that fails, the first token makes another attempt."""
        await self._keys.fetch()

    async def close(self) -> None:
        """Close the connections to the issuer."""
        await self._keys.close()

    def admits(self, peer: str) -> bool:
        """Tell whether requests from an address may be answered at all."""
        return isinstance(self._peers.check(peer, {}, set()), Identity)

    async def identify(self, headers: Headers) -> SignedIn | str:
        """Return who sent a request, or why that is unknown."""
        shown = headers.getlist(self.settings.header)
        if not shown:
            return f"no token in the header {self.settings.header}"
        if len(shown) > 1:
            return f"more than one header {self.settings.header}"
        value = shown[0].encode("latin-1", "replace")
        if self.settings.header.lower() != "authorization":
            value = b"Bearer " + value
        found = self._check(value)
        if not isinstance(found, Identity):
            # Another request may be fetching the unknown key, so check again before fetching.
            async with self._fetching:
                found = self._check(value)
                if found is None:
                    await self._keys.fetch()
                    found = self._check(value)
        if found is None:
            return "token signed by an unknown key"
        return self._signed_in(found) if isinstance(found, Identity) else found

    def _check(self, value: bytes) -> Identity | str | None:
        found = self._tokens.check("", {b"authorization": value}, set())
        return found if found is None or isinstance(found, Identity) else found.reason

    def _signed_in(self, identity: Identity) -> SignedIn | str:
        claims, name = identity.claims or {}, identity.name
        if name != name.strip():
            return "token names somebody with an unusable name"
        if self.settings.name_claim == "email" and claims.get("email_verified") in (False, "false"):
            return "token with an address that its issuer has not verified"
        groups = read_groups(claims.get(self.settings.groups_claim))
        if isinstance(groups, str):
            return groups
        reviewer = Reviewer(f"{CONSOLE}:{name}", groups, self.settings.jwt.issuer)
        return SignedIn(reviewer, float(claims["exp"]) + LEEWAY_S)


def read_groups(value: Any) -> tuple[str, ...] | str:
    """Return the groups of a claim, or what is wrong with it."""
    listed = [value] if isinstance(value, str) else value
    if listed is None or listed == [""]:
        return ()
    if not isinstance(listed, list) or not all(isinstance(group, str) for group in listed):
        return "token with groups that are not a list of names"
    if len(listed) > MAX_GROUPS or any(len(group) > MAX_GROUP for group in listed):
        return f"token with more than {MAX_GROUPS} groups, or with too long a name of one"
    return tuple(listed)


def open_sign_in(console: ConsoleSettings, file: str = "") -> ProxySignIn | None:
    """Return how reviewers sign in, if the config, read from ``file``, has more than the link.

    Raises:
        ConfigError: an extra is not installed.
    """
    settings = console.sign_in
    if settings is None:
        return None
    token = settings.jwt
    auth = ListenAuth(
        JWT,
        jwks_url=token.jwks_url,
        issuer=token.issuer,
        audience=token.audience,
        principal_claim=settings.name_claim,
        ca=token.ca,
    )
    try:
        authenticator, keys = open_authenticator(auth, {}, anonymous="", metadata_url="", file=file)
    except ConfigError as error:
        problems = [Problem("console.sign_in", one.message, file) for one in error.problems]
        raise ConfigError(problems) from None
    if keys is None:  # pragma: no cover - there are keys whenever the type is jwt
        raise ConfigError([Problem("console.sign_in", "has no keys", file)])
    return ProxySignIn(settings, authenticator, keys, has_tls=console.tls is not None)


def public_origin(url: str) -> str:
    """Return the origin of a URL as browsers write it: without a default port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    name = f"[{host}]" if ":" in host else host
    port = "" if parts.port in {None, _PORTS.get(parts.scheme)} else f":{parts.port}"
    return f"{parts.scheme}://{name}{port}"


def public_port(url: str) -> int:
    """Return the port that browsers connect to; 0 if there is no URL."""
    parts = urlsplit(url)
    return parts.port or int(_PORTS.get(parts.scheme) or 0)


def beside(file: str | None, name: str) -> str:
    """Return the path that a config names, which is relative to the config file."""
    return str(Path(file).parent / name) if file else name
