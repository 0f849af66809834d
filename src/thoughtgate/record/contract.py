"""The record's contract: every event type and every member, as data.

``docs/reference/audit.md`` is generated from this, and tests compare real events with it.
A change here changes the contract: an addition raises its minor version, anything else the
major version.
"""

from typing import Final, NamedTuple

from thoughtgate.core import record_events as record
from thoughtgate.record import evidence


class Member(NamedTuple):
    """One member of an event."""

    path: str
    """The dotted path; ``[]`` marks the items of a list."""
    type: str
    meaning: str
    optional: bool = False


class EventType(NamedTuple):
    """One type of event."""

    name: str
    meaning: str
    members: tuple[Member, ...]


ENVELOPE: Final = (
    Member("v", "string", "version of this contract, `major.minor`"),
    Member("type", "string", "the type of event"),
    Member("ts", "string", "when it happened: UTC, RFC 3339 with milliseconds and `Z`"),
    Member("run_id", "string", "the run: a gate process from start to end, or the value of `THOUGHTGATE_RUN_ID`"),
    Member("agent_id", "string", "the agent, as named in its environment, otherwise `unknown`"),
    Member("client", "string", "`claude`, `codex`, `headless`, `custom` or `unknown`"),
    Member("env", "string", "`dev`, `ci`, `prod` or `unknown`"),
    Member("source.host_id", "string", "the machine"),
    Member("source.proc_id", "string", "the process"),
    Member("source.shim_id", "string", "the writer: sequence numbers count within it"),
    Member("profile", "string", "`production` or `development`"),
    Member("principal", "string", "who started the run", optional=True),
    Member("workload", "object", "facts about the workload, free-form", optional=True),
    Member("session_id", "string", "the agent's session; `0` before there is one"),
    Member("seq", "integer", "1, 2, 3… within the run and writer"),
    Member("server_name", "string", "the server's id; empty if the event belongs to no server"),
    Member("chain", "string", "SHA-256 over the previous line's chain and this line up to here; always last"),
)  # fmt: skip
"""Members that every event has."""

_SHORT: Final = (
    Member("call.call_id", "string", "the call; all its events carry it"),
    Member("call.server_name", "string", "the server, unchanged"),
    Member("call.tool_name", "string", "the tool, prompt or resource URI, unchanged up to 512 characters"),
    Member("call.args_hash", "string", "SHA-256 over the canonical arguments; empty when they have none"),
)  # fmt: skip

_POLICY: Final = (
    Member("policy_id", "string", "`config`, or `starter` for the built-in policy"),
    Member("policy_version", "string", "digest over everything that can change a verdict"),
    Member("policy_hash", "string", "the same digest"),
)

_SUMMARY: Final = (
    Member("calls_total", "integer", "calls that ended"),
    Member("calls_allowed", "integer", "forwarded"),
    Member("calls_blocked", "integer", "refused by a gate or a person"),
    Member("calls_throttled", "integer", "refused by a limit; total = allowed + blocked + throttled"),
    Member("calls_would_block", "integer", "forwarded in the development profile although a gate refused them"),
    Member("errors_total", "integer", "refusals, upstream errors and time-outs"),
    Member("tool_errors", "integer", "results with `isError: true`; not counted as errors"),
    Member("approvals_requested", "integer", "approval requests"),
    Member("approvals_approved", "integer", "approval requests that were approved"),
    Member("approvals_rejected", "integer", "approval requests that were denied"),
    Member("approvals_timeout", "integer", "approval requests that nobody answered in time"),
    Member("approvals_withdrawn", "integer", "approval requests that were withdrawn, because nobody was waiting any more"),
    Member("frames_refused", "integer", "frames that were not forwarded"),
    Member("messages", "integer", "messages forwarded without a verdict, because no gate checks them"),
    Member("duration_ms", "integer", "how long the run lasted"),
)  # fmt: skip


def _under(prefix: str, members: tuple[Member, ...]) -> tuple[Member, ...]:
    return tuple(one._replace(path=f"{prefix}.{one.path}") for one in members)


EVENTS: Final = (
    EventType(
        record.RUN_START,
        "A run begins; always its first event.",
        (
            Member("run.started_at", "string", "as `ts`"),
            Member("run.mode", "string", "`enforce`, or `observe` in the development profile"),
            *_under("run.policy", _POLICY),
            Member("run.meta", "object", "further facts from the command, free-form", optional=True),
        ),
    ),
    EventType(
        record.RUN_END,
        "A run ends; always its last event (a signed record has a closing `checkpoint` after it).",
        (
            Member("run.ended_at", "string", "as `ts`"),
            Member("run.status", "string", "`SUCCEEDED`, `FAILED`, `TERMINATED` or `CANCELLED`"),
            Member("run.reason", "string", "the reason, as text", optional=True),
            *_under("run.summary", _SUMMARY),
        ),
    ),
    EventType(
        record.CALL_START,
        "A gated request arrived.",
        (
            *_SHORT,
            Member("call.kind", "string", "`tool`, `resource` or `prompt`"),
            Member("call.method", "string", "the MCP method"),
            Member("call.transport", "string", "`mcp_stdio` or `mcp_http`"),
            Member("call.principal", "string", "who calls"),
            Member("call.bytes_in", "integer", "size of the request"),
            Member("call.traceparent", "string", "the caller's W3C trace context", optional=True),
            Member("call.task", "boolean", "true when the caller asked for a task", optional=True),
            Member("call.preview.truncated", "boolean", "whether the preview is shortened or missing"),
            Member("call.preview.args_preview", "string", "canonical arguments, secrets masked, at most `audit.preview` bytes", optional=True),
            Member("call.seq", "integer", "1, 2, 3… the calls of the run"),
        ),
    ),
    EventType(
        record.CALL_DECISION,
        "The verdict on a call; written before the call is forwarded.",
        (
            *_SHORT,
            Member("decision.action", "string", "`ALLOW`, `HOLD`, `BLOCK` or `THROTTLE`"),
            Member("decision.gate", "string", "who decided: `visibility`, `rules`, `cedar`, `limits`, `approval`, `default`, `internal`"),
            Member("decision.rule_id", "string or null", "the rule or policy"),
            Member("decision.severity", "string", "`info` or `warn`"),
            Member("decision.explain.summary", "string", "the reason, as text"),
            Member("decision.explain.reason_code", "string", "the reason, as a code"),
            *_under("decision.policy", _POLICY),
            Member("decision.enforced", "boolean", "false if the development profile forwarded the call anyway"),
            Member("decision.workflow", "string", "the approval workflow", optional=True),
            Member("decision.outcome", "string", "`WOULD_BLOCK` when it was not enforced", optional=True),
            Member("decision.auto_approved", "boolean", "true if the development profile forwarded the call without asking for approval", optional=True),
            Member("decision.backoff_ms", "integer", "time until a limit may let the call through", optional=True),
        ),
    ),
    EventType(
        record.APPROVAL_REQUESTED,
        "Approval was requested for a held call.",
        (
            *_SHORT,
            Member("approval.workflow", "string", "the approval workflow"),
            Member("approval.rule_id", "string or null", "the rule that requires the approval"),
            Member("approval.approval_id", "string", "the approval request", optional=True),
            Member("approval.channel", "string", "the channel that the request was sent to", optional=True),
            Member("approval.digest", "string", "digest of the exact call", optional=True),
            Member("approval.required", "integer", "how many people must approve", optional=True),
            Member("approval.expires_at", "string", "when the request expires", optional=True),
        ),
    ),
    EventType(
        record.APPROVAL_DECIDED,
        "A held call was approved or denied, timed out or was withdrawn.",
        (
            *_SHORT,
            Member("approval.workflow", "string", "the approval workflow"),
            Member("approval.outcome", "string", "`approved`, `rejected`, `timeout` or `withdrawn`"),
            Member("approval.decided_by", "string", "who decided; empty if nobody did"),
            Member("approval.channel", "string", "the channel of the decision"),
            Member("approval.reason", "string", "the reason that the person gave, secrets masked"),
            Member("approval.auto_approved", "boolean", "true if a grant or a timeout decided"),
            Member("approval.executes", "boolean", "whether the call is made now"),
            Member("approval.kind", "string or null", "if not, the error kind that the caller gets"),
            Member("approval.approval_id", "string", "the approval request, as in `approval_requested`", optional=True),
            Member("approval.votes", "list of object", "every vote, whether or not it decided", optional=True),
            Member("approval.votes[].by", "string", "who, as `channel:name`", optional=True),
            Member("approval.votes[].channel", "string", "the channel of the vote; `grant` and `system` are not people", optional=True),
            Member("approval.votes[].approve", "boolean", "yes or no", optional=True),
            Member("approval.votes[].at", "string", "when, as `ts`", optional=True),
            Member("approval.votes[].reason", "string", "the reason that the person gave, secrets masked; absent if there is none", optional=True),
        ),
    ),
    EventType(
        record.CALL_END,
        "A call was answered, refused, lost or cancelled.",
        (
            *_SHORT,
            Member("status", "string", "`OK`, `ERROR`, `TIMEOUT` or `CANCELLED`"),
            Member("latency_ms", "integer", "from the request to its end, held time included"),
            Member("bytes_out", "integer", "size of the answer the agent got; the answer itself is never kept"),
            Member("preview.truncated", "boolean", "true if the result is left out", optional=True),
            Member("is_error", "boolean", "the tool's result says `isError`", optional=True),
            Member("error.class", "string", "`upstream_error`, `policy_block`, `timeout`, `transport`, `unknown`", optional=True),
            Member("error.kind", "string", "the error kind that the caller gets", optional=True),
            Member("error.code", "integer", "the upstream's JSON-RPC code", optional=True),
            Member("error.message", "string", "the error as text, without the server's own text", optional=True),
        ),
    ),
    EventType(
        record.TOOLS_LIST,
        "A list of tools, resources or prompts was filtered.",
        (
            Member("list.method", "string", "`tools/list`, `resources/list`, …"),
            Member("list.offered", "integer", "entries the server sent"),
            Member("list.returned", "integer", "entries that the agent received"),
            Member("list.hidden", "list of string", "names that were hidden, or would have been in production"),
            Member("list.entries", "object", "what the server offered: each name with a digest of its entry", optional=True),
            Member("list.enforced", "boolean", "false when the development profile showed them"),
        ),
    ),
    EventType(
        record.MESSAGE,
        "A message that no gate checks was forwarded.",
        (
            Member("message.direction", "string", "`agent_to_server` or `server_to_agent`"),
            Member("message.shape", "string", "`request`, `notification` or `response`"),
            Member("message.method", "string", "the method, or that of the request it answers"),
            Member("message.bytes", "integer", "its size"),
        ),
    ),
    EventType(
        record.FRAME_REFUSED,
        "A frame was refused because it cannot be read, or is ambiguous.",
        (
            Member("frame.direction", "string", "`agent_to_server` or `server_to_agent`"),
            Member("frame.check", "string", "the check it failed"),
            Member("frame.kind", "string", "the error kind of the reply"),
            Member("frame.bytes", "integer", "its size"),
            Member("frame.method", "string", "its method, if it could be read", optional=True),
            Member("frame.correlation_id", "string", "the same id as in the reply", optional=True),
            Member("frame.enforced", "boolean", "false when the development profile passed it on"),
            Member("frame.outcome", "string", "`WOULD_REJECT` or `WOULD_DROP` when it was not enforced", optional=True),
            Member("frame.repeated", "integer", "number of events that this one stands for; it describes the last of them", optional=True),
        ),
    ),
    EventType(
        record.AGENT_CONNECTED,
        "An agent opened an HTTP session.",
        (
            Member("agent.method", "string", "`none`, `bearer`, `ip_allowlist`, `both` or `jwt`"),
            Member("agent.identity", "string or null", "who it is", optional=True),
        ),
    ),
    EventType(
        record.AGENT_AUTH_REJECTED,
        "An agent was rejected before any MCP message was read.",
        (
            Member("agent.method", "string", "as above; `host` or `origin` for a request with a foreign Host or Origin header, `console` for a page of the console, or the channel of a decision"),
            Member("agent.reason", "string", "why, without the secret"),
            Member("agent.repeated", "integer", "number of events that this one stands for; it describes the last of them", optional=True),
        ),
    ),
    EventType(
        record.SERVER_STARTED,
        "A server was started or reached.",
        (Member("server", "object", "`pid`: of its process, 0 for a server that the gate did not start", optional=True),),
    ),
    EventType(
        record.SERVER_EXITED,
        "A server ended, could not start, or is lost.",
        (Member("server", "object", "`state`: `exited`, `failed_to_start` or `lost`; `exit_code`, where there was a process (128 + n after signal n); `reason`", optional=True),),
    ),
    EventType(
        record.POLICY_CHANGED,
        "A different policy applies from here on.",
        (Member("policy", "object", "the new policy, and whether it was loaded", optional=True),),
    ),
    EventType(
        evidence.RECORD_OPENED,
        "The first line of a file that continues another.",
        (
            Member("record.file", "integer", "number of the file"),
            Member("record.previous_file", "string", "the file before it"),
            Member("record.previous_chain", "string", "the chain that file ends with"),
        ),
    ),
    EventType(
        evidence.RECORD_REPAIRED,
        "The bytes between the last complete line and this one are not part of the record.",
        (
            Member("record.torn_bytes", "integer", "number of these bytes"),
            Member("record.torn_sha256", "string", "their digest"),
        ),
    ),
    EventType(
        evidence.RECORD_GAP,
        "Events are lost because they could not be written, or were cut off the end of the record.",
        (
            Member("record.lost", "integer", "how many could not be written"),
            Member("record.reason", "string", "why"),
            Member("record.cut_bytes", "integer", "the minimum number of bytes that were cut off", optional=True),
        ),
    ),
    EventType(
        evidence.CHECKPOINT,
        "A signature, made with the key, of every line up to here.",
        (
            Member("checkpoint.algorithm", "string", f"`{evidence.ALGORITHM}`"),
            Member("checkpoint.key_id", "string", "a name for the key that does not reveal it"),
            Member("checkpoint.covers", "string", "the chain of the line before"),
            Member("checkpoint.closing", "boolean", "the writer closed the record here"),
            Member("checkpoint.signature", "string", "HMAC over the two members above"),
        ),
    ),
)  # fmt: skip
"""All event types."""

FREE_FORM: Final = frozenset({"workload", "run.meta", "list.entries", "server", "policy"})
"""Members whose own members are not part of the contract."""
