"""Prometheus metrics, computed from recorded events.

The governor passes each record to ``observe``; no other code updates a metric that is based on
records. A peer cannot choose label values freely: names beyond a limit and unknown methods
become ``__other__``, and arguments are never labels.

A call updates about fifteen metrics, which would delay it. So equal calls are first counted
together, and these counts are added to the metrics when somebody scrapes them. The Prometheus
client, which only renders the metrics, is loaded only then, because it would delay the start of
every gate.
"""

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

from thoughtgate.core import record_events as events
from thoughtgate.core.record_events import Record
from thoughtgate.core.run_summary import STARTER, run_profile
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION
from thoughtgate.telemetry.metric_table import METRICS, STDIO, TOOL_ERROR, Metric
from thoughtgate.version import __version__
from thoughtgate.wire import methods

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric as Family

OTHER: Final = "__other__"
"""The label value that replaces all values beyond the limit."""

CAPS: Final = {"tool_name": 200, "server_id": 50, "target": 50, "policy_id": 200, "channel": 20}
"""Maximum distinct values of labels that peers influence; all other labels have fixed values."""

MAX_TRACKED: Final = 10_000
"""Maximum number of open calls that are remembered; the oldest are dropped."""

MAX_PENDING_COUNTS: Final = 1000
"""Maximum number of distinct event kinds counted before they are added to the metrics."""

KNOWN_METHODS: Final = frozenset({
    *methods.GATED, *methods.LISTINGS, *methods.PASSED, *methods.TASK_METHODS, methods.LISTEN,
    methods.COMPLETE, "server/discover", "logging/setLevel", "notifications/message",
    "roots/list", "sampling/createMessage", "elicitation/create",
})  # fmt: skip

_UP: Final = frozenset({events.SERVER_STARTED, events.SERVER_RECOVERED})

_STATES: Final = ("starting", "running", "exited", "signalled", "failed_to_start")
_RESULTS: Final = {"withdrawn": "client_disconnected"}
_UPSTREAM: Final = {events.OK: "success", events.TIMEOUT: "timeout"}


class _Held:
    """A call that waits, or waited, for an approval."""

    __slots__ = ("asked_at", "channel", "decided_at", "method")

    def __init__(self, method: str, at: float, channel: str) -> None:
        self.method = method
        self.asked_at = at
        self.decided_at = at
        self.channel = channel


class Metrics:
    """The metrics of one process."""

    def __init__(self, transport: str = STDIO) -> None:
        self._stdio = transport == STDIO
        self._profile = PRODUCTION
        """The profile, from the event that started the run."""
        self._numbers: dict[tuple[str, ...], float] = {}
        """Counters and gauges by name and labels; plain numbers, for speed."""
        self._spreads: dict[tuple[str, ...], list[float]] = {}
        """Histograms by name and labels: one count per bucket, the count above, and the sum."""
        self._began = time.monotonic()
        self._seen: dict[str, set[str]] = {label: set() for label in CAPS}
        self._tools = self._seen["tool_name"]
        # Counts that are not yet added to the metrics.
        self._events: Counter[str] = Counter()
        """Events by type."""
        self._starts: Counter[tuple[str, str, int]] = Counter()
        """Started calls, by server, method and size."""
        self._verdicts: Counter[tuple[str, str, str, str, bool]] = Counter()
        """Verdicts, by server, gate, action, Cedar policy, and whether they were enforced."""
        self._answers: Counter[tuple[str, str, str, int, int]] = Counter()
        """Ended calls without an approval, by server, method, tool, milliseconds and size."""
        self._calls: dict[str, str | _Held] = {}
        """Open calls: the method, or a ``_Held`` if an approval was requested."""
        self._states: dict[str, str] = {}
        self._observers = {
            events.RUN_START: self._run_started,
            events.CALL_START: self._started,
            events.CALL_DECISION: self._decided,
            events.CALL_END: self._ended,
            events.APPROVAL_REQUESTED: self._asked,
            events.APPROVAL_DECIDED: self._answered,
            events.CONTENT_FOUND: self._content,
            events.MESSAGE: self._message,
            events.FRAME_REFUSED: self._refused,
            events.TOOLS_LIST: self._listed,
            events.SERVER_STARTED: self._server,
            events.SERVER_EXITED: self._server,
            events.SERVER_UNREACHABLE: self._server,
            events.SERVER_RECOVERED: self._server,
            events.AGENT_CONNECTED: self._connected,
            events.AGENT_AUTH_REJECTED: self._rejected,
            events.POLICY_CHANGED: self._policy_changed,
        }
        self._first = frozenset(
            metric.name
            for metric in METRICS
            if not metric.late and (self._stdio or not metric.stdio)
        )
        """Metrics that exist before anything is counted."""
        for metric in METRICS:
            if metric.name in self._first:
                self._begin(metric)
        self.set("thoughtgate_build_info", 1, __version__)

    @cached_property
    def registry(self) -> "CollectorRegistry":
        """The registry that renders these metrics."""
        from thoughtgate.telemetry.merging import registry_of  # loads the Prometheus client

        return registry_of(self.families)

    def observe(self, record: Record) -> None:
        """Count an event of the record."""
        kind = record.type
        self._events[kind] += 1
        observer = self._observers.get(kind)
        if observer is not None:
            observer(record)

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        from prometheus_client import generate_latest  # see the module's docstring

        return generate_latest(self.registry)

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Add to a counter or a gauge."""
        key = (name, *labels)
        numbers = self._numbers
        numbers[key] = numbers.get(key, 0.0) + amount

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._numbers[(name, *labels)] = value

    def take(self, name: str, value: float, *labels: str, times: int = 1) -> None:
        """Add a value to a histogram."""
        key = (name, *labels)
        spread = self._spreads.get(key)
        if spread is None:
            spread = self._spreads[key] = _empty(_BY_NAME[name])
        spread[bisect_left(_BY_NAME[name].buckets, value)] += times
        spread[-1] += value * times

    def families(self) -> "Iterator[Family]":
        """Yield all metric families, including those that have no samples yet."""
        from prometheus_client.core import (  # see the module's docstring
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        def empty(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            return kind(metric.name, metric.help, labels=metric.labels)

        self._add_counts()
        self.set("thoughtgate_uptime_seconds", time.monotonic() - self._began)
        self.set("thoughtgate_calls_in_flight", len(self._calls))
        # Copied, because calls go on counting in another thread during a scrape.
        numbers, spreads = list(self._numbers.items()), list(self._spreads.items())
        names = self._first | {key[0] for key, _ in (*numbers, *spreads)}
        shown = [metric for metric in METRICS if metric.name in names]
        plain = {one.name: empty(one) for one in shown if one.kind != "histogram"}
        for (name, *labels), value in numbers:
            plain[name].add_metric(labels, value)
        wide = {
            one.name: HistogramMetricFamily(one.name, one.help, labels=one.labels)
            for one in shown
            if one.kind == "histogram"
        }
        for (name, *labels), spread in spreads:
            wide[name].add_metric(labels, _buckets(_BY_NAME[name], spread), spread[-1])
        yield from plain.values()
        yield from wide.values()

    def bounded(self, label: str, value: str) -> str:
        """Return a label's value, or ``__other__`` if the label already has too many."""
        if label == "method":
            return value if value in KNOWN_METHODS else OTHER
        seen = self._seen[label]
        if value in seen:
            return value
        if len(seen) >= CAPS[label]:
            return OTHER
        seen.add(value)
        return value

    def _begin(self, metric: Metric) -> None:
        """Set a metric to zero for the labels that are known from the start."""
        for label in metric.values:
            self._numbers[metric.name, label] = 0.0
        if metric.labels:
            return
        if metric.kind == "histogram":
            self._spreads[metric.name,] = _empty(metric)
        else:
            self._numbers[metric.name,] = 0.0

    # Counting now, and adding to the metrics later.

    def _add_counts(self) -> None:
        for kind, times in self._events.items():
            self.add("thoughtgate_record_events_total", times, kind)
        for (server, method, size), times in self._starts.items():
            name = "thoughtgate_request_payload_size_bytes"
            self.take(name, size, "inbound", method, times=times)
            self._pass(server, events.AGENT_TO_SERVER, method, times)
        for (server, gate, action, policy, enforced), times in self._verdicts.items():
            self._decide(gate, action, policy, times)
            self._govern(server, action, enforced=enforced, times=times)
        for (server, method, tool, latency_ms, size), times in self._answers.items():
            self._end(method, tool, "success", latency_ms, size, times)
            self._forward(server, "success", latency_ms / 1000, times)
            self._pass(server, events.SERVER_TO_AGENT, method, times)
        for counts in (self._events, self._starts, self._verdicts, self._answers):
            counts.clear()

    def _decide(self, gate: str, action: str, policy: str, times: int) -> None:
        """Count a verdict on a call."""
        outcome = _OUTCOMES.get(action, OTHER)
        self.add("thoughtgate_decisions_total", times, gate, outcome)
        if gate == "rules":
            self.add("thoughtgate_rule_matches_total", times, outcome)
        if gate == "cedar":
            word = "deny" if action == "BLOCK" else "allow"
            policy = self.bounded("policy_id", policy)
            self.add("thoughtgate_cedar_evaluations_total", times, word, policy)

    def _govern(self, server: str, action: str, *, enforced: bool, times: int) -> None:
        """Count a verdict on a call through a shim."""
        if self._stdio:
            server, outcome = self.bounded("server_id", server), _OUTCOMES.get(action, OTHER)
            # An allowed call is forwarded in both profiles; other verdicts are enforced in one.
            enforcing = self._profile if action == "ALLOW" else PRODUCTION
            profile = enforcing if enforced else DEVELOPMENT
            name = "thoughtgate_stdio_governance_decisions_total"
            self.add(name, times, server, outcome, profile)

    def _pass(self, server: str, direction: str, method: str, times: int) -> None:
        """Count a message through a shim."""
        if self._stdio:
            server = self.bounded("server_id", server)
            self.add("thoughtgate_stdio_messages_total", times, server, direction, method)

    def _end(  # noqa: PLR0917 - one call, told in the order of its labels
        self, method: str, tool: str, status: str, latency_ms: int, size: int, times: int
    ) -> None:
        """Count an ended call; ``status`` is success, error or refused."""
        plain = "success" if status == "success" else "error"
        self.add("mcp_requests_total", times, method, plain)
        self.take("mcp_request_duration_seconds", latency_ms / 1000, method, times=times)
        self.add("thoughtgate_requests_total", times, method, tool, status)
        self.take("thoughtgate_request_duration_ms", latency_ms, method, tool, times=times)
        name = "thoughtgate_request_payload_size_bytes"
        self.take(name, size, "outbound", method, times=times)

    def _forward(self, server: str, status: str, spent_s: float, times: int) -> None:
        """Count an ended call that was forwarded to a server."""
        target = self.bounded("target", server)
        self.add("mcp_upstream_requests_total", times, status)
        self.take("mcp_upstream_duration_seconds", spent_s, times=times)
        self.add("thoughtgate_upstream_requests_total", times, target, status)
        self.take("thoughtgate_upstream_duration_ms", spent_s * 1000, target, times=times)

    # Calls.

    def _started(self, record: Record) -> None:
        call = record.body["call"]
        method = call["method"]
        if method not in KNOWN_METHODS:
            method = OTHER
        self._calls[call["call_id"]] = method
        if len(self._calls) > MAX_TRACKED:
            del self._calls[next(iter(self._calls))]
        self._starts[record.server, method, call["bytes_in"]] += 1
        if len(self._starts) > MAX_PENDING_COUNTS:
            self._add_counts()

    def _decided(self, record: Record) -> None:
        decision = record.body["decision"]
        gate = decision["gate"]
        policy = (decision["rule_id"] or "") if gate == "cedar" else ""
        kind = (record.server, gate, decision["action"], policy, decision["enforced"])
        self._verdicts[kind] += 1

    def _ended(self, record: Record) -> None:
        body = record.body
        call = body["call"]
        tracked = self._calls.pop(call["call_id"], None)
        tool = call["tool_name"]
        if tool not in self._tools:
            tool = self.bounded("tool_name", tool)
        answered = body["status"] == events.OK and not ("error" in body or "is_error" in body)
        # The usual case is only counted; ``_add_counts`` updates the metrics later.
        if answered and type(tracked) is str:
            kind = (record.server, tracked, tool, body["latency_ms"], body["bytes_out"])
            self._answers[kind] += 1
            if len(self._answers) > MAX_PENDING_COUNTS:
                self._add_counts()
        else:
            self._ended_otherwise(record, tracked, tool)

    def _ended_otherwise(self, record: Record, tracked: str | _Held | None, tool: str) -> None:
        """Count an ended call that failed, was refused or held, or started before this process."""
        body = record.body
        method = tracked.method if isinstance(tracked, _Held) else tracked or OTHER
        error = body.get("error") or {}
        says_error = body.get("is_error") is True
        failed = body["status"] != events.OK or says_error
        refused = error.get("class") == "policy_block"
        status = "refused" if refused else "error" if failed else "success"
        self._end(method, tool, status, body["latency_ms"], body["bytes_out"], 1)
        if failed:
            kind = error.get("kind") or error.get("class")
            kind = kind or (TOOL_ERROR if says_error else body["status"].lower())
            self.add("thoughtgate_errors_total", 1, kind, method)
        if not refused:
            spent_s = body["latency_ms"] / 1000
            if isinstance(tracked, _Held):
                spent_s = max(0.0, record.at - tracked.decided_at)
            told = "error" if says_error else _UPSTREAM.get(body["status"], "error")
            self._forward(record.server, told, spent_s, 1)
        self._pass(record.server, events.SERVER_TO_AGENT, method, 1)

    # Approvals.

    def _content(self, record: Record) -> None:
        content = record.body["content"]
        direction = content["direction"]
        for found in content["findings"]:
            # Ids of checks and tiers come from our own code, so there are few of them.
            name = "thoughtgate_content_findings_total"
            self.add(name, 1, found["check"], found["tier"], direction)
        action = content["action"] if content["enforced"] else content["outcome"].lower()
        self.add("thoughtgate_content_treatments_total", 1, action, direction)

    def _asked(self, record: Record) -> None:
        call_id = record.body["call"]["call_id"]
        method = self._calls.get(call_id)
        if type(method) is str:
            channel = record.body["approval"].get("channel", "")
            self._calls[call_id] = _Held(method, record.at, channel)
            self.add("thoughtgate_approvals_pending", 1)

    def _answered(self, record: Record) -> None:
        approval = record.body["approval"]
        outcome = approval["outcome"]
        tracked = self._calls.get(record.body["call"]["call_id"])
        asked_on = tracked.channel if isinstance(tracked, _Held) else ""
        # If nobody decided, the request counts for the channel that showed it.
        channel = self.bounded("channel", approval["channel"] or asked_on or "none")
        result = _RESULTS.get(outcome, outcome)
        self.add("thoughtgate_blocking_approval_total", 1, result)
        self.add("thoughtgate_approval_requests_total", 1, channel, outcome)
        gone = outcome == "withdrawn" or approval.get("kind") == "approval_withdrawn"
        if self._stdio and gone:
            # The HTTP front itself checks whether the caller is still connected, and counts it.
            self.add("thoughtgate_zombie_execution_prevented_total", 1)
        if not isinstance(tracked, _Held):
            return
        waited = max(0.0, record.at - tracked.asked_at)
        tracked.decided_at = record.at
        self.add("thoughtgate_approvals_pending", -1)
        self.take("thoughtgate_blocking_approval_duration_seconds", waited)
        self.take("thoughtgate_approval_wait_duration_s", waited, channel, outcome)
        if self._stdio:
            server = self.bounded("server_id", record.server)
            self.take("thoughtgate_stdio_approval_latency_seconds", waited, server)

    # The rest of the traffic.

    def _message(self, record: Record) -> None:
        said = record.body["message"]
        method, times = self.bounded("method", said["method"]), said.get("repeated", 1)
        if said["shape"] == "response" and said["direction"] == events.SERVER_TO_AGENT:
            self.add("mcp_requests_total", times, method, "success")
        self._pass(record.server, said["direction"], method, times)

    def _listed(self, record: Record) -> None:
        said = record.body["list"]
        method, times = self.bounded("method", said["method"]), said.get("repeated", 1)
        self.add("mcp_requests_total", times, method, "success")
        self._pass(record.server, events.SERVER_TO_AGENT, method, times)

    def _refused(self, record: Record) -> None:
        frame = record.body["frame"]
        times, check = frame.get("repeated", 1), frame["check"]
        self.add("thoughtgate_frames_refused_total", times, frame["direction"], check)
        if self._stdio:
            server = self.bounded("server_id", record.server)
            self.add("thoughtgate_stdio_framing_errors_total", times, server, check)

    def _server(self, record: Record) -> None:
        if not self._stdio:
            return
        server = self.bounded("server_id", record.server)
        said = (record.body.get("server") or {}).get("state", "exited")
        # A server that answers wrongly still runs.
        is_up = record.type in _UP or said == "degraded"
        state = "running" if is_up else said if said in _STATES else "exited"
        self._states[server] = state
        for one in _STATES:
            self.set("thoughtgate_stdio_server_state", int(one == state), server, one)
        active = sum(one == "running" for one in self._states.values())
        self.set("thoughtgate_stdio_active_servers", active)

    def _connected(self, record: Record) -> None:
        agent = record.body.get("agent") or {}
        method, times = agent.get("method", "none"), agent.get("repeated", 1)
        self.add("thoughtgate_agent_connections_total", times, method, "accepted")

    def _rejected(self, record: Record) -> None:
        agent = record.body.get("agent") or {}
        method, times = agent.get("method", "none"), agent.get("repeated", 1)
        self.add("thoughtgate_agent_connections_total", times, method, "rejected")

    def _run_started(self, record: Record) -> None:
        self._profile = run_profile(record)
        if record.body["run"]["policy"]["policy_id"] != STARTER:
            self.add("thoughtgate_config_load_total", 1, "success")

    def _policy_changed(self, record: Record) -> None:
        outcome = (record.body.get("policy") or {}).get("outcome")
        if outcome in _LOADS:
            self.add("thoughtgate_config_load_total", 1, _LOADS[outcome])


def _empty(metric: Metric) -> list[float]:
    return [0.0] * (len(metric.buckets) + 2)


def _buckets(metric: Metric, spread: list[float]) -> list[tuple[str, float]]:
    """Return the upper bound of each bucket with the number of values up to it."""
    found, total = [], 0.0
    for end, count in zip((*metric.buckets, math.inf), spread, strict=False):
        total += count
        found.append(("+Inf" if end == math.inf else str(float(end)), total))
    return found


_OUTCOMES: Final = {"ALLOW": "forward", "HOLD": "approve", "BLOCK": "deny", "THROTTLE": "throttle"}
_LOADS: Final = {
    "applied": "success",
    "accepted": "success",
    "needs_restart": "success",
    "invalid": "error",
}
"""Outcomes of a changed config that count as a load; one that waits for a person does not yet."""
_BY_NAME: Final = {metric.name: metric for metric in METRICS}
