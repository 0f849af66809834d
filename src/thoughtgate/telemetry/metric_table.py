"""The table of all metrics, from which the reference page is generated."""

from typing import Final, NamedTuple

STDIO: Final = "stdio"
HTTP: Final = "http"

TOOL_ERROR: Final = "tool_error"
"""The kind of error of a call whose result says ``isError``."""

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_MILLISECONDS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 10_000)
_WAITS: Final = (1, 5, 10, 30, 60, 300, 900, 1800, 3600)
_SIZES: Final = (128, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576)
_BATCHES: Final = (1, 2, 5, 10, 25, 50, 100)


class Metric(NamedTuple):
    """One metric."""

    name: str
    kind: str
    """``counter``, ``gauge`` or ``histogram``."""
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    late: bool = False
    """Exported only after its first use, because some transports never use it."""
    values: tuple[str, ...] = ()
    """All values of its only label, if they are few; each is exported from the start."""

    @property
    def stdio(self) -> bool:
        """Whether it is exported only if the agent side is stdio."""
        return self.name.startswith("thoughtgate_stdio_")


METRICS: Final = (
    # Required of a gate with the agent on stdio.
    Metric("thoughtgate_stdio_messages_total", "counter", "Messages forwarded by shims.", ("server_id", "direction", "method")),
    Metric("thoughtgate_stdio_governance_decisions_total", "counter", "Verdicts on calls through shims.", ("server_id", "decision", "profile")),
    Metric("thoughtgate_stdio_framing_errors_total", "counter", "Frames refused by shims.", ("server_id", "error_type")),
    Metric("thoughtgate_stdio_server_state", "gauge", "1 for the current state of a server.", ("server_id", "state")),
    Metric("thoughtgate_stdio_approval_latency_seconds", "histogram", "Time from an approval request to its decision.", ("server_id",), _WAITS),
    Metric("thoughtgate_stdio_active_servers", "gauge", "Servers running behind shims."),
    # Required of a gate with the agent on HTTP.
    Metric("mcp_requests_total", "counter", "Requests answered; a refusal counts as an error.", ("method", "status")),
    Metric("mcp_request_duration_seconds", "histogram", "Time from request to answer, including the time held.", ("method",), _SECONDS),
    Metric("mcp_upstream_requests_total", "counter", "Calls forwarded, by result.", ("status",), values=("success", "error", "timeout")),
    Metric("mcp_upstream_duration_seconds", "histogram", "Time from forwarding to answer.", (), _SECONDS),
    Metric("mcp_connections_active", "gauge", "Agent connections open now.", late=True),
    Metric("mcp_batch_size_histogram", "histogram", "Messages in a batch.", (), _BATCHES, late=True),
    Metric("thoughtgate_blocking_approval_total", "counter", "Held calls, by outcome.", ("result",), values=("approved", "rejected", "timeout", "client_disconnected")),
    Metric("thoughtgate_blocking_approval_duration_seconds", "histogram", "Time from an approval request to its decision.", (), _WAITS),
    Metric("thoughtgate_zombie_execution_prevented_total", "counter", "Held calls not made because the caller had disconnected.", late=True),
    # Of both.
    Metric("thoughtgate_requests_total", "counter", "Calls ended: success, error or refused.", ("method", "tool_name", "status")),
    Metric("thoughtgate_decisions_total", "counter", "Verdicts, by the gate that decided.", ("gate", "outcome")),
    Metric("thoughtgate_rule_matches_total", "counter", "Verdicts of rules.", ("action",), values=("forward", "approve", "deny", "throttle")),
    Metric("thoughtgate_cedar_evaluations_total", "counter", "Verdicts of Cedar.", ("decision", "policy_id")),
    Metric("thoughtgate_errors_total", "counter", "Calls that failed or were refused.", ("error_type", "method")),
    Metric("thoughtgate_frames_refused_total", "counter", "Frames refused.", ("direction", "check")),
    Metric("thoughtgate_content_findings_total", "counter", "Findings of the content checks in arguments and results.", ("check", "tier", "direction"), late=True),
    Metric("thoughtgate_content_treatments_total", "counter", "Messages in which the content checks found something, by what happened to them.", ("action", "direction"), late=True),
    Metric("thoughtgate_approval_requests_total", "counter", "Approval requests, by outcome.", ("channel", "outcome")),
    Metric("thoughtgate_approvals_pending", "gauge", "Calls waiting for approval."),
    Metric("thoughtgate_approval_wait_duration_s", "histogram", "Time that calls waited for approval.", ("channel", "outcome"), _WAITS),
    Metric("thoughtgate_upstream_requests_total", "counter", "Calls forwarded, by server.", ("target", "status")),
    Metric("thoughtgate_upstream_duration_ms", "histogram", "Time that servers took to answer.", ("target",), _MILLISECONDS),
    Metric("thoughtgate_request_duration_ms", "histogram", "Time that calls took.", ("method", "tool_name"), _MILLISECONDS),
    Metric("thoughtgate_request_payload_size_bytes", "histogram", "Sizes of requests and answers.", ("direction", "method"), _SIZES),
    Metric("thoughtgate_degraded_parts", "gauge", "Parts that do not work now, such as a store that cannot be reached.", late=True),
    Metric("thoughtgate_calls_in_flight", "gauge", "Calls in progress."),
    Metric("thoughtgate_agent_connections_total", "counter", "Agents accepted or rejected.", ("method", "outcome")),
    Metric("thoughtgate_config_load_total", "counter", "Config files loaded or rejected.", ("status",), values=("success", "error")),
    Metric("thoughtgate_record_events_total", "counter", "Events written to the record.", ("type",)),
    Metric("thoughtgate_uptime_seconds", "gauge", "Time since the process started."),
    Metric("thoughtgate_build_info", "gauge", "Always 1; the version is a label.", ("version",)),
)  # fmt: skip
"""All metrics."""
