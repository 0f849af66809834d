"""The settings: frozen values, checked and complete, as the rest of the program sees them.

Nothing here knows text, files or defaults that depend on the machine. Times are in
seconds, sizes in bytes. Secrets are never here: a field that ends in ``_env`` names the
environment variable that holds one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from thoughtgate.policy.call import PRODUCTION
from thoughtgate.policy.cedar_text import CedarSource

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Expose:
    """What a server shows."""

    mode: str = "all"
    """``all``, ``allow`` or ``block``."""
    names: tuple[str, ...] = ()
    """The patterns that are allowed or blocked."""


@dataclass(frozen=True, slots=True)
class ServerAuth:
    """How the gate authenticates to a server."""

    type: str = "bearer"
    token_env: str = ""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One MCP server behind the gate; stdio when it has a command, HTTP when it has a URL."""

    id: str
    name: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: ServerAuth | None = None
    expose: Expose = Expose()
    timeout_s: float = 30.0
    start_timeout_s: float = 10.0
    connect_timeout_s: float = 5.0
    eager: bool = False
    idle_s: float = 0.0
    """Stop the server after this long without a call; 0 keeps it."""
    enabled: bool = True
    isolation: str = "shared"
    """``shared``: one child for all clients; ``session``: one child a client session."""


@dataclass(frozen=True, slots=True)
class SelectorSettings:
    """Which calls a rule or limit is for; an empty field accepts any."""

    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """One rule."""

    id: str
    action: str
    selector: SelectorSettings = SelectorSettings()
    when: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    approval: str = ""
    reason: str = ""
    redact: bool = False


@dataclass(frozen=True, slots=True)
class RateSettings:
    """Calls in a time."""

    count: int
    period_s: float


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """Failures after which a tool is left alone for a while."""

    failures: int
    within_s: float = 60.0
    cooldown_s: float = 30.0


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """One limit."""

    id: str
    selector: SelectorSettings = SelectorSettings()
    rate: RateSettings | None = None
    budget: int | None = None
    duplicate_s: float = 0.0
    breaker: BreakerSettings | None = None
    scope: str = ""


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """Where a workflow asks on Slack."""

    channel: str
    token_env: str = "SLACK_BOT_TOKEN"  # noqa: S105  the name of a variable, not a secret
    mention: tuple[str, ...] = ()
    approve_reaction: str = "+1"
    deny_reaction: str = "-1"
    poll_s: float = 5.0
    api_url: str = "https://slack.com/api/"


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where a workflow asks by webhook."""

    url: str
    secret_env: str


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """Who is asked for an approval, where, and for how long."""

    name: str
    channel: str = "console"
    """``console``, ``terminal``, ``slack``, ``webhook`` or ``elicitation``."""
    slack: SlackSettings | None = None
    webhook: WebhookSettings | None = None
    approvers: tuple[str, ...] = ()
    """Identities that may decide; empty for anyone who can reach the channel."""
    required: int = 1
    """How many people must approve."""
    timeout_s: float = 300.0
    on_timeout: str = "deny"
    allow_elicitation: bool = False
    """Whether the agent's own prompt may ask too."""
    remember: bool = True
    """Whether an approver may let the decision stand for later calls."""


@dataclass(frozen=True, slots=True)
class ListenAuth:
    """Who may connect to the HTTP side."""

    type: str
    """``bearer``, ``ip_allowlist``, ``both`` or ``jwt``."""
    token_env: str = ""
    allow: tuple[str, ...] = ()
    """CIDR ranges."""
    jwks_url: str = ""
    issuer: str = ""
    audience: str = ""
    principal_claim: str = "sub"


@dataclass(frozen=True, slots=True)
class ListenSettings:
    """The agent side."""

    transport: str = "stdio"
    host: str = "127.0.0.1"
    port: int = 8080
    auth: ListenAuth | None = None
    origins: tuple[str, ...] = ()
    """Origins of web pages that may call, beside the listener's own."""
    hosts: tuple[str, ...] = ()
    """Host names the listener answers to, beside its own address."""
    public_url: str = ""
    """The address clients use, when it is not the listener's own."""
    request_timeout_s: float = 30.0
    keep_alive_s: float = 60.0
    max_body: int = MIB
    max_concurrent: int = 10_000
    max_batch: int = 100
    max_sessions: int = 10_000
    session_idle_s: float = 1800.0
    drain_s: float = 25.0
    admin_host: str = "127.0.0.1"
    admin_port: int = 0
    """A separate port for health and metrics; 0 serves them beside MCP."""
    workers: int = 1


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The record."""

    sink: str = "file"
    """``file``, ``stderr`` or ``stdout``."""
    file: str = ""
    """The file, relative to the state directory; empty for the default name."""
    ledger: bool = True
    on_failure: str = "refuse"
    """``refuse`` or ``continue``."""
    preview: int = 16_384
    """Bytes of arguments kept; 0 for none."""
    rotate_size: int = 64 * MIB
    rotate_keep: int = 10
    fsync: bool = False
    sign_key_env: str = ""


@dataclass(frozen=True, slots=True)
class HoldSettings:
    """How many calls may wait for a person at once."""

    connection: int = 32
    principal: int = 100
    total: int = 1000


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Tasks that the gate itself answers for."""

    ttl_s: float = 3600.0
    max_ttl_s: float = 86_400.0
    per_principal: int = 100
    total: int = 10_000
    poll_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The console in the browser; always on loopback."""

    enabled: bool = True
    port: int = 0


@dataclass(frozen=True, slots=True)
class OtlpSettings:
    """Where traces and logs are sent."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    sample_rate: float = 1.0
    resource: Mapping[str, str] = field(default_factory=dict)
    service_name: str = "thoughtgate"


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Logs, metrics and traces."""

    log_level: str = "info"
    log_format: str = "human"
    metrics: bool = True
    otlp: OtlpSettings | None = None


@dataclass(frozen=True, slots=True)
class RedactSettings:
    """What is masked beside the built-in names and forms."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole configuration."""

    default: str
    """What happens to a call that no rule matches."""
    profile: str = PRODUCTION
    servers: Mapping[str, ServerSettings] = field(default_factory=dict)
    """By id; the id ``*`` stands for servers that are not named."""
    rules: tuple[RuleSettings, ...] = ()
    cedar: tuple[CedarSource, ...] = ()
    limits: tuple[LimitSettings, ...] = ()
    approval: Mapping[str, WorkflowSettings] = field(
        default_factory=lambda: {"default": WorkflowSettings("default")}
    )
    """Workflows by name; ``default`` always exists."""
    listen: ListenSettings = ListenSettings()
    namespaces: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_namespace: str = ""
    audit: AuditSettings = AuditSettings()
    store: str = "sqlite"
    """``sqlite``, or a ``redis://`` URL."""
    holds: HoldSettings = HoldSettings()
    tasks: TaskSettings = TaskSettings()
    console: ConsoleSettings = ConsoleSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    redact: RedactSettings = RedactSettings()
    manager_tools: bool = True
    separator: str = "."
    """Stands between server and tool in the names that ``serve`` composes."""
    reload: bool = True
    """Read the file again when it changes."""
