"""The record's contract: every event type and every member, as data.

``docs/reference/audit.md`` is printed from this, and tests hold real events against it.
A change here is a change of the contract: additions raise its minor version, anything
else the major one.
"""

from typing import Final, NamedTuple

from thoughtgate.core import evidence
from thoughtgate.core import record_events as record


class Member(NamedTuple):
    """One member of an event."""

    path: str
    """Dotted; ``[]`` marks the items of a list."""
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
    Member("run_id", "string", "the run: one life of a gate process, or what `THOUGHTGATE_RUN_ID` says"),
    Member("agent_id", "string", "the agent, as its environment names it, else `unknown`"),
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
    Member("server_name", "string", "the server's id; empty when the event belongs to none"),
    Member("chain", "string", "SHA-256 over the previous line's chain and this line up to here; always last"),
)  # fmt: skip
"""What every event has."""

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
    Member("calls_would_block", "integer", "forwarded by the development profile although a gate objected"),
    Member("errors_total", "integer", "refusals, upstream errors and time-outs"),
    Member("tool_errors", "integer", "results with `isError: true`; not counted as errors"),
    Member("approvals_requested", "integer", "people were asked"),
    Member("approvals_approved", "integer", "they said yes"),
    Member("approvals_rejected", "integer", "they said no"),
    Member("approvals_timeout", "integer", "nobody answered"),
    Member("approvals_withdrawn", "integer", "nobody waited for the answer any more"),
    Member("frames_refused", "integer", "frames that were not let through"),
    Member("messages", "integer", "messages passed on that no gate judges"),
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
            Member("run.meta", "object", "what the command wants known, free-form", optional=True),
        ),
    ),
    EventType(
        record.RUN_END,
        "A run ends; always its last event (a signed record has a closing `checkpoint` after it).",
        (
            Member("run.ended_at", "string", "as `ts`"),
            Member("run.status", "string", "`SUCCEEDED`, `FAILED`, `TERMINATED` or `CANCELLED`"),
            Member("run.reason", "string", "why, in words", optional=True),
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
            Member("call.preview.truncated", "boolean", "whether the preview is cut or left out"),
            Member("call.preview.args_preview", "string", "canonical arguments, secrets masked, at most `audit.preview` bytes", optional=True),
            Member("call.seq", "integer", "1, 2, 3… the calls of the run"),
        ),
    ),
    EventType(
        record.CALL_DECISION,
        "The gates have spoken; written before the call is forwarded.",
        (
            *_SHORT,
            Member("decision.action", "string", "`ALLOW`, `HOLD`, `BLOCK` or `THROTTLE`"),
            Member("decision.gate", "string", "who decided: `visibility`, `rules`, `cedar`, `limits`, `approval`, `default`, `internal`"),
            Member("decision.rule_id", "string or null", "the rule or policy"),
            Member("decision.severity", "string", "`info` or `warn`"),
            Member("decision.explain.summary", "string", "why, in words"),
            Member("decision.explain.reason_code", "string", "why, as a code"),
            *_under("decision.policy", _POLICY),
            Member("decision.enforced", "boolean", "false when the development profile forwarded it all the same"),
            Member("decision.workflow", "string", "who is asked", optional=True),
            Member("decision.outcome", "string", "`WOULD_BLOCK` when it was not enforced", optional=True),
            Member("decision.auto_approved", "boolean", "the development profile asked nobody", optional=True),
            Member("decision.backoff_ms", "integer", "when a limit may let it through", optional=True),
        ),
    ),
    EventType(
        record.APPROVAL_REQUESTED,
        "People were asked about a held call.",
        (
            *_SHORT,
            Member("approval.workflow", "string", "the workflow that asks"),
            Member("approval.rule_id", "string or null", "the rule that wants it"),
            Member("approval.approval_id", "string", "the question", optional=True),
            Member("approval.channel", "string", "where it was asked", optional=True),
            Member("approval.digest", "string", "digest of the exact call that is asked about", optional=True),
            Member("approval.required", "integer", "how many people must approve", optional=True),
            Member("approval.expires_at", "string", "until when", optional=True),
        ),
    ),
    EventType(
        record.APPROVAL_DECIDED,
        "A held call was approved, rejected, given up or withdrawn.",
        (
            *_SHORT,
            Member("approval.workflow", "string", "the workflow that asked"),
            Member("approval.outcome", "string", "`approved`, `rejected`, `timeout` or `withdrawn`"),
            Member("approval.decided_by", "string", "who decided; empty when nobody did"),
            Member("approval.channel", "string", "through what"),
            Member("approval.reason", "string", "in their words, secrets masked"),
            Member("approval.auto_approved", "boolean", "a remembered grant or a time-out decided"),
            Member("approval.executes", "boolean", "whether the call is made now"),
            Member("approval.kind", "string or null", "why not: the error kind the caller is told"),
            Member("approval.approval_id", "string", "the question, as in `approval_requested`", optional=True),
            Member("approval.votes", "list of object", "every answer that was given, whether or not it decided", optional=True),
            Member("approval.votes[].by", "string", "who, as `channel:name`", optional=True),
            Member("approval.votes[].channel", "string", "through what; `grant` and `system` are no persons", optional=True),
            Member("approval.votes[].approve", "boolean", "yes or no", optional=True),
            Member("approval.votes[].at", "string", "when, as `ts`", optional=True),
            Member("approval.votes[].reason", "string", "in their words, secrets masked; absent when they gave none", optional=True),
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
            Member("preview.truncated", "boolean", "true: the result is left out", optional=True),
            Member("is_error", "boolean", "the tool's result says `isError`", optional=True),
            Member("error.class", "string", "`upstream_error`, `policy_block`, `timeout`, `transport`, `unknown`", optional=True),
            Member("error.kind", "string", "the error kind the caller is told", optional=True),
            Member("error.code", "integer", "the upstream's JSON-RPC code", optional=True),
            Member("error.message", "string", "in words, without the upstream's own text", optional=True),
        ),
    ),
    EventType(
        record.TOOLS_LIST,
        "A list of tools, resources or prompts was filtered.",
        (
            Member("list.method", "string", "`tools/list`, `resources/list`, …"),
            Member("list.offered", "integer", "entries the server sent"),
            Member("list.returned", "integer", "entries the agent got"),
            Member("list.hidden", "list of string", "names that were, or would have been, left out"),
            Member("list.entries", "object", "what the server offered: each name with a digest of its entry", optional=True),
            Member("list.enforced", "boolean", "false when the development profile showed them"),
        ),
    ),
    EventType(
        record.MESSAGE,
        "A message was passed on that no gate judges.",
        (
            Member("message.direction", "string", "`agent_to_server` or `server_to_agent`"),
            Member("message.shape", "string", "`request`, `notification` or `response`"),
            Member("message.method", "string", "the method, or that of the request it answers"),
            Member("message.bytes", "integer", "its size"),
        ),
    ),
    EventType(
        record.FRAME_REFUSED,
        "A frame was refused: it cannot be read, or not in one way only.",
        (
            Member("frame.direction", "string", "`agent_to_server` or `server_to_agent`"),
            Member("frame.check", "string", "the check it failed"),
            Member("frame.kind", "string", "the error kind of the reply"),
            Member("frame.bytes", "integer", "its size"),
            Member("frame.method", "string", "its method, if it could be read", optional=True),
            Member("frame.correlation_id", "string", "stands in the reply too", optional=True),
            Member("frame.enforced", "boolean", "false when the development profile passed it on"),
            Member("frame.outcome", "string", "`WOULD_REJECT` or `WOULD_DROP` when it was not enforced", optional=True),
            Member("frame.repeated", "integer", "it stands for so many that were not written one by one, and tells of the last", optional=True),
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
        "An agent was turned away before any MCP was read.",
        (
            Member("agent.method", "string", "as above; `host` or `origin` for a request that was meant for somebody else, `console` for a page, or the channel of an answer"),
            Member("agent.reason", "string", "why, without the secret"),
            Member("agent.repeated", "integer", "it stands for so many that were not written one by one, and tells of the last", optional=True),
        ),
    ),
    EventType(
        record.SERVER_STARTED,
        "A server was started or reached.",
        (Member("server", "object", "facts such as `pid`", optional=True),),
    ),
    EventType(
        record.SERVER_EXITED,
        "A server ended, could not start, or is lost.",
        (Member("server", "object", "facts such as `state` and `exit_code`", optional=True),),
    ),
    EventType(
        record.POLICY_CHANGED,
        "Another policy applies from here on.",
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
        "What stands between this line and the last sealed one is not part of the record.",
        (
            Member("record.torn_bytes", "integer", "how much it is"),
            Member("record.torn_sha256", "string", "its digest"),
        ),
    ),
    EventType(
        evidence.RECORD_GAP,
        "Events could not be written, or were cut off the record's end, and are lost.",
        (
            Member("record.lost", "integer", "how many could not be written"),
            Member("record.reason", "string", "why"),
            Member("record.cut_bytes", "integer", "how much, at least, was cut off", optional=True),
        ),
    ),
    EventType(
        evidence.CHECKPOINT,
        "The holder of the key vouches for every line up to here.",
        (
            Member("checkpoint.algorithm", "string", f"`{evidence.ALGORITHM}`"),
            Member("checkpoint.key_id", "string", "a name for the key that does not tell it"),
            Member("checkpoint.covers", "string", "the chain of the line before"),
            Member("checkpoint.closing", "boolean", "the writer closed the record here"),
            Member("checkpoint.signature", "string", "HMAC over the two members above"),
        ),
    ),
)  # fmt: skip
"""Every type of event."""

FREE_FORM: Final = frozenset({"workload", "run.meta", "list.entries", "server", "policy"})
"""Members whose own members are not part of the contract."""
