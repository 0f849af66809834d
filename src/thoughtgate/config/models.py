"""The shape of the config file as pydantic models: types, defaults, one line on every key.

The models check one key at a time; what two keys must agree on is in ``checks``. They
also are the source of the JSON Schema for editors and of the reference page. ``freeze``
turns a checked model into the settings the program uses.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)

from thoughtgate.config.durations import parse_duration, parse_rate, parse_size, render_duration
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.regexes import Pattern
from thoughtgate.policy.words import split_words

SCHEMA_VERSION: Final = 1


def _duration(value: Any) -> Any:
    return parse_duration(value if isinstance(value, str) else "")


def _rate(value: Any) -> Any:
    return parse_rate(value if isinstance(value, str) else "")


def _size(value: Any) -> Any:
    return parse_size(str(value)) if not isinstance(value, bool) else value


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _pattern(value: Any) -> Any:
    if isinstance(value, str):
        Glob(value)
    return value


def _regex(value: Any) -> Any:
    if isinstance(value, str):
        Pattern(value)
    return value


def _conditions(value: Any) -> Any:
    if isinstance(value, dict):
        parse_conditions(value)
    return value


def _word(value: Any) -> Any:
    if isinstance(value, str) and split_words(value) != {value.lower()}:
        raise ValueError("must be a single word: names are split at punctuation and at camel case")
    return value


def _version(value: Any) -> Any:
    if value == SCHEMA_VERSION and type(value) is not int:
        raise ValueError(f"must be the whole number {SCHEMA_VERSION}")
    return value


def _expose(value: Any) -> Any:
    if value == "all":
        return {}
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("must be all, {allow: [...]} or {block: [...]}")
    return value


def _holds(value: Any) -> Any:
    return (
        {"connection": value} if isinstance(value, int) and not isinstance(value, bool) else value
    )


Text = Annotated[str, Field(min_length=1)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
GlobText = Annotated[str, BeforeValidator(_pattern)]
Globs = Annotated[
    list[GlobText],
    Field(min_length=1),
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
Duration = Annotated[
    float,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "examples": ["30s", "10m"]}),
]
RateText = Annotated[
    tuple[int, float],
    BeforeValidator(_rate),
    WithJsonSchema({"type": "string", "examples": ["30/m"]}),
]
Size = Annotated[
    int,
    BeforeValidator(_size),
    WithJsonSchema({"type": ["integer", "string"], "examples": ["10MiB"]}),
]
When = Annotated[dict[str, Any], BeforeValidator(_conditions)]
Port = Annotated[int, Field(ge=1, le=65_535)]
Count = Annotated[int, Field(ge=1)]
Action = Literal["forward", "deny", "approve", "policy"]


class Model(BaseModel):
    """Unknown keys are errors, and nothing is converted silently."""

    model_config = ConfigDict(
        strict=True, extra="forbid", use_attribute_docstrings=True, frozen=True
    )


class ExposeModel(Model):
    """What a server shows: ``all``, an allowlist or a blocklist."""

    allow: list[GlobText] | None = None
    """Only these names; an empty list shows nothing."""
    block: list[GlobText] | None = None
    """All but these names."""


Exposed = Annotated[
    ExposeModel,
    BeforeValidator(_expose),
    WithJsonSchema(
        {
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
    ),
]


class ServerAuthModel(Model):
    """How the gate authenticates to the server."""

    type: Literal["bearer"] = "bearer"
    """Only ``bearer``."""
    token_env: VariableName
    """Environment variable that holds the token."""


class ServerModel(Model):
    """One MCP server; the key is its id. ``"*"`` stands for servers that are not named."""

    name: str = ""
    """Name for people."""
    type: Literal["stdio", "http", "sse", "streamable-http"] | None = None
    """Accepted from pasted entries; what counts is ``command`` or ``url``."""
    command: str = ""
    """Program of a stdio server; never run by a shell."""
    args: list[str] = []
    """Its arguments."""
    env: dict[str, str] = {}
    """Variables added to its environment."""
    cwd: str = ""
    """Directory it starts in."""
    url: str = ""
    """Address of an HTTP server."""
    headers: dict[str, str] = {}
    """Headers sent to an HTTP server."""
    auth: ServerAuthModel | None = None
    """Credential sent to an HTTP server."""
    expose: Exposed = ExposeModel()
    """What the agent may see and call: ``all``, ``{allow: [...]}`` or ``{block: [...]}``; globs."""
    timeout: Duration = 30.0
    """How long a call may take."""
    start_timeout: Duration = 10.0
    """How long the start may take."""
    connect_timeout: Duration = 5.0
    """How long connecting to an HTTP server may take."""
    eager: bool = False
    """Start with the gate instead of at the first call."""
    idle: Duration = 0.0
    """Stop a server that was not called for so long; by default it stays."""
    enabled: bool = True
    """False hides everything of the server and never starts it."""
    disabled: bool = False
    """Accepted from pasted entries: the opposite of ``enabled``."""
    isolation: Literal["shared", "session"] = "shared"
    """One child for all HTTP clients, or one a session."""


class SelectorModel(Model):
    """Which calls are meant."""

    id: str = ""
    """Name in the record; by default its place in the list."""
    tool: Globs | None = None
    """Tool names; globs, one or a list."""
    resource: Globs | None = None
    """Resource URIs; globs, one or a list."""
    prompt: Globs | None = None
    """Prompt names; globs, one or a list."""
    server: Globs | None = None
    """Server ids; globs, one or a list."""
    kind: Literal["tool", "resource", "prompt"] | None = None
    """Everything of a kind, when no name is given."""
    words: Annotated[list[Annotated[Text, BeforeValidator(_word)]], Field(min_length=1)] | None = (
        None
    )
    """Words of which the name must hold one: ``delete`` fits ``delete_file`` and ``fileDelete``."""


class RuleModel(SelectorModel):
    """One rule; the first that matches decides."""

    when: When = {}
    """Conditions on the arguments."""
    annotations: When = {}
    """Conditions on what the server says of the tool; only with ``deny`` and ``approve``."""
    action: Action
    """``forward``, ``deny``, ``approve`` (ask a person) or ``policy`` (ask Cedar)."""
    approval: str = ""
    """Workflow that asks; only with ``approve``."""
    reason: str = ""
    """Why; shown to approvers and recorded, never sent to the agent."""
    redact: bool = False
    """Mask secrets in the result too."""


class BreakerModel(Model):
    """Leave a failing tool alone for a while."""

    failures: Count
    """Failures that open the breaker."""
    within: Duration = 60.0
    """Time in which they are counted."""
    cooldown: Duration = 30.0
    """How long calls are refused before one may try again."""


class LimitModel(SelectorModel):
    """One limit; every limit that covers a call is checked."""

    rate: RateText | None = None
    """Calls in a time: ``30/m``."""
    budget: Annotated[int, Field(ge=0)] | None = None
    """Calls in all."""
    duplicate: Duration = 0.0
    """Refuse the same call with the same arguments within this time."""
    breaker: BreakerModel | None = None
    """Refuse calls to what keeps failing."""
    scope: Literal["run", "session", "principal", "server", "tool"] | None = None
    """What is counted together; by default the run, for breakers and duplicates the tool."""


class CedarModel(Model):
    """Cedar policies, for rules with ``action: policy``."""

    policies: Annotated[list[Text], Field(min_length=1)]
    """Policy files, relative to the config file."""


class SlackModel(Model):
    """A Slack channel."""

    channel: Text
    """Channel id or name."""
    token_env: VariableName = "SLACK_BOT_TOKEN"  # noqa: S105  the name of a variable, not a secret
    """Environment variable that holds the bot token."""
    mention: list[Text] = []
    """User ids that are mentioned."""
    approve_reaction: Text = "+1"
    """Reaction that approves."""
    deny_reaction: Text = "-1"
    """Reaction that denies."""
    poll: Duration = 5.0
    """How often the message is looked at."""
    api_url: Text = "https://slack.com/api/"
    """Address of Slack's API."""


class WebhookModel(Model):
    """A webhook."""

    url: Text
    """Where requests are sent."""
    secret_env: VariableName
    """Environment variable that holds the signing secret."""


class WorkflowModel(Model):
    """One approval workflow; the key is its name."""

    channel: Literal["console", "terminal", "slack", "webhook", "elicitation"] = "console"
    """Where people are asked."""
    slack: SlackModel | None = None
    """Needed for the channel ``slack``."""
    webhook: WebhookModel | None = None
    """Needed for the channel ``webhook``."""
    approvers: list[Text] = []
    """Who may decide; by default anyone who can reach the channel."""
    required: Count = 1
    """How many people must approve."""
    timeout: Duration = 300.0
    """How long a call waits."""
    on_timeout: Literal["deny", "approve"] = "deny"
    """What happens then."""
    allow_elicitation: bool = False
    """Let the agent's own prompt ask as well."""
    remember: bool = True
    """Let an approver make a decision stand for later calls."""


class ListenAuthModel(Model):
    """Who may connect to the HTTP side."""

    type: Literal["bearer", "ip_allowlist", "both", "jwt"]
    """How clients are known."""
    token_env: VariableName | None = None
    """For ``bearer`` and ``both``: environment variable that holds the token."""
    allow: list[Text] | None = None
    """For ``ip_allowlist`` and ``both``: address ranges such as ``10.0.0.0/8``."""
    jwks_url: str = ""
    """For ``jwt``: where the keys are."""
    issuer: str = ""
    """For ``jwt``: the issuer that must have signed."""
    audience: str = ""
    """For ``jwt``: the audience the token must be for."""
    principal_claim: Text = "sub"
    """For ``jwt``: the claim that names the principal."""


class ListenModel(Model):
    """The agent side."""

    transport: Literal["stdio", "http"] = "stdio"
    """``stdio`` or ``http``."""
    host: Text = "127.0.0.1"
    """Address to listen on; another than loopback needs ``auth``."""
    port: Port = 8080
    """Port to listen on."""
    auth: ListenAuthModel | None = None
    """Who may connect."""
    origins: list[Text] = []
    """Origins of web pages that may call."""
    hosts: list[Text] = []
    """Further host names the listener answers to."""
    public_url: str = ""
    """Address clients use, when it is another."""
    request_timeout: Duration = 30.0
    """How long a request may take, approvals not counted."""
    keep_alive: Duration = 60.0
    """How long an idle connection is kept."""
    max_body: Size = 1_048_576
    """Largest request body."""
    max_concurrent: Count = 10_000
    """Requests at once; one more gets 503."""
    max_batch: Count = 100
    """Messages in a batch."""
    max_sessions: Count = 10_000
    """Sessions at once."""
    session_idle: Duration = 1800.0
    """How long a silent session is kept."""
    drain: Duration = 25.0
    """How long calls in flight may take when the gate stops."""
    admin_host: Text = "127.0.0.1"
    """Address of the admin port."""
    admin_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Separate port for health and metrics; 0 for none."""
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes that share the port."""


class RotateModel(Model):
    """When a new record file is begun."""

    size: Size = 64 * 1024 * 1024
    """Size of a file."""
    keep: Count = 10
    """Files that are kept."""


class AuditModel(Model):
    """The record."""

    sink: Literal["file", "stderr", "stdout"] = "file"
    """Where records go; ``stdout`` only when the agent side is HTTP."""
    file: str = ""
    """Record file, relative to the state directory."""
    ledger: bool = True
    """Keep the database behind ``audit query``."""
    on_failure: Literal["refuse", "continue"] = "refuse"
    """What happens to calls when the record cannot be written."""
    preview: Size = 16_384
    """Bytes of a call's arguments that are kept, secrets masked; results are counted, never kept."""
    rotate: RotateModel = RotateModel()
    """When a new file is begun."""
    fsync: bool = False
    """Wait for the disk at every write: the record survives a loss of power, and calls are slower."""
    sign_key_env: VariableName | None = None
    """Environment variable that holds the key for signed checkpoints."""


class HoldsModel(Model):
    """How many calls may wait for a person at once."""

    connection: Count = 32
    """On one connection."""
    principal: Count = 100
    """Of one principal."""
    total: Count = 1000
    """In all."""


class TasksModel(Model):
    """Tasks that the gate answers for."""

    ttl: Duration = 3600.0
    """How long a task is kept when the caller does not say."""
    max_ttl: Duration = 86_400.0
    """How long a caller may ask for."""
    per_principal: Count = 100
    """Tasks of one principal."""
    total: Count = 10_000
    """Tasks in all."""
    poll: Duration = 5.0
    """How often a caller should look."""


class ConsoleModel(Model):
    """The console in the browser, on loopback."""

    enabled: bool = True
    """Serve it beside the gate."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Its port; 0 for a free one."""


class OtlpModel(Model):
    """Where traces and logs are sent."""

    endpoint: Text
    """Address of the OTLP receiver."""
    headers: dict[str, str] = {}
    """Headers sent with every export."""
    sample_rate: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """Share of calls that are traced."""
    resource: dict[str, str] = {}
    """Resource attributes."""
    service_name: Text = "thoughtgate"
    """Name of the service."""


class TelemetryModel(Model):
    """Logs, metrics and traces."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log line that is written."""
    log_format: Literal["human", "json"] = "human"
    """Form of log lines."""
    metrics: bool = True
    """Serve metrics."""
    otlp: OtlpModel | None = None
    """Send traces and logs; needs ``thoughtgate[otel]``."""


class RedactModel(Model):
    """What is masked beside the built-in names and forms."""

    names: list[Text] = []
    """Argument names whose values are masked."""
    patterns: list[Annotated[str, BeforeValidator(_regex)]] = []
    """Expressions whose matches are masked."""


class ConfigModel(Model):
    """The configuration of ThoughtGate."""

    schema_: Annotated[Literal[1], BeforeValidator(_version), Field(alias="schema")]
    """Version of this format: 1."""
    profile: Literal["production", "development"] = "production"
    """``production`` enforces, ``development`` only reports."""
    default: Action
    """What happens to a call that no rule matches."""
    servers: dict[str, ServerModel] = {}
    """Servers by id; ``mcpServers`` is accepted as the key."""
    rules: list[RuleModel] = []
    """Rules; the first match wins."""
    cedar: CedarModel | None = None
    """Cedar policies."""
    limits: list[LimitModel] = []
    """Limits, checked after access was granted."""
    approval: dict[str, WorkflowModel] = {}
    """Approval workflows by name; ``default`` exists without being written."""
    listen: ListenModel = ListenModel()
    """The agent side of ``proxy`` and ``serve``."""
    namespaces: dict[str, list[Text]] = {}
    """Sets of server ids for ``serve``."""
    default_namespace: str = ""
    """The namespace used when none is asked for."""
    audit: AuditModel = AuditModel()
    """The record."""
    store: Text = "sqlite"
    """``sqlite``, in the state directory. A ``redis://`` URL is reserved, and refused for now."""
    holds: Annotated[HoldsModel, BeforeValidator(_holds)] = HoldsModel()
    """Calls that may wait for a person; a number is for one connection."""
    tasks: TasksModel = TasksModel()
    """Tasks that the gate answers for."""
    console: ConsoleModel = ConsoleModel()
    """The console."""
    telemetry: TelemetryModel = TelemetryModel()
    """Logs, metrics and traces."""
    redact: RedactModel = RedactModel()
    """What is masked."""
    manager_tools: bool = True
    """Offer ``thoughtgate.*`` tools in ``serve``."""
    separator: Annotated[str, Field(pattern=r"^[._/:-]{1,3}$|^__$")] = "."
    """Between server and tool in the names of ``serve``."""
    reload: bool = True
    """Read the file again when it changes."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the config file, for editors."""
    schema = ConfigModel.model_json_schema(by_alias=True)
    for definition in (schema, *schema["$defs"].values()):
        for entry in definition["properties"].values():
            _tidy_default(entry)
    schema["properties"]["mcpServers"] = schema["properties"]["servers"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _tidy_default(entry: dict[str, Any]) -> None:
    """Write a default as one would in the file; those of whole sections say nothing new."""
    default = entry.get("default")
    if entry.get("type") == "string" and isinstance(default, float):
        entry["default"] = render_duration(default)
    elif isinstance(default, dict) or default is None:
        entry.pop("default", None)
