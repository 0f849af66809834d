"""The settings: each key of the config file, declared once with type, default and meaning.

The line below a key is its description in the JSON Schema and on the reference page.
``read_keys`` builds the settings from a file and reports every problem; building one in
code checks nothing. What two keys must agree on is in ``checks``.

Times are in seconds: a field that ends in ``_s`` belongs to the key without that ending.
Sizes are in bytes. Secrets are never here: a field that ends in ``_env`` names the
environment variable that holds one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Self

from thoughtgate.config.document import Path, dotted
from thoughtgate.config.durations import parse_rate
from thoughtgate.config.key_types import (
    NOT_A_KEY,
    Action,
    Checked,
    Count,
    Duration,
    FileKey,
    Globs,
    GlobText,
    Parsed,
    Port,
    PortOrZero,
    Regex,
    Size,
    Text,
    Texts,
    VariableName,
    When,
    Words,
    between,
    matching,
    not_empty,
    one_of,
)
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.policy.cedar_text import CedarSource

MIB: Final = 1024 * 1024


class Section:
    """A part of the file that holds keys."""

    __slots__ = ()

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Return the settings for checked keys; ``path`` is where in the file they are."""
        del path
        return cls(**keys)


@dataclass(frozen=True, slots=True)
class Expose(Section):
    """What a server shows: ``all``, an allowlist or a blocklist."""

    mode: Annotated[str, NOT_A_KEY] = "all"
    names: Annotated[tuple[str, ...], NOT_A_KEY] = ()

    allow = FileKey(tuple[GlobText, ...], default=())
    """Only these names; an empty list shows nothing."""
    block = FileKey(tuple[GlobText, ...], default=())
    """All but these names."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Return the mode whose key is there, with its names."""
        del path
        return cls(*next(iter(keys.items()), ()))


def _expose(value: Any) -> Any:
    if value == "all":
        return {}
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("must be all, {allow: [...]} or {block: [...]}")
    return value


_EXPOSE_SCHEMA: Final = {
    "anyOf": [
        {"const": "all"},
        *(
            {
                "type": "object",
                "required": [key],
                "additionalProperties": False,
                "properties": {key: {"type": "array", "items": {"type": "string"}}},
            }
            for key in ("allow", "block")
        ),
    ]
}


@dataclass(frozen=True, slots=True)
class ServerAuth(Section):
    """How the gate authenticates to the server."""

    type: Annotated[str, one_of("bearer")] = field(default="bearer", kw_only=True)
    """Only ``bearer``."""
    token_env: VariableName
    """Environment variable that holds the token."""


@dataclass(frozen=True, slots=True)
class ServerSettings(Section):
    """One MCP server; the key is its id. ``"*"`` stands for servers that are not named."""

    id: Annotated[str, NOT_A_KEY]
    name: str = ""
    """Name for people."""
    type = FileKey(Annotated[str, one_of("stdio", "http", "sse", "streamable-http")], default="")
    """Accepted from pasted entries; what counts is ``command`` or ``url``."""
    command: str = ""
    """Program of a stdio server; never run by a shell."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables added to its environment."""
    cwd: str = ""
    """Directory it starts in."""
    url: str = ""
    """Address of an HTTP server."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers sent to an HTTP server."""
    auth: ServerAuth | None = None
    """Credential sent to an HTTP server."""
    expose: Annotated[Expose, Parsed(_expose, _EXPOSE_SCHEMA)] = Expose()
    """What the agent may see and call: ``all``, ``{allow: [...]}`` or ``{block: [...]}``; globs."""
    timeout_s: Duration = 30.0
    """How long a call may take."""
    start_timeout_s: Duration = 10.0
    """How long the start may take."""
    connect_timeout_s: Duration = 5.0
    """How long connecting to an HTTP server may take."""
    eager: bool = False
    """Start with the gate instead of at the first call."""
    idle_s: Duration = 0.0
    """Stop a server that was not called for so long; by default it stays."""
    enabled: bool = True
    """False hides everything of the server and never starts it."""
    disabled = FileKey(bool, default=False)
    """Accepted from pasted entries: the opposite of ``enabled``."""
    isolation: Annotated[str, one_of("shared", "session")] = "shared"
    """One child for all HTTP clients, or one a session."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Take the id from the path, and ``disabled`` as the opposite of ``enabled``."""
        keys.pop("type", None)
        if keys.pop("disabled", False):
            keys["enabled"] = False
        return cls(id=str(path[-1]), **keys)


@dataclass(frozen=True, slots=True)
class SelectorSettings:
    """Which calls a rule or limit is for; an empty field accepts any."""

    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedSettings(Section):
    """What rules and limits have in common: an id, and which calls are meant."""

    id: Annotated[str, NOT_A_KEY]
    selector: Annotated[SelectorSettings, NOT_A_KEY] = SelectorSettings()

    id_ = FileKey(str, default="")
    """Name in the record; by default its place in the list."""
    tool = FileKey(Globs, default=None)
    """Tool names; globs, one or a list."""
    resource = FileKey(Globs, default=None)
    """Resource URIs; globs, one or a list."""
    prompt = FileKey(Globs, default=None)
    """Prompt names; globs, one or a list."""
    server = FileKey(Globs, default=None)
    """Server ids; globs, one or a list."""
    kind = FileKey(Annotated[str, one_of("tool", "resource", "prompt")], default=None)
    """Everything of a kind, when no name is given."""
    words = FileKey(Words, default=None)
    """Words of which the name must hold one: ``delete`` fits ``delete_file`` and ``fileDelete``."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Gather the keys that say which calls are meant into a selector."""
        named = {kind: keys.pop(kind, ()) for kind in ("tool", "resource", "prompt")}
        kind = keys.pop("kind", "")
        kinds = tuple(one for one, names in named.items() if names)
        selector = SelectorSettings(
            kinds=kinds or ((kind,) if kind else ()),
            names=tuple(name for names in named.values() for name in names),
            servers=keys.pop("server", ()),
            words=tuple(word.lower() for word in keys.pop("words", ())),
        )
        return cls(id=keys.pop("id_", "") or dotted(path), selector=selector, **keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings(SelectedSettings):
    """One rule; the first that matches decides."""

    when: When = field(default_factory=dict)
    """Conditions on the arguments."""
    annotations: When = field(default_factory=dict)
    """Conditions on what the server says of the tool; only with ``deny`` and ``approve``."""
    action: Action
    """``forward``, ``deny``, ``approve`` (ask a person) or ``policy`` (ask Cedar)."""
    approval: str = ""
    """Workflow that asks; only with ``approve``."""
    reason: str = ""
    """Why; shown to approvers and recorded, never sent to the agent."""
    redact: bool = False
    """Mask secrets in the result too."""


@dataclass(frozen=True, slots=True)
class RateSettings:
    """Calls in a time."""

    count: int
    period_s: float


def _rate(value: Any) -> RateSettings:
    return RateSettings(*parse_rate(value if isinstance(value, str) else ""))


@dataclass(frozen=True, slots=True)
class BreakerSettings(Section):
    """Leave a failing tool alone for a while."""

    failures: Count
    """Failures that open the breaker."""
    within_s: Duration = 60.0
    """Time in which they are counted."""
    cooldown_s: Duration = 30.0
    """How long calls are refused before one may try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings(SelectedSettings):
    """One limit; every limit that covers a call is checked."""

    rate: (
        Annotated[RateSettings, Parsed(_rate, {"type": "string", "examples": ["30/m"]})] | None
    ) = None
    """Calls in a time: ``30/m``."""
    budget: Annotated[int, between(0)] | None = None
    """Calls in all."""
    duplicate_s: Duration = 0.0
    """Refuse the same call with the same arguments within this time."""
    breaker: BreakerSettings | None = None
    """Refuse calls to what keeps failing."""
    scope: Annotated[str, one_of("run", "session", "principal", "server", "tool")] = ""
    """What is counted together; by default the run, for breakers and duplicates the tool."""


@dataclass(frozen=True, slots=True)
class CedarFiles(Section):
    """Cedar policies, for rules with ``action: policy``."""

    policies: Annotated[Texts, Checked(not_empty, minItems=1)]
    """Policy files, relative to the config file."""


@dataclass(frozen=True, slots=True)
class SlackSettings(Section):
    """A Slack channel."""

    channel: Text
    """Channel id or name."""
    token_env: VariableName = "SLACK_BOT_TOKEN"  # noqa: S105  the name of a variable, not a secret
    """Environment variable that holds the bot token."""
    mention: Texts = ()
    """User ids that are mentioned."""
    approve_reaction: Text = "+1"
    """Reaction that approves."""
    deny_reaction: Text = "-1"
    """Reaction that denies."""
    poll_s: Duration = 5.0
    """How often the message is looked at."""
    api_url: Text = "https://slack.com/api/"
    """Address of Slack's API."""


@dataclass(frozen=True, slots=True)
class WebhookSettings(Section):
    """A webhook."""

    url: Text
    """Where requests are sent."""
    secret_env: VariableName
    """Environment variable that holds the signing secret."""


@dataclass(frozen=True, slots=True)
class WorkflowSettings(Section):
    """One approval workflow; the key is its name."""

    name: Annotated[str, NOT_A_KEY]
    channel: Annotated[str, one_of("console", "terminal", "slack", "webhook", "elicitation")] = (
        "console"
    )
    """Where people are asked."""
    slack: SlackSettings | None = None
    """Needed for the channel ``slack``."""
    webhook: WebhookSettings | None = None
    """Needed for the channel ``webhook``."""
    approvers: Texts = ()
    """Who may decide; by default anyone who can reach the channel."""
    required: Count = 1
    """How many people must approve."""
    timeout_s: Duration = 300.0
    """How long a call waits."""
    on_timeout: Annotated[str, one_of("deny", "approve")] = "deny"
    """What happens then."""
    allow_elicitation: bool = False
    """Let the agent's own prompt ask as well."""
    remember: bool = True
    """Let an approver make a decision stand for later calls."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Take the name from the path."""
        return cls(name=str(path[-1]), **keys)


@dataclass(frozen=True, slots=True)
class ListenAuth(Section):
    """Who may connect to the HTTP side."""

    type: Annotated[str, one_of("bearer", "ip_allowlist", "both", "jwt")]
    """How clients are known."""
    token_env: VariableName = ""
    """For ``bearer`` and ``both``: environment variable that holds the token."""
    allow: Texts = ()
    """For ``ip_allowlist`` and ``both``: address ranges such as ``10.0.0.0/8``."""
    jwks_url: str = ""
    """For ``jwt``: where the keys are."""
    issuer: str = ""
    """For ``jwt``: the issuer that must have signed."""
    audience: str = ""
    """For ``jwt``: the audience the token must be for."""
    principal_claim: Text = "sub"
    """For ``jwt``: the claim that names the principal."""


@dataclass(frozen=True, slots=True)
class ListenSettings(Section):
    """The agent side."""

    transport: Annotated[str, one_of("stdio", "http")] = "stdio"
    """``stdio`` or ``http``."""
    host: Text = "127.0.0.1"
    """Address to listen on; another than loopback needs ``auth``."""
    port: Port = 8080
    """Port to listen on."""
    auth: ListenAuth | None = None
    """Who may connect."""
    origins: Texts = ()
    """Origins of web pages that may call."""
    hosts: Texts = ()
    """Further host names the listener answers to."""
    public_url: str = ""
    """Address clients use, when it is another."""
    request_timeout_s: Duration = 30.0
    """How long a request may take, approvals not counted."""
    keep_alive_s: Duration = 60.0
    """How long an idle connection is kept."""
    max_body: Size = MIB
    """Largest request body."""
    max_concurrent: Count = 10_000
    """Requests at once; one more gets 503."""
    max_batch: Count = 100
    """Messages in a batch."""
    max_sessions: Count = 10_000
    """Sessions at once."""
    session_idle_s: Duration = 1800.0
    """How long a silent session is kept."""
    drain_s: Duration = 25.0
    """How long calls in flight may take when the gate stops."""
    admin_host: Text = "127.0.0.1"
    """Address of the admin port."""
    admin_port: PortOrZero = 0
    """Separate port for health and metrics; 0 for none."""
    workers: Annotated[int, between(1, 64)] = 1
    """Processes that share the port."""


@dataclass(frozen=True, slots=True)
class RotateSettings(Section):
    """When a new record file is begun."""

    size: Size = 64 * MIB
    """Size of a file."""
    keep: Count = 10
    """Files that are kept."""


_ROTATE: Final = RotateSettings()


@dataclass(frozen=True, slots=True)
class AuditSettings(Section):
    """The record."""

    sink: Annotated[str, one_of("file", "stderr", "stdout")] = "file"
    """Where records go; ``stdout`` only when the agent side is HTTP."""
    file: str = ""
    """Record file, relative to the state directory."""
    ledger: bool = True
    """Keep the database behind ``audit query``."""
    on_failure: Annotated[str, one_of("refuse", "continue")] = "refuse"
    """What happens to calls when the record cannot be written."""
    preview: Size = 16_384
    """Bytes of a call's arguments that are kept, secrets masked; results are counted, never kept."""
    rotate = FileKey(RotateSettings, default=_ROTATE)
    """When a new file is begun."""
    rotate_size: Annotated[int, NOT_A_KEY] = _ROTATE.size
    rotate_keep: Annotated[int, NOT_A_KEY] = _ROTATE.keep
    fsync: bool = False
    """Wait for the disk at every write: the record survives a loss of power, and calls are slower."""
    sign_key_env: VariableName = ""
    """Environment variable that holds the key for signed checkpoints."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Take the parts of ``rotate``."""
        del path
        rotate = keys.pop("rotate", _ROTATE)
        return cls(rotate_size=rotate.size, rotate_keep=rotate.keep, **keys)


@dataclass(frozen=True, slots=True)
class HoldSettings(Section):
    """How many calls may wait for a person at once."""

    connection: Count = 32
    """On one connection."""
    principal: Count = 100
    """Of one principal."""
    total: Count = 1000
    """In all."""


def _holds(value: Any) -> Any:
    return {"connection": value} if type(value) is int else value


@dataclass(frozen=True, slots=True)
class TaskSettings(Section):
    """Tasks that the gate answers for."""

    ttl_s: Duration = 3600.0
    """How long a task is kept when the caller does not say."""
    max_ttl_s: Duration = 86_400.0
    """How long a caller may ask for."""
    per_principal: Count = 100
    """Tasks of one principal."""
    total: Count = 10_000
    """Tasks in all."""
    poll_s: Duration = 5.0
    """How often a caller should look."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings(Section):
    """The console in the browser, on loopback."""

    enabled: bool = True
    """Serve it beside the gate."""
    port: PortOrZero = 0
    """Its port; 0 for a free one."""


@dataclass(frozen=True, slots=True)
class OtlpSettings(Section):
    """Where traces and logs are sent."""

    endpoint: Text
    """Address of the OTLP receiver."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers sent with every export."""
    sample_rate: Annotated[float, between(0.0, 1.0)] = 1.0
    """Share of calls that are traced."""
    resource: Mapping[str, str] = field(default_factory=dict)
    """Resource attributes."""
    service_name: Text = "thoughtgate"
    """Name of the service."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings(Section):
    """Logs, metrics and traces."""

    log_level: Annotated[str, one_of("debug", "info", "warning", "error")] = "info"
    """Least severe log line that is written."""
    log_format: Annotated[str, one_of("human", "json")] = "human"
    """Form of log lines."""
    metrics: bool = True
    """Serve metrics."""
    otlp: OtlpSettings | None = None
    """Send traces and logs; needs ``thoughtgate[otel]``."""


@dataclass(frozen=True, slots=True)
class RedactSettings(Section):
    """What is masked beside the built-in names and forms."""

    names: Texts = ()
    """Argument names whose values are masked."""
    patterns: tuple[Regex, ...] = ()
    """Expressions whose matches are masked."""


@dataclass(frozen=True, slots=True)
class Settings(Section):
    """The configuration of ThoughtGate."""

    schema = FileKey(Annotated[int, one_of(1)])
    """Version of this format: 1."""
    profile: Annotated[str, one_of("production", "development")] = field(
        default=PRODUCTION, kw_only=True
    )
    """``production`` enforces, ``development`` only reports."""
    default: Action
    """What happens to a call that no rule matches."""
    servers: Mapping[str, ServerSettings] = field(default_factory=dict)
    """Servers by id; ``mcpServers`` is accepted as the key."""
    rules: tuple[RuleSettings, ...] = ()
    """Rules; the first match wins."""
    cedar_ = FileKey(CedarFiles, default=None)
    """Cedar policies."""
    cedar: Annotated[tuple[CedarSource, ...], NOT_A_KEY] = ()
    limits: tuple[LimitSettings, ...] = ()
    """Limits, checked after access was granted."""
    approval: Mapping[str, WorkflowSettings] = field(
        default_factory=lambda: {"default": WorkflowSettings("default")}
    )
    """Approval workflows by name; ``default`` exists without being written."""
    listen: ListenSettings = ListenSettings()
    """The agent side of ``proxy`` and ``serve``."""
    namespaces: Mapping[str, Texts] = field(default_factory=dict)
    """Sets of server ids for ``serve``."""
    default_namespace: str = ""
    """The namespace used when none is asked for."""
    audit: AuditSettings = AuditSettings()
    """The record."""
    store: Text = "sqlite"
    """``sqlite``, in the state directory. A ``redis://`` URL is reserved, and refused for now."""
    holds: Annotated[HoldSettings, Parsed(_holds)] = HoldSettings()
    """Calls that may wait for a person; a number is for one connection."""
    tasks: TaskSettings = TaskSettings()
    """Tasks that the gate answers for."""
    console: ConsoleSettings = ConsoleSettings()
    """The console."""
    telemetry: TelemetrySettings = TelemetrySettings()
    """Logs, metrics and traces."""
    redact: RedactSettings = RedactSettings()
    """What is masked."""
    manager_tools: bool = True
    """Offer ``thoughtgate.*`` tools in ``serve``."""
    separator: Annotated[
        str, matching(r"^[._/:-]{1,3}$|^__$", "must be . _ __ / : or -, at most three of them")
    ] = "."
    """Between server and tool in the names of ``serve``."""
    reload: bool = True
    """Read the file again when it changes."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Add the default workflow; the text of the Cedar files is read by ``load``."""
        del path, keys["schema"]
        keys.pop("cedar_", None)
        workflows = {"default": WorkflowSettings("default"), **keys.pop("approval", {})}
        return cls(approval=workflows, **keys)
