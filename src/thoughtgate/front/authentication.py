"""Authentication of HTTP clients: a token, an address, both, a signed token (JWT), or a certificate.

A rejection says which kind of credential was missing, never what the client presented.
Nothing here knows MCP; the listener authenticates a request before it reads the body.
"""

import hmac
import ipaddress
import json
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from thoughtgate.config.listen_settings import ListenAuth
from thoughtgate.errors import ConfigError, PeerError, Problem
from thoughtgate.front.client_certificates import name_in
from thoughtgate.gate.connections.certificates import trusting
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.tls import client_context

if TYPE_CHECKING:
    import jwt

NONE: Final = "none"
BEARER: Final = "bearer"
IP_ALLOWLIST: Final = "ip_allowlist"
BOTH: Final = "both"
JWT: Final = "jwt"
MTLS: Final = "mtls"

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""Algorithms that verify with a public key. With a shared secret, a verifier could forge tokens."""

LEEWAY_S: Final = 30.0
"""Allowed difference between the clocks of the issuer and the gate."""

KEYS_FRESH_S: Final = 3600.0
KEYS_RETRY_S: Final = 10.0
"""Minimum time between two fetches, so that unknown key ids cannot cause a flood of requests."""

MAX_KEYS: Final = 262_144
"""Maximum size of a key set in bytes."""

MAX_NAME: Final = 256
"""Maximum length of the name in a token, in characters."""

MAX_TOKEN: Final = 16_384

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Identity(NamedTuple):
    """Who an agent is, and how it was authenticated."""

    principal: str
    """Who calls, as rules, limits, approvals and stores know it; with ``jwt``, see ``spelled``."""
    method: str = NONE
    claims: dict[str, Any] | None = None
    """The claims of the signed token, which policies can match on."""
    name: str = ""
    """For a signed token: the principal's name as its issuer knows it."""


def spelled(issuer: str, name: str) -> str:
    """Return the principal for a name that an issuer vouches for: ``ISSUER#NAME``.

    Two issuers may give the same name to different people. An issuer contains no ``#`` (the config
    is checked for it), so the first one separates the parts whatever the name contains.
    """
    return f"{issuer}#{name}"


class Rejection(NamedTuple):
    """Why a client may not connect."""

    status: int
    method: str
    reason: str
    """For the record; never contains what the client presented."""
    challenge: bytes = b""
    """The value of WWW-Authenticate."""

    @property
    def headers(self) -> bytes:
        """The rendered headers that accompany the status."""
        return b"www-authenticate: %b\r\n" % self.challenge if self.challenge else b""


def misdirected(status: int) -> Rejection:
    """Return the rejection for a request with a wrong Host or Origin header, by its status."""
    if status == HTTPStatus.MISDIRECTED_REQUEST:
        return Rejection(status, "host", "the Host header names somebody else")
    return Rejection(status, "origin", "the Origin may not call")


class Authenticator:
    """Authenticates every request before its body is read."""

    def __init__(
        self,
        auth: ListenAuth | None,
        token: str = "",
        *,
        anonymous: str = "local",
        metadata_url: str = "",
        keys: "KeySet | None" = None,
    ) -> None:
        self.method = auth.type if auth is not None else NONE
        self._token = token.encode()
        self._anonymous = Identity(anonymous)
        self._keys = keys
        self._auth = auth
        self._networks = tuple(
            _unmapped_network(ipaddress.ip_network(text, strict=False))
            for text in (auth.allow if auth is not None else ())
        )
        self._challenge = b"Bearer"
        if self.method == JWT and metadata_url:
            self._challenge = b'Bearer resource_metadata="%b"' % metadata_url.encode()

    def check(
        self,
        peer: str,
        headers: Mapping[bytes, bytes],
        repeated: set[bytes],
        certificate: Callable[[], dict[str, Any] | None] = lambda: None,
    ) -> Identity | Rejection | None:
        """Return an identity or a rejection; None if the issuer's keys must be fetched first.

        ``certificate`` returns the client's certificate, which TLS has verified.
        """
        method = self.method
        if method == NONE:
            return self._anonymous
        if method == MTLS:
            return _check_certificate(certificate())
        if method in {IP_ALLOWLIST, BOTH}:
            by_address = self._check_address(peer)
            if method == IP_ALLOWLIST or isinstance(by_address, Rejection):
                return by_address
        shown = _bearer(headers.get(b"authorization"), repeated)
        if isinstance(shown, str):
            named = BEARER if method == BOTH else method
            return Rejection(401, named, shown, self._challenge)
        return self._check_signed(shown) if method == JWT else self._check_token(shown)

    def scope_challenge(self, scopes: str) -> bytes:
        """Return the header for a call whose token lacks scopes; see the function."""
        return scope_challenge(scopes, self._challenge)

    def _check_address(self, peer: str) -> Identity | Rejection:
        address = normalise(peer)
        if address is None or not any(address in network for network in self._networks):
            return Rejection(403, IP_ALLOWLIST, f"source {address or 'unknown'} outside allowlist")
        return Identity(f"ip:{address}", IP_ALLOWLIST)

    def _check_token(self, token: bytes) -> Identity | Rejection:
        # Constant time: the duration must not reveal how much of a guessed token is right.
        if hmac.compare_digest(token, self._token):
            return Identity("agent", self.method)
        return Rejection(401, BEARER, "token wrong", self._challenge)

    def _check_signed(self, token: bytes) -> Identity | Rejection | None:
        import jwt  # the extra ``jwt``: needed only where it is configured

        keys = self._keys
        if keys is None or len(token) > MAX_TOKEN:
            return self._unsigned("token not acceptable")
        try:
            head = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return self._unsigned("token not acceptable")
        # Nothing in this header is trusted: it only selects the key, and the algorithm must be one
        # of ``ALGORITHMS``.
        key = keys.find(str(head.get("kid") or ""))
        if key is None:
            return None if keys.may_fetch() else self._unsigned("token signed by an unknown key")
        return self._verify(token, key, str(head.get("alg")))

    def _verify(self, token: bytes, key: "jwt.PyJWK", algorithm: str) -> Identity | Rejection:
        import jwt  # as above

        auth = self._auth
        if auth is None or algorithm not in ALGORITHMS:
            return self._unsigned("token signed in a way that is not accepted")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=auth.audience,
                issuer=auth.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "aud", "iss"]},
            )
        except jwt.PyJWTError as error:
            return self._unsigned(_JWT_REASONS.get(type(error).__name__, "token not acceptable"))
        name = claims.get(auth.principal_claim)
        if type(name) is not str or not name:
            return self._unsigned("token names nobody")
        if not _is_usable(name):
            return self._unsigned("token names somebody with an unusable name")
        return Identity(spelled(auth.issuer, name), JWT, claims, name)

    def _unsigned(self, reason: str) -> Rejection:
        return Rejection(401, JWT, reason, self._challenge + _INVALID[b"=" in self._challenge])


def _is_usable(name: str) -> bool:
    """Return whether a name can be kept and shown as it is.

    Changing it could turn it into another principal's name.
    """
    return len(name) <= MAX_NAME and name.isprintable()


def _check_certificate(certificate: dict[str, Any] | None) -> Identity | Rejection:
    name = name_in(certificate)
    if not name or not _is_usable(name):
        return Rejection(403, MTLS, "certificate names nobody, or somebody with an unusable name")
    # Prefixed, so that no certificate can carry the name of a principal of another method.
    return Identity(f"cert:{name}", MTLS)


_JWT_REASONS: Final = {
    "ExpiredSignatureError": "token expired",
    "InvalidAudienceError": "token meant for somebody else",
    "InvalidIssuerError": "token from another issuer",
}
_INVALID: Final = {True: b', error="invalid_token"', False: b' error="invalid_token"'}


class KeySet:
    """The issuer's public keys, fetched when needed and cached."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        # Keys are fetched about once per hour, so no connection is kept open for the next time.
        if tls is None and url.startswith("https://"):
            tls = client_context()
        self._pool = HttpPool(url, PoolOptions(tls=tls, max_idle=0))
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")

    def find(self, kid: str) -> "jwt.PyJWK | None":
        """Return a key by its id; without an id, the only key if there is exactly one."""
        if time.monotonic() - self._fetched_at > KEYS_FRESH_S and self.may_fetch():
            return None
        if not kid and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def may_fetch(self) -> bool:
        """Whether enough time has passed since the last attempt."""
        return time.monotonic() - self._tried_at > KEYS_RETRY_S

    async def fetch(self) -> None:
        """Fetch the keys; if that fails, keep the old ones."""
        import jwt  # the extra ``jwt``: needed only where it is configured

        # Set before the request, so that failures are rate limited too.
        self._tried_at = time.monotonic()
        try:
            answer = await self._pool.request("GET", timeout_s=5.0, limit=MAX_KEYS)
            if answer.status != 200:  # noqa: PLR2004  the one status that carries keys
                return
            keys = jwt.PyJWKSet.from_dict(json.loads(answer.body)).keys
        except (PeerError, jwt.PyJWTError, ValueError, TypeError, AttributeError):
            return
        self._keys = {key.key_id or "": key for key in keys}
        self._fetched_at = time.monotonic()

    async def close(self) -> None:
        """Close the connections to the issuer."""
        await self._pool.close()


def normalise(peer: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address of a peer; an IPv4-mapped IPv6 address is returned as IPv4."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped if mapped is not None else address


def open_authenticator(
    auth: ListenAuth | None,
    environ: Mapping[str, str],
    *,
    anonymous: str,
    metadata_url: str,
    file: str = "",
) -> tuple[Authenticator, KeySet | None]:
    """Build the authenticator that a config, read from ``file``, asks for.

    Raises:
        ConfigError: the variable that should hold the token is not set, or an extra is missing, or
            the CA file cannot be used.
    """
    token = ""
    if auth is not None and auth.type in {BEARER, BOTH}:
        token = environ.get(auth.token_env, "")
        if not token.strip():
            problem = f"the variable {auth.token_env} is not set; export the agents' token in it"
            raise ConfigError([Problem("listen.auth.token_env", problem, file)])
    keys = None
    if auth is not None and auth.type == JWT:
        try:
            import jwt  # noqa: F401  only to say early that it is missing
        except ImportError:
            problem = "needs an extra: pip install 'thoughtgate[jwt]'"
            raise ConfigError([Problem("listen.auth.type", problem, file)]) from None
        tls = trusting(auth.ca, file, "listen.auth.ca") if auth.ca else None
        keys = KeySet(auth.jwks_url, tls)
    authenticator = Authenticator(
        auth, token, anonymous=anonymous, metadata_url=metadata_url, keys=keys
    )
    return authenticator, keys


def scope_challenge(scopes: str, challenge: bytes = b"Bearer") -> bytes:
    """Return the header for a call whose token lacks scopes: it names all that the call needs.

    It includes those that the token has: a client that requests only the named ones would lose the
    others.
    """
    separator = b"," if b"=" in challenge else b""
    said = b'error="insufficient_scope", scope="%b"' % scopes.encode()
    return b"www-authenticate: %b%b %b\r\n" % (challenge, separator, said)


def resource_metadata(
    resource: str, auth: ListenAuth | None, scopes: Collection[str] = ()
) -> bytes | None:
    """Return the protected-resource metadata (RFC 9728); None unless signed tokens are required.

    ``scopes`` are those that the rules require.
    """
    if auth is None or auth.type != JWT:
        return None
    document: dict[str, Any] = {
        "resource": resource,
        "authorization_servers": [auth.issuer],
        "bearer_methods_supported": ["header"],
    }
    if scopes:
        document["scopes_supported"] = sorted(scopes)
    return json.dumps(document).encode()


def _bearer(value: bytes | None, repeated: set[bytes]) -> bytes | str:
    """Return the token in an Authorization header as bytes, or the problem as text."""
    if value is None:
        return "header absent"
    if b"authorization" in repeated:
        return "header given twice"
    scheme, _, token = value.partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        return "header not a bearer credential"
    return token.strip()


def _unmapped_network(network: Network) -> Network:
    """Return the IPv4 range for a range of IPv4-mapped IPv6 addresses."""
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    wrapping = 96
    if mapped is None or network.prefixlen < wrapping:
        return network
    return ipaddress.ip_network((mapped, network.prefixlen - wrapping), strict=False)
