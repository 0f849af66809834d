"""The values of a sign-in: tokens, the client that they were issued to, and what may be shown.

Everything secret is left out of ``repr``, so that no log or traceback shows it by accident.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

MAX_SCOPES: Final = 256

_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,256}")
"""RFC 6749, 3.3."""


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """The gate as a client of an authorization server."""

    client_id: str
    client_secret: str = field(default="", repr=False)
    auth_method: str = "none"
    """How it authenticates at the token endpoint: ``none``, ``client_secret_basic``,
    ``client_secret_post`` or ``private_key_jwt``."""
    redirect_uri: str = ""
    """The redirect URI that it was registered with; empty for a client of the config."""
    secret_expires_at: float = 0.0
    """When its secret ends; 0 if it does not."""


@dataclass(frozen=True, slots=True)
class TokenSet:
    """The tokens of one principal for one server, with what is needed to renew them."""

    access_token: str = field(repr=False)
    issuer: str
    resource: str
    """The resource that the tokens are for (RFC 8707)."""
    token_endpoint: str
    client: OAuthClient
    refresh_token: str = field(default="", repr=False)
    expires_at: float = 0.0
    """When the access token ends; 0 if the authorization server does not say."""
    scopes: tuple[str, ...] = ()
    revocation_endpoint: str = ""
    grant: str = "authorization_code"

    def to_json(self) -> bytes:
        """Return the text that is encrypted and stored."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Read a stored text.

        Raises:
            ValueError: it was written by something else.
        """
        data = json.loads(text)
        try:
            client = OAuthClient(**data.pop("client"))
            return cls(**{**data, "client": client, "scopes": tuple(data.get("scopes", ()))})
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError("the stored tokens cannot be read") from error

    def renewed(self, answer: Mapping[str, Any], now: float) -> Self:
        """Return the tokens after a refresh; a server that rotates nothing keeps the old token."""
        return replace(
            self,
            access_token=str(answer["access_token"]),
            refresh_token=str(answer.get("refresh_token") or self.refresh_token),
            expires_at=expiry(answer, now),
            scopes=scopes_in(answer) or self.scopes,
        )


class SignedIn(NamedTuple):
    """Who is signed in to a server; nothing secret."""

    principal: str
    server: str
    """The id of the server in the config that the login was made with."""
    issuer: str
    scopes: tuple[str, ...]
    signed_in_at: float
    expires_at: float
    """When the access token ends; 0 if unknown."""
    is_renewable: bool
    """Whether the gate can renew it without a person."""


class DevicePrompt(NamedTuple):
    """What a person must do to sign in on another device (RFC 8628)."""

    verification_uri: str
    user_code: str
    expires_in_s: float


def expiry(answer: Mapping[str, Any], now: float) -> float:
    """Return when the access token of a token response ends; 0 if it does not say."""
    lasts = answer.get("expires_in")
    try:
        seconds = float(lasts) if isinstance(lasts, int | float | str) else 0.0
    except ValueError:
        seconds = 0.0
    # Beyond a year it makes no difference, and a timer or a database column has limits.
    return now + min(seconds, 366 * 86_400.0) if seconds > 0 else 0.0


def scopes_in(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scopes of a token response; they are stored, shown and requested again."""
    scope = answer.get("scope")
    words = scope.split(" ", MAX_SCOPES)[:MAX_SCOPES] if isinstance(scope, str) else ()
    return tuple(one for one in words if _SCOPE.fullmatch(one))
