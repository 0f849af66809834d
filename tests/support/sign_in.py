"""An issuer with real keys, and browsers behind an authenticating proxy."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.consoles import Client, Page
from tests.support.http_upstream import HttpUpstream, Reply

KEY: Final = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY: Final = ec.generate_private_key(ec.SECP256R1())
ISSUER: Final = "https://issuer.example"
AUDIENCE: Final = "https://console.example/"
PUBLIC: Final = "https://console.example"
HEADER: Final = "X-Signed-In"
ANN: Final = "ann@example.org"


def key_set(*keys: tuple[str, Any]) -> bytes:
    """Return a key set as an issuer publishes it."""
    found = []
    for kid, key in keys:
        entry = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
        found.append({**entry, "kid": kid, "alg": "ES256", "use": "sig"})
    return json.dumps({"keys": found}).encode()


@contextmanager
def running_issuer() -> Iterator[HttpUpstream]:
    """Serve the key set of the issuer."""
    with HttpUpstream(lambda _: Reply(body=key_set(("one", KEY)))) as running:
        yield running


def token(key: Any = KEY, *, kid: str = "one", alg: str = "ES256", **claims: Any) -> str:
    """Return a token of Ann; a claim that is None is left out."""
    full = {"email": ANN, "aud": AUDIENCE, "iss": ISSUER, "exp": time.time() + 60, **claims}
    full = {name: value for name, value in full.items() if value is not None}
    return jwt.encode(full, key, alg, headers={"kid": kid})


def sign_in_config(jwks_url: str, sign_in: str = "", console: str = "", rest: str = "") -> str:
    """Return a config whose console has sign-in; the texts add keys to its parts."""
    return (
        "schema: 1\ndefault: forward\n"
        f"console:\n  public_url: {PUBLIC}\n{console}"
        f"  sign_in:\n    header: {HEADER}\n{sign_in}"
        f"    jwt: {{issuer: '{ISSUER}', audience: '{AUDIENCE}', jwks_url: '{jwks_url}'}}\n{rest}"
    )


class ProxiedClient(Client):
    """A browser behind a proxy that adds a token to every request."""

    def __init__(self, port: int, given: str = "") -> None:
        super().__init__(port)
        self.given = given or token()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """Send a request as the proxy forwards it."""
        own = {"Host": PUBLIC.partition("//")[2], HEADER: self.given}
        if method == "POST":
            own["Origin"] = PUBLIC
        given = {name: value for name, value in (headers or {}).items() if name != "Origin"}
        return super().send(method, path, body, {**given, **own})


def signed_in_as(port: int, name: str, *groups: str) -> ProxiedClient:
    """Return the browser of somebody with groups."""
    return ProxiedClient(port, token(email=name, groups=list(groups)))
