"""The settings of the HTTP side: the listener, who may connect, and the keys of its sessions."""

from dataclasses import dataclass
from typing import Annotated, Final

from thoughtgate.config.key_types import (
    MIB,
    Count,
    Duration,
    Port,
    PortOrZero,
    Section,
    Size,
    Text,
    Texts,
    VariableName,
    between,
    one_of,
)
from thoughtgate.config.tls_settings import ListenTls


@dataclass(frozen=True, slots=True)
class ListenAuth(Section):
    """Who may connect to the HTTP listener."""

    type: Annotated[str, one_of("bearer", "ip_allowlist", "both", "jwt", "mtls")]
    """How clients are authenticated; ``mtls`` by the certificate that ``tls.client_ca`` asks for."""
    token_env: VariableName = ""
    """For ``bearer`` and ``both``: environment variable that holds the token."""
    allow: Texts = ()
    """For ``ip_allowlist`` and ``both``: address ranges such as ``10.0.0.0/8``."""
    jwks_url: str = ""
    """For ``jwt``: URL of the key set."""
    ca: str = ""
    """For ``jwt``: file with CA certificates to trust for ``jwks_url``, as PEM, besides the system's."""
    issuer: str = ""
    """For ``jwt``: the required issuer, as the claim ``iss`` names it; the first part of the principal."""
    audience: str = ""
    """For ``jwt``: the required audience."""
    principal_claim: Text = "sub"
    """For ``jwt``: the claim that names the principal among those of its issuer."""


@dataclass(frozen=True, slots=True)
class ListenSettings(Section):
    """The listener that agents connect to."""

    transport: Annotated[str, one_of("stdio", "http")] = "stdio"
    """``stdio`` or ``http``."""
    host: Text = "127.0.0.1"
    """Address to listen on; any address other than loopback requires ``auth``."""
    port: Port = 8080
    """Port to listen on."""
    auth: ListenAuth | None = None
    """Who may connect."""
    tls: ListenTls | None = None
    """Serve HTTPS; by default the listener speaks plain HTTP."""
    origins: Texts = ()
    """Origins of web pages that may connect."""
    hosts: Texts = ()
    """Additional host names that the listener accepts."""
    public_url: str = ""
    """URL that clients use, if it differs from the address to listen on."""
    request_timeout_s: Duration = 30.0
    """How long a request may take, not counting approvals."""
    keep_alive_s: Duration = 60.0
    """How long an idle connection is kept."""
    max_body: Size = MIB
    """Largest request body."""
    max_concurrent: Count = 10_000
    """Maximum number of concurrent requests, and of open streams; further ones get 503."""
    max_batch: Count = 100
    """Maximum number of messages in a batch."""
    max_sessions: Count = 10_000
    """Maximum number of open sessions; the longest idle one makes room for another."""
    session_idle_s: Duration = 1800.0
    """How long an idle session is kept."""
    drain_s: Duration = 25.0
    """How long calls in progress may take to finish when the gate stops."""
    lame_duck_s: Duration = 0.0
    """How long a gate that is told to stop still accepts requests, while ``/ready`` answers 503."""
    admin_host: Text = "127.0.0.1"
    """Address of the admin port."""
    admin_port: PortOrZero = 0
    """Separate port for health and metrics; 0 for none."""
    workers: Annotated[int, between(1, 64)] = 1
    """Number of processes that share the port."""


@dataclass(frozen=True, slots=True)
class KeySettings(Section):
    """The gate's own keys. Gates that share a store have the same keys."""

    file: str = ""
    """File with one key of 64 hexadecimal digits per line, the current one first, then previous ones;
    relative to the config file. Without it, the gate creates a key in its state directory."""
    tokens_env: VariableName = ""
    """Environment variable that holds the keys which encrypt the OAuth tokens of servers, separated by
    commas, the current one first. Without it, the key is in the keyring of the operating system."""


DEFAULT_LISTEN: Final = ListenSettings()
DEFAULT_KEYS: Final = KeySettings()
