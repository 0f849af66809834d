"""The keys below ``servers.*.auth``: how the gate authenticates to a server, and their checks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from thoughtgate.config.document import Path
from thoughtgate.config.key_types import Section, Texts, VariableName, one_of

BEARER: Final = "bearer"
OAUTH: Final = "oauth"
CLIENT_CREDENTIALS: Final = "client_credentials"


@dataclass(frozen=True, slots=True)
class ServerAuth(Section):
    """How the gate authenticates to the server."""

    type: Annotated[str, one_of(BEARER, OAUTH)] = field(default=BEARER, kw_only=True)
    """``bearer`` sends a fixed token; ``oauth`` signs in, as ``thoughtgate login`` does."""
    token_env: VariableName = ""
    """For ``bearer``: environment variable that holds the token."""
    grant: Annotated[str, one_of("authorization_code", CLIENT_CREDENTIALS)] = "authorization_code"
    """For ``oauth``: ``authorization_code`` signs in a person, ``client_credentials`` the gate itself."""
    client_id: str = ""
    """For ``oauth``: id of a client that is registered with the authorization server. Without it, the
    gate registers itself."""
    client_secret_env: VariableName = ""
    """For ``oauth``: environment variable that holds the client's secret."""
    client_metadata_url: str = ""
    """For ``oauth``: URL of a client id metadata document that you publish, which is the client id at
    authorization servers that support such documents."""
    scopes: Texts = ()
    """For ``oauth``: scopes to ask for; by default those that the server names."""
    issuer: str = ""
    """For ``oauth``: the authorization server to use; by default the first that the server names. It is
    required with ``client_secret_env``, because the secret is for this authorization server only."""


_ONLY: Final = {
    BEARER: ("token_env",),
    OAUTH: (
        "grant",
        "client_id",
        "client_secret_env",
        "client_metadata_url",
        "scopes",
        "issuer",
    ),
}
"""The keys of each type."""

_WITH_SECRET: Final = {
    "client_id": "with client_secret_env",
    "issuer": "with client_secret_env: otherwise the server says who gets the secret",
}
"""The keys that a client's secret needs, and why."""


def check_server_auth(path: Path, auth: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what does not fit together in ``servers.*.auth``; URLs are checked elsewhere."""
    kind = auth.get("type", BEARER)
    if kind not in (BEARER, OAUTH):
        return
    other = OAUTH if kind == BEARER else BEARER
    for key in _ONLY[other]:
        if auth.get(key) is not None:
            yield (*path, key), f"has no effect when type is {kind}; remove it"
    if kind == BEARER and not auth.get("token_env"):
        yield (*path, "token_env"), "required when type is bearer"
    if kind == BEARER:
        return
    needed = dict(_WITH_SECRET) if auth.get("client_secret_env") else {}
    if auth.get("grant") == CLIENT_CREDENTIALS:
        needed |= dict.fromkeys(
            ("client_id", "client_secret_env"), f"when grant is {CLIENT_CREDENTIALS}"
        )
    for key, why in needed.items():
        if not auth.get(key):
            yield (*path, key), f"required {why}"
