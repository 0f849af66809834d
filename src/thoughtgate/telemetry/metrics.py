"""What the gate counts, for Prometheus: every metric by name, and how records feed them.

Whoever governs hands each record to ``observe``; nothing else needs to know a metric. A
label never holds what a peer may choose freely: names beyond a cap become ``__other__``,
methods that are not MCP's too, and arguments are never labels.
"""

import math
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)
from prometheus_client.registry import Collector

from thoughtgate import __version__
from thoughtgate.core import record as events
from thoughtgate.core.record import Record
from thoughtgate.telemetry.metric_table import METRICS, STDIO, Metric
from thoughtgate.wire import methods

OTHER: Final = "__other__"
"""What a label says of every value beyond its cap."""

CAPS: Final = {"tool_name": 200, "server_id": 50, "target": 50, "policy_id": 200, "channel": 20}
"""Distinct values a label takes; every other label has values of our own choice."""

MAX_TRACKED: Final = 10_000
"""Calls between their start and their end that are remembered; the oldest are forgotten."""

KNOWN_METHODS: Final = frozenset(
    {
        *methods.GATED,
        *methods.LISTINGS,
        *methods.PASSED,
        *methods.TASK_METHODS,
        methods.LISTEN,
        methods.COMPLETE,
        "server/discover",
        "logging/setLevel",
        "notifications/message",
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
    }
)

_STATES: Final = ("starting", "running", "exited", "signalled", "failed_to_start")
_RESULTS: Final = {"withdrawn": "client_disconnected"}
_UPSTREAM: Final = {events.OK: "success", events.TIMEOUT: "timeout"}


class _Tracked:
    """What is remembered of a call until it ends."""

    __slots__ = ("asked_at", "channel", "decided_at", "held", "method", "size")

    def __init__(self, method: str, size: int, at: float) -> None:
        self.method = method
        self.size = size
        self.decided_at = at
        self.asked_at = 0.0
        self.channel = ""
        self.held = False


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self, transport: str = STDIO) -> None:
        self.registry = CollectorRegistry()
        self._stdio = transport == STDIO
        self._numbers: dict[tuple[str, ...], float] = {}
        """Counters and gauges by name and labels: plain numbers, because calls wait for them."""
        self._spreads: dict[tuple[str, ...], list[float]] = {}
        """Histograms by name and labels: a count for each bucket, the last for all above, the sum."""
        self._began = time.monotonic()
        self._seen: dict[str, set[str]] = {label: set() for label in CAPS}
        self._calls: OrderedDict[str, _Tracked] = OrderedDict()
        self._states: dict[str, str] = {}
        self._observers = {
            events.CALL_START: self._started,
            events.CALL_DECISION: self._decided,
            events.CALL_END: self._ended,
            events.APPROVAL_REQUESTED: self._asked,
            events.APPROVAL_DECIDED: self._answered,
            events.MESSAGE: self._message,
            events.FRAME_REFUSED: self._refused,
            events.TOOLS_LIST: self._listed,
            events.SERVER_STARTED: self._server,
            events.SERVER_EXITED: self._server,
            events.AGENT_CONNECTED: self._connected,
            events.AGENT_AUTH_REJECTED: self._rejected,
            events.POLICY_CHANGED: self._policy_changed,
        }
        for metric in METRICS:
            if metric.labels or metric.late or (metric.stdio and not self._stdio):
                continue
            if metric.kind == "histogram":
                self._spreads[metric.name,] = _empty(metric)
            else:
                self._numbers[metric.name,] = 0.0
        self.set("thoughtgate_build_info", 1, __version__)
        self.registry.register(_Scrape(self))

    def observe(self, record: Record) -> None:
        """Count an event of the record."""
        self.add("thoughtgate_record_events_total", 1, record.type)
        observer = self._observers.get(record.type)
        if observer is not None:
            observer(record)

    def render(self) -> bytes:
        """Return everything in the text format of Prometheus."""
        return generate_latest(self.registry)

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Add to a counter or a gauge."""
        key = (name, *labels)
        numbers = self._numbers
        numbers[key] = numbers.get(key, 0.0) + amount

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._numbers[(name, *labels)] = value

    def take(self, name: str, value: float, *labels: str) -> None:
        """Put a value into a histogram."""
        key = (name, *labels)
        spread = self._spreads.get(key)
        if spread is None:
            spread = self._spreads[key] = _empty(_BY_NAME[name])
        spread[bisect_left(_BY_NAME[name].buckets, value)] += 1
        spread[-1] += value

    def families(self) -> Iterator[Family]:
        """Give everything counted so far, as Prometheus groups it."""
        self.set("thoughtgate_uptime_seconds", time.monotonic() - self._began)
        made: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for (name, *labels), value in list(self._numbers.items()):
            metric = _BY_NAME[name]
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            if name not in made:
                made[name] = kind(name, metric.help, labels=metric.labels)
            made[name].add_metric(labels, value)
        spreads: dict[str, HistogramMetricFamily] = {}
        for (name, *labels), spread in list(self._spreads.items()):
            metric = _BY_NAME[name]
            if name not in spreads:
                spreads[name] = HistogramMetricFamily(name, metric.help, labels=metric.labels)
            spreads[name].add_metric(labels, _buckets(metric, spread), spread[-1])
        yield from made.values()
        yield from spreads.values()

    def bounded(self, label: str, value: str) -> str:
        """Return a label's value, or ``__other__`` when it already has as many as it may."""
        if label == "method":
            return value if value in KNOWN_METHODS else OTHER
        seen = self._seen[label]
        if value in seen:
            return value
        if len(seen) >= CAPS[label]:
            return OTHER
        seen.add(value)
        return value

    # Calls.

    def _started(self, record: Record) -> None:
        call = record.body["call"]
        method = self.bounded("method", call["method"])
        self._calls[call["call_id"]] = _Tracked(method, call["bytes_in"], record.at)
        if len(self._calls) > MAX_TRACKED:
            self._calls.popitem(last=False)
        self.set("thoughtgate_calls_in_flight", len(self._calls))
        self.take("thoughtgate_request_payload_size_bytes", call["bytes_in"], "inbound", method)
        if self._stdio:
            server = self.bounded("server_id", record.server)
            self.add("thoughtgate_stdio_messages_total", 1, server, events.AGENT_TO_SERVER, method)

    def _decided(self, record: Record) -> None:
        decision = record.body["decision"]
        outcome = _OUTCOMES.get(decision["action"], OTHER)
        self.add("thoughtgate_decisions_total", 1, decision["gate"], outcome)
        if decision["gate"] == "rules":
            self.add("thoughtgate_rule_matches_total", 1, outcome)
        if decision["gate"] == "cedar":
            policy = self.bounded("policy_id", decision["rule_id"] or "")
            verdict = "deny" if decision["action"] == "BLOCK" else "allow"
            self.add("thoughtgate_cedar_evaluations_total", 1, verdict, policy)
        if self._stdio:
            server = self.bounded("server_id", record.server)
            profile = "production" if decision["enforced"] else "development"
            name = "thoughtgate_stdio_governance_decisions_total"
            self.add(name, 1, server, outcome, profile)

    def _ended(self, record: Record) -> None:
        body = record.body
        tracked = self._calls.pop(body["call"]["call_id"], None)
        self.set("thoughtgate_calls_in_flight", len(self._calls))
        method = tracked.method if tracked is not None else OTHER
        tool = self.bounded("tool_name", body["call"]["tool_name"])
        error = body.get("error") or {}
        failed = body["status"] != events.OK
        refused = error.get("class") == "policy_block"
        status = "error" if failed else "success"
        latency_s = body["latency_ms"] / 1000
        self.add("mcp_requests_total", 1, method, status)
        self.take("mcp_request_duration_seconds", latency_s, method)
        self.add("thoughtgate_requests_total", 1, method, tool, "refused" if refused else status)
        self.take("thoughtgate_request_duration_ms", body["latency_ms"], method, tool)
        self.take("thoughtgate_request_payload_size_bytes", body["bytes_out"], "outbound", method)
        if failed:
            kind = error.get("kind") or error.get("class") or body["status"].lower()
            self.add("thoughtgate_errors_total", 1, kind, method)
        if not refused:
            self._upstream(record, tracked, latency_s)
        if self._stdio:
            server = self.bounded("server_id", record.server)
            self.add("thoughtgate_stdio_messages_total", 1, server, events.SERVER_TO_AGENT, method)

    def _upstream(self, record: Record, tracked: _Tracked | None, latency_s: float) -> None:
        status = _UPSTREAM.get(record.body["status"], "error")
        target = self.bounded("target", record.server)
        held = tracked is not None and tracked.held
        spent = max(0.0, record.at - tracked.decided_at) if held and tracked else latency_s
        self.add("mcp_upstream_requests_total", 1, status)
        self.take("mcp_upstream_duration_seconds", spent)
        self.add("thoughtgate_upstream_requests_total", 1, target, status)
        self.take("thoughtgate_upstream_duration_ms", spent * 1000, target)

    # People.

    def _asked(self, record: Record) -> None:
        tracked = self._calls.get(record.body["call"]["call_id"])
        if tracked is not None and not tracked.held:
            tracked.held = True
            tracked.asked_at = record.at
            tracked.channel = record.body["approval"].get("channel", "")
            self.add("thoughtgate_approvals_pending", 1)

    def _answered(self, record: Record) -> None:
        approval = record.body["approval"]
        outcome = approval["outcome"]
        tracked = self._calls.get(record.body["call"]["call_id"])
        asked_on = tracked.channel if tracked is not None else ""
        # Nobody decided: the channel that the question was put on is the one that stayed silent.
        channel = self.bounded("channel", approval["channel"] or asked_on or "none")
        result = _RESULTS.get(outcome, outcome)
        self.add("thoughtgate_blocking_approval_total", 1, result)
        self.add("thoughtgate_approval_requests_total", 1, channel, outcome)
        gone = outcome == "withdrawn" or approval.get("kind") == "approval_withdrawn"
        if self._stdio and gone:
            # The HTTP gateway has its own liveness check and counts there.
            self.add("thoughtgate_zombie_execution_prevented_total", 1)
        if tracked is None or not tracked.held:
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
        method = self.bounded("method", said["method"])
        if said["shape"] == "response" and said["direction"] == events.SERVER_TO_AGENT:
            self.add("mcp_requests_total", 1, method, "success")
        if self._stdio:
            server = self.bounded("server_id", record.server)
            self.add("thoughtgate_stdio_messages_total", 1, server, said["direction"], method)

    def _listed(self, record: Record) -> None:
        method = self.bounded("method", record.body["list"]["method"])
        self.add("mcp_requests_total", 1, method, "success")
        if self._stdio:
            server = self.bounded("server_id", record.server)
            self.add("thoughtgate_stdio_messages_total", 1, server, events.SERVER_TO_AGENT, method)

    def _refused(self, record: Record) -> None:
        frame = record.body["frame"]
        self.add("thoughtgate_frames_refused_total", 1, frame["direction"], frame["check"])
        if self._stdio:
            server = self.bounded("server_id", record.server)
            self.add("thoughtgate_stdio_framing_errors_total", 1, server, frame["check"])

    def _server(self, record: Record) -> None:
        if not self._stdio:
            return
        server = self.bounded("server_id", record.server)
        started = record.type == events.SERVER_STARTED
        said = (record.body.get("server") or {}).get("state", "exited")
        state = "running" if started else said if said in _STATES else "exited"
        self._states[server] = state
        for one in _STATES:
            self.set("thoughtgate_stdio_server_state", int(one == state), server, one)
        active = sum(one == "running" for one in self._states.values())
        self.set("thoughtgate_stdio_active_servers", active)

    def _connected(self, record: Record) -> None:
        method = (record.body.get("agent") or {}).get("method", "none")
        self.add("thoughtgate_agent_connections_total", 1, method, "accepted")

    def _rejected(self, record: Record) -> None:
        method = (record.body.get("agent") or {}).get("method", "none")
        self.add("thoughtgate_agent_connections_total", 1, method, "rejected")

    def _policy_changed(self, record: Record) -> None:
        loaded = (record.body.get("policy") or {}).get("loaded", True)
        self.add("thoughtgate_config_load_total", 1, "success" if loaded else "error")


class _Scrape(Collector):
    """What the registry asks when somebody scrapes."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Family]:
        """Give everything counted so far."""
        return self._metrics.families()


def _empty(metric: Metric) -> list[float]:
    return [0.0] * (len(metric.buckets) + 2)


def _buckets(metric: Metric, spread: list[float]) -> list[tuple[str, float]]:
    """Return each bucket's upper end with how many values lie below it."""
    found, total = [], 0.0
    for end, count in zip((*metric.buckets, math.inf), spread, strict=False):
        total += count
        found.append(("+Inf" if end == math.inf else str(float(end)), total))
    return found


_OUTCOMES: Final = {"ALLOW": "forward", "HOLD": "approve", "BLOCK": "deny", "THROTTLE": "throttle"}
_BY_NAME: Final = {metric.name: metric for metric in METRICS}
