"""The settings: each key of the config file, declared once with type, default and meaning.

The line below a key is its description in the JSON Schema and on the reference page.
``read_keys`` builds the settings from a file and reports every problem; building one in
code checks nothing. What two keys must agree on is in ``checks``.
Times are in seconds: a field that ends in ``_s`` belongs to the key without that ending.
Sizes are in bytes. Secrets are never here: a field that ends in ``_env`` names the
environment variable that holds one. See also ``listen_settings``,
``console_settings``, ``content_settings`` and ``server_auth``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Self

from thoughtgate.config.call_counts import CallBudget, CallRate, read_budget, read_rate
from thoughtgate.config.console_settings import DEFAULT_CONSOLE, ConsoleSettings
from thoughtgate.config.content_settings import ArgumentSettings, CheckNames, ResultSettings
from thoughtgate.config.document import Path, dotted
from thoughtgate.config.key_types import (
    MIB,
    NOT_A_KEY,
    Action,
    ChannelName,
    Checked,
    Count,
    Duration,
    Facts,
    FileKey,
    Globs,
    GlobText,
    Parsed,
    Regex,
    ReloadMode,
    Scopes,
    Section,
    Size,
    Text,
    Texts,
    VariableName,
    When,
    WhenFacts,
    Words,
    between,
    matching,
    not_empty,
    one_of,
)
from thoughtgate.config.listen_settings import (
    DEFAULT_KEYS,
    DEFAULT_LISTEN,
    KeySettings,
    ListenSettings,
)
from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.tls_settings import ServerTls
from thoughtgate.policy.call import FORWARD, KINDS, PRODUCTION
from thoughtgate.policy.cedar_text import CedarSource
from thoughtgate.policy.definitions import MODES
from thoughtgate.policy.facts import WINDOW_S


@dataclass(frozen=True, slots=True)
class Expose(Section):
    """What a server shows: ``all``, an allowlist or a blocklist."""

    mode: Annotated[str, NOT_A_KEY] = "all"
    names: Annotated[tuple[str, ...], NOT_A_KEY] = ()

    allow = FileKey(tuple[GlobText, ...], default=())
    """Only these names; an empty list shows nothing."""
    block = FileKey(tuple[GlobText, ...], default=())
    """All names except these."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceSettings(Section):
    """Findings of the content checks that do not count, because somebody has looked at them."""

    check: Annotated[CheckNames, Checked(not_empty)]
    """Ids of checks, or globs of them; a list or one text."""
    tool: Globs = ()
    """Names of the tools, prompts or resources concerned, or globs; all, if left out."""
    reason: Text
    """Why the findings do not count; it is recorded with them."""


@dataclass(frozen=True, slots=True)
class ServerSettings(Section):
    """One MCP server; the key is its id. ``"*"`` stands for servers that are not named."""

    id: Annotated[str, NOT_A_KEY]
    name: str = ""
    """Display name."""
    type = FileKey(Annotated[str, one_of("stdio", "http", "sse", "streamable-http")], default="")
    """Accepted in pasted entries and ignored; ``command``, ``url`` and ``transport`` decide."""
    command: str = ""
    """Program of a stdio server; it is never run through a shell."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables added to the environment of the program."""
    cwd: str = ""
    """Working directory of the program."""
    url: str = ""
    """URL of an HTTP server."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers sent to an HTTP server."""
    auth: ServerAuth | None = None
    """How the gate authenticates to an HTTP server. Without it, a server that asks for a login gets one
    through ``thoughtgate login``."""
    transport: Annotated[str, one_of("auto", "streamable-http", "sse")] = "auto"
    """How an HTTP server is reached; ``sse`` is the HTTP+SSE transport of revision 2024-11-05, which
    ``auto`` recognises."""
    tls: ServerTls | None = None
    """Certificates for an HTTPS server."""
    proxy: str = field(default="", repr=False)
    """HTTP proxy towards the server: ``http://HOST:PORT``, ``none``, or ``environment`` for
    ``HTTPS_PROXY`` and similar; by default ``environment``, and ``none`` where an agent starts the
    gate."""
    max_answer: Size = 10 * MIB
    """Largest answer of an HTTP server, and largest event of its streams, after decompression."""
    provides: Facts = ()
    """Facts that every result of the server establishes: ``untrusted`` for data that anybody may have
    written, ``private`` for data that must not leave."""
    outbound: tuple[GlobText, ...] | None = None
    """Tools, resources and prompts that send data out; globs. Without this key, all of them count."""
    expose: Annotated[Expose, Parsed(_expose, _EXPOSE_SCHEMA)] = Expose()
    """What the agent may see and call: ``all``, ``{allow: [...]}`` or ``{block: [...]}``; globs."""
    results: ResultSettings | None = None
    """What happens to results in which the content checks find something; by default what ``"*"``
    says. Also applies to the server's requests to the agent."""
    arguments: ArgumentSettings | None = None
    """What happens to calls with secrets in their arguments; by default what ``"*"`` says."""
    definitions: Annotated[str, one_of(*MODES)] = ""
    """What happens when the server changes what it says about a tool, prompt, resource or itself, or
    offers a new one. ``pin`` hides and refuses it until a person accepts it, ``warn`` records and
    shows it, ``off`` does not look; by default the value of ``"*"``, else ``warn``."""
    silence: tuple[SilenceSettings, ...] = ()
    """Findings of the content checks that do not count for this server; by default those of ``"*"``."""
    timeout_s: Duration = 30.0
    """How long a call may take."""
    start_timeout_s: Duration = 10.0
    """How long the server may take to start."""
    connect_timeout_s: Duration = 5.0
    """How long connecting to an HTTP server may take."""
    eager: bool = False
    """Start the server with the gate instead of at the first call."""
    idle_s: Duration = 0.0
    """Stop a server that has not been called for this long; by default it keeps running."""
    enabled: bool = True
    """False hides everything the server offers and never starts it."""
    disabled = FileKey(bool, default=False)
    """Accepted in pasted entries: the opposite of ``enabled``."""
    isolation: Annotated[str, one_of("shared", "session")] = "shared"
    """``shared``: one process for all HTTP clients; ``session``: one process per session."""

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
    """What rules and limits have in common: an id and the calls they apply to."""

    id: Annotated[str, NOT_A_KEY]
    selector: Annotated[SelectorSettings, NOT_A_KEY] = SelectorSettings()

    id_ = FileKey(str, default="")
    """Name in the record; by default the position in the list."""
    tool = FileKey(Globs, default=None)
    """Tool names; globs, one or a list."""
    resource = FileKey(Globs, default=None)
    """Resource URIs; globs, one or a list."""
    prompt = FileKey(Globs, default=None)
    """Prompt names; globs, one or a list."""
    server = FileKey(Globs, default=None)
    """Server ids; globs, one or a list."""
    sampling = FileKey(Globs, default=None)
    """Requests of a server for a completion by the agent's model: ``createMessage`` or ``*``."""
    elicitation = FileKey(Globs, default=None)
    """Requests of a server for input from the user, by mode: ``form``, ``url`` or ``*``."""
    roots = FileKey(Globs, default=None)
    """Requests of a server for the agent's roots: ``list`` or ``*``."""
    kind = FileKey(Annotated[str, one_of(*KINDS)], default=None)
    """Applies to everything of this kind when no name is given."""
    words = FileKey(Words, default=None)
    """Words, one of which must occur in the name: ``delete`` matches ``delete_file`` and ``fileDelete``."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Combine the keys that select calls into a selector."""
        named = {kind: keys.pop(kind, ()) for kind in KINDS}
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
    """Conditions on the tool's annotations, which the server writes; only with ``deny`` and ``approve``."""
    when_facts: WhenFacts = ()
    """Facts that must all hold: ``untrusted``, ``private``, ``outbound``; only with ``deny`` and
    ``approve``."""
    action: Action
    """``forward``, ``deny``, ``approve`` (ask a person) or ``policy`` (ask Cedar)."""
    approval: str = ""
    """Approval workflow to use; only with ``approve``."""
    reason: str = ""
    """Reason for the rule; shown to approvers and recorded, never sent to the agent."""
    scope: Scopes = ()
    """Scopes that the agent's token must have; without them, a call that the rule matches is refused."""
    redact: bool = False
    """Also mask secrets in the result."""


@dataclass(frozen=True, slots=True)
class BreakerSettings(Section):
    """A circuit breaker: refuse calls to a failing tool for a while."""

    failures: Count
    """Number of failures that opens the breaker."""
    within_s: Duration = 60.0
    """Period in which failures are counted."""
    cooldown_s: Duration = 30.0
    """How long calls are refused before one is let through as a test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings(SelectedSettings):
    """One limit; every limit that covers a call is checked."""

    rate: (
        Annotated[CallRate, Parsed(read_rate, {"type": "string", "examples": ["30/m"]})] | None
    ) = None
    """Calls per period: ``30/m``."""
    budget: (
        Annotated[
            CallBudget,
            Parsed(
                read_budget,
                {"type": ["integer", "string"], "minimum": 0, "examples": ["200/1d", 200]},
            ),
        ]
        | None
    ) = None
    """Total number of calls: ``200``, or ``200/1d`` for a window that begins with its first call."""
    exact: bool = False
    """Ask the store for each call, instead of leasing portions; for several gates or workers."""
    duplicate_s: Duration = 0.0
    """Refuse the same call with the same arguments within this time."""
    breaker: BreakerSettings | None = None
    """Refuse calls to a tool that keeps failing."""
    scope: Annotated[str, one_of("run", "session", "principal", "server", "tool")] = ""
    """What calls are counted by; the default is ``run``, or ``tool`` for breakers and duplicates."""


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
    """Ids of the users to mention."""
    approve_reaction: Text = "+1"
    """Reaction that approves."""
    deny_reaction: Text = "-1"
    """Reaction that denies."""
    poll_s: Duration = 5.0
    """How often reactions are checked."""
    api_url: Text = "https://slack.com/api/"
    """URL of the Slack API."""


@dataclass(frozen=True, slots=True)
class WebhookSettings(Section):
    """A webhook."""

    url: Text
    """URL that approval requests are sent to."""
    secret_env: VariableName
    """Environment variable that holds the signing secret."""


@dataclass(frozen=True, slots=True)
class WorkflowSettings(Section):
    """One approval workflow; the key is its name."""

    name: Annotated[str, NOT_A_KEY]
    channel: ChannelName = "console"
    """Where reviewers are asked: a built-in channel, or one that an installed package provides."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Settings of a channel that an installed package provides; the package documents them."""
    slack: SlackSettings | None = None
    """Required for the channel ``slack``."""
    webhook: WebhookSettings | None = None
    """Required for the channel ``webhook``."""
    approvers: Texts = ()
    """Reviewers who may decide, such as ``ann``, ``slack:U0123``, or, signed in to the console,
    ``user:ann@example.org`` and ``group:sre``; by default anyone who can reach the channel."""
    required: Count = 1
    """Number of approvals needed."""
    timeout_s: Duration = 300.0
    """How long a call waits for a decision."""
    on_timeout: Annotated[str, one_of("deny", "approve")] = "deny"
    """What happens when nobody decides in time."""
    allow_elicitation: bool = False
    """Also ask through the agent's own prompt."""
    remember: bool = True
    """Let reviewers apply a decision to later calls as well."""
    ask: Annotated[str, one_of("each_call", "once_per_tool")] = "each_call"
    """``once_per_tool``: an approval covers every later call of that tool until the session ends."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Take the name from the path."""
        return cls(name=str(path[-1]), **keys)


@dataclass(frozen=True, slots=True)
class RotateSettings(Section):
    """When a new record file is started."""

    size: Size = 64 * MIB
    """Size at which a new file is started."""
    keep: Count = 10
    """Number of files to keep."""


_ROTATE: Final = RotateSettings()


@dataclass(frozen=True, slots=True)
class AuditSettings(Section):
    """The record."""

    sink: Annotated[str, one_of("file", "stderr", "stdout")] = "file"
    """Where records are written; ``stdout`` only if ``listen.transport`` is ``http``."""
    file: str = ""
    """Record file, relative to the state directory."""
    ledger: bool = True
    """Keep the database that ``audit query`` reads."""
    on_failure: Annotated[str, one_of("refuse", "continue")] = "refuse"
    """What happens to calls when the record cannot be written."""
    preview: Size = 16_384
    """Bytes of a call's arguments to keep, with secrets masked; results are counted but never kept."""
    rotate = FileKey(RotateSettings, default=_ROTATE)
    """When a new file is started."""
    rotate_size: Annotated[int, NOT_A_KEY] = _ROTATE.size
    rotate_keep: Annotated[int, NOT_A_KEY] = _ROTATE.keep
    retain_s: Duration = 0.0
    """Delete what is older, from rotated files and from the ledger; 0s keeps everything."""
    fsync: bool = False
    """Wait for the disk at every write: the record survives a power failure, but calls are slower."""
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
    """How many calls may wait for approval at once."""

    connection: Count = 32
    """Per connection."""
    principal: Count = 100
    """Per principal."""
    total: Count = 1000
    """In total."""


@dataclass(frozen=True, slots=True)
class NotifySettings(Section):
    """How people learn that a call waits for them."""

    desktop: bool = True
    """Show a desktop notification, if the gate runs in a desktop session."""
    terminal: bool = True
    """Ring the bell and set the title of the terminal that ``wrap`` runs in."""
    agent: bool = True
    """Say in the agent's prompt and progress messages what waits and where to answer."""


def _holds(value: Any) -> Any:
    return {"connection": value} if type(value) is int else value


@dataclass(frozen=True, slots=True)
class TaskSettings(Section):
    """Tasks that the gate itself manages."""

    ttl_s: Duration = 3600.0
    """How long a task is kept if the caller does not ask for a time."""
    max_ttl_s: Duration = 86_400.0
    """Longest time a caller may ask for."""
    per_principal: Count = 100
    """Maximum number of tasks per principal."""
    total: Count = 10_000
    """Maximum number of tasks in total."""
    poll_s: Duration = 5.0
    """How often callers are told to poll."""


@dataclass(frozen=True, slots=True)
class OtlpSettings(Section):
    """Where traces and logs are sent."""

    endpoint: Text
    """URL of the OTLP receiver."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers sent with every export."""
    sample_rate: Annotated[float, between(0.0, 1.0)] = 1.0
    """Fraction of calls that are traced."""
    resource: Mapping[str, str] = field(default_factory=dict)
    """Resource attributes."""
    service_name: Text = "thoughtgate"
    """Name of the service."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings(Section):
    """Logs, metrics and traces."""

    log_level: Annotated[str, one_of("debug", "info", "warning", "error")] = "info"
    """Lowest severity that is logged."""
    log_format: Annotated[str, one_of("human", "json")] = "human"
    """Format of log lines."""
    metrics: bool = True
    """Serve metrics."""
    otlp: OtlpSettings | None = None
    """Send traces and logs; needs ``thoughtgate[otel]``."""


@dataclass(frozen=True, slots=True)
class RedactSettings(Section):
    """What is masked in addition to the built-in names and patterns."""

    names: Texts = ()
    """Argument names whose values are masked."""
    patterns: tuple[Regex, ...] = ()
    """Regular expressions whose matches are masked."""


@dataclass(frozen=True, slots=True)
class FactSettings(Section):
    """The facts that rules and Cedar policies can ask for."""

    window_s: Duration = WINDOW_S
    """How long a fact holds after the last call that established it; at least a second."""


@dataclass(frozen=True, slots=True)
class Settings(Section):
    """The configuration of ThoughtGate."""

    schema = FileKey(Annotated[int, one_of(1)])
    """Version of this format: 1."""
    profile: Annotated[str, one_of("production", "development")] = field(
        default=PRODUCTION, kw_only=True
    )
    """``production`` enforces the policy, ``development`` only reports what it would do."""
    default: Action
    """What happens to a call that no rule matches."""
    server_requests: Action = field(default=FORWARD, kw_only=True)
    """What happens to a server's request to the agent (sampling, elicitation, roots) that no rule matches."""
    servers: Mapping[str, ServerSettings] = field(default_factory=dict)
    """Servers by id; the key may also be written ``mcpServers``."""
    rules: tuple[RuleSettings, ...] = ()
    """Rules; the first match wins."""
    cedar_ = FileKey(CedarFiles, default=None)
    """Cedar policies."""
    cedar: Annotated[tuple[CedarSource, ...], NOT_A_KEY] = ()
    facts: FactSettings = FactSettings()
    """What is known about the data that an agent has seen."""
    limits: tuple[LimitSettings, ...] = ()
    """Limits, checked after access was granted."""
    approval: Mapping[str, WorkflowSettings] = field(
        default_factory=lambda: {"default": WorkflowSettings("default")}
    )
    """Approval workflows by name; ``default`` always exists."""
    listen: ListenSettings = DEFAULT_LISTEN
    """The listener of ``proxy`` and ``serve``."""
    keys: KeySettings = DEFAULT_KEYS
    """The keys that seal session ids and prompts, and encrypt tokens."""
    namespaces: Mapping[str, Texts] = field(default_factory=dict)
    """Sets of server ids for ``serve``."""
    default_namespace: str = ""
    """The namespace used when a client asks for none."""
    audit: AuditSettings = AuditSettings()
    """The record."""
    store: Text = "sqlite"
    """``sqlite``, in the state directory, or ``postgresql://USER@HOST/DATABASE``, for several gates."""
    holds: Annotated[HoldSettings, Parsed(_holds)] = HoldSettings()
    """How many calls may wait for approval; a plain number sets the limit per connection."""
    notify: NotifySettings = NotifySettings()
    """How people learn that a call waits for them."""
    tasks: TaskSettings = TaskSettings()
    """Tasks that the gate itself manages."""
    console: ConsoleSettings = DEFAULT_CONSOLE
    """The console."""
    telemetry: TelemetrySettings = TelemetrySettings()
    """Logs, metrics and traces."""
    redact: RedactSettings = RedactSettings()
    """What is masked."""
    manager_tools: bool = True
    """Offer the ``thoughtgate.*`` tools in ``serve``."""
    separator: Annotated[
        str, matching(r"^[._/:-]{1,3}$|^__$", "must be one to three of the characters . _ / : -")
    ] = "."
    """Separator between server and tool in the names that ``serve`` lists."""
    reload: ReloadMode = "ask"
    """``ask`` holds a changed file that may loosen the policy until a person accepts it, ``auto``
    applies every change, ``off`` does not watch the file. ``true`` is ``ask``, ``false`` is ``off``."""

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Add the default workflow; the text of the Cedar files is read by ``load``."""
        del path, keys["schema"]
        keys.pop("cedar_", None)
        default = WorkflowSettings("default")
        return cls(approval={"default": default, **keys.pop("approval", {})}, **keys)
