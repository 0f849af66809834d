"""The settings of the web console: where it listens, and how reviewers sign in on a network."""

from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

from thoughtgate.config.key_types import PortOrZero, Section, Text, Texts, matching

DEFAULT_HEADER: Final = "Authorization"

LOGIN_PAGE: Final = "/servers"
"""The console's page for signing in to servers."""

LINK_MINUTES: Final = 10
"""How long a sign-in link that nobody has opened is valid."""

LINK_USE: Final = f"this link works once, within {LINK_MINUTES} minutes"


@dataclass(frozen=True, slots=True)
class SignInToken(Section):
    """What a token must be for the console to accept it; it is verified like an agent's token."""

    issuer: Text
    """The required issuer."""
    audience: Text
    """The required audience; it must not be one that agents' tokens have."""
    jwks_url: Text
    """URL of the key set."""
    ca: str = ""
    """File with CA certificates to trust for ``jwks_url``, as PEM, besides those of the system."""


@dataclass(frozen=True, slots=True)
class SignInSettings(Section):
    """Sign-in through an authenticating proxy; it replaces the one-time link."""

    jwt: SignInToken
    """The token that the proxy sends with every request."""
    header: Annotated[
        str, matching(r"^[A-Za-z0-9-]+$", "must be the name of a header, of letters, digits and -")
    ] = DEFAULT_HEADER
    """Header with the token; in ``Authorization`` it follows the word ``Bearer``."""
    name_claim: Text = "email"
    """The claim that names the reviewer."""
    groups_claim: Text = "groups"
    """The claim that lists the reviewer's groups."""
    trusted_proxies: Texts = ()
    """Addresses that may connect, such as ``10.0.0.0/8``; by default any over TLS, else loopback."""
    sign_out_url: str = ""
    """Page of the proxy that ends its own session, such as ``/oauth2/sign_out``."""


@dataclass(frozen=True, slots=True)
class ConsoleTls(Section):
    """The certificate of the console's own listener."""

    certificate: Text
    """File with the certificate chain, as PEM."""
    key: Text
    """File with the private key, as PEM."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings(Section):
    """The web console."""

    enabled: bool = True
    """Serve the console together with the gate."""
    host: Text = "127.0.0.1"
    """Address to listen on; any address other than loopback requires ``sign_in``."""
    port: PortOrZero = 0
    """Port of the console; 0 picks a free one."""
    public_url: str = ""
    """URL that browsers use; required with ``sign_in``."""
    tls: ConsoleTls | None = None
    """Serve HTTPS; without it, only trusted proxies may connect."""
    sign_in: SignInSettings | None = None
    """How reviewers sign in on a network; by default with a one-time link, on this machine."""

    @property
    def login_page(self) -> str:
        """Where people sign in to servers; empty if the console may not run or has no fixed URL."""
        return login_page_at(self.public_url) if self.enabled and self.sign_in is not None else ""


def describe_link(address: str) -> str:
    """Return the line that shows the console's URL or sign-in link, and what it is for."""
    once = "" if urlsplit(address).path in {"", "/"} else f"; {LINK_USE}"
    return f"console   {address}  (answer held calls and see what agents do{once})"


def console_at(address: str) -> str:
    """Return scheme and host of the console with this URL or sign-in link, without its secret."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if address else ""


def login_page_at(address: str) -> str:
    """Return the login page of the console with this URL or sign-in link, without its secret."""
    return f"{console_at(address)}{LOGIN_PAGE}" if address else ""


DEFAULT_CONSOLE: Final = ConsoleSettings()
