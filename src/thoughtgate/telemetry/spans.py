"""Traces and logs over OTLP, created from recorded events; needs ``thoughtgate[otel]``.

A request has a span (``mcp.request``) with child spans for the server's work (``mcp.upstream``)
and for the wait for an approval (``thoughtgate.approval``), with the attributes of the MCP
semantic conventions. The SDK exports in its own thread and never delays a call: if its queue is
full, it drops data. Arguments and results are never exported.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from thoughtgate.core import record_events as events
from thoughtgate.core.record_events import Record
from thoughtgate.core.run_summary import POLICY_BLOCK
from thoughtgate.errors import UsageError
from thoughtgate.telemetry.metric_table import TOOL_ERROR
from thoughtgate.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Span

MAX_OPEN: Final = 10_000
"""Maximum number of open traces; beyond it, the oldest are closed."""

FLUSH_TIMEOUT_MS: Final = 3000
"""How long stopping waits for the collector."""

_NAMED: Final = {
    "tool": "gen_ai.tool.name",
    "resource": "mcp.resource.uri",
    "prompt": "gen_ai.prompt.name",
}
"""The semantic-convention attribute for the name of the tool, prompt or resource."""

_OPERATIONS: Final = {"tools/call": "execute_tool"}


class _Traced:
    """The spans of one call."""

    __slots__ = ("approval", "named", "request", "upstream")

    def __init__(self, request: "Span", named: str) -> None:
        self.request = request
        self.named = named
        """The attribute for the name of the tool, prompt or resource."""
        self.upstream: Span | None = None
        self.approval: Span | None = None

    def close(self, at: int) -> None:
        for span in (self.approval, self.upstream, self.request):
            if span is not None:
                span.end(at)


class Tracer:
    """Turns records into spans and OTLP log records."""

    def __init__(
        self,
        endpoint: str,
        *,
        headers: Mapping[str, str] | None = None,
        service_name: str = "thoughtgate",
        sample_rate: float = 1.0,
        resource: Mapping[str, str] | None = None,
    ) -> None:
        """Start exporting to a collector's base URL, such as ``http://127.0.0.1:4318``.

        Raises:
            UsageError: the extra is not installed.
        """
        try:
            from thoughtgate.telemetry.otlp import Exporter  # loads 20 MB, so only when needed
        except ImportError:
            raise UsageError(
                "telemetry.otlp needs the OpenTelemetry SDK: pip install 'thoughtgate[otel]'"
            ) from None
        facts = {"service.name": service_name, "service.version": __version__, **(resource or {})}
        self._otlp = Exporter(endpoint, dict(headers or {}), sample_rate, facts)
        self._open: OrderedDict[str, _Traced] = OrderedDict()
        self._observers = {
            events.CALL_START: self._started,
            events.CALL_DECISION: self._decided,
            events.APPROVAL_REQUESTED: self._asked,
            events.APPROVAL_DECIDED: self._answered,
            events.CALL_END: self._ended,
        }

    def observe(self, record: Record) -> None:
        """Update spans and logs from a recorded event."""
        observer = self._observers.get(record.type)
        if observer is not None:
            observer(record)
        elif record.type != events.MESSAGE:
            self._otlp.log(record.type, record.at, {"server_id": record.server})

    def outgoing(self, call_id: str) -> str:
        """Return the ``traceparent`` to send to the server with a call; empty for none."""
        traced = self._open.get(call_id)
        if traced is None or traced.upstream is None:
            return ""
        return self._otlp.carried(traced.upstream)

    def close(self) -> None:
        """Export the remaining data, within the time limit."""
        for traced in self._open.values():
            traced.close(self._otlp.now())
        self._open.clear()
        self._otlp.close(FLUSH_TIMEOUT_MS)

    def _started(self, record: Record) -> None:
        call = record.body["call"]
        attributes = {
            "method": call["method"],
            "correlation_id": call["call_id"],
            "task_augmented": call.get("task", False),
            "mcp.method.name": call["method"],
            "mcp.session.id": record.session,
            "gen_ai.operation.name": _OPERATIONS.get(call["method"], "mcp_request"),
            "network.transport": "pipe" if call["transport"] == "mcp_stdio" else "tcp",
            "thoughtgate.server": record.server,
            "thoughtgate.principal": call["principal"],
        }
        named = _NAMED.get(call["kind"], "gen_ai.tool.name")
        attributes[named] = call["tool_name"]
        parent = self._otlp.parent(call.get("traceparent"))
        span = self._otlp.start("mcp.request", record.at, attributes, parent)
        self._open[call["call_id"]] = _Traced(span, named)
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)[1].close(_ns(record.at))

    def _decided(self, record: Record) -> None:
        decision = record.body["decision"]
        facts = {
            "thoughtgate.action": decision["action"],
            "thoughtgate.gate": decision["gate"],
            "thoughtgate.rule": decision["rule_id"] or "",
            "thoughtgate.reason_code": decision["explain"]["reason_code"],
            "thoughtgate.enforced": decision["enforced"],
        }
        traced = self._log(record, facts)
        if traced is None:
            return
        traced.request.add_event("thoughtgate.decision", facts, _ns(record.at))
        if decision["action"] == "ALLOW" or decision["enforced"] is False:
            self._forwarded(traced, record)

    def _log(self, record: Record, facts: Mapping[str, Any]) -> _Traced | None:
        """Send a log record, linked to the request's span if it is open; return its spans."""
        traced = self._open.get(record.body["call"]["call_id"])
        span = traced.request if traced is not None else None
        self._otlp.log(record.type, record.at, {"server_id": record.server, **facts}, span)
        return traced

    def _forwarded(self, traced: _Traced, record: Record) -> None:
        name = record.body["call"]["tool_name"]
        attributes = {"thoughtgate.server": record.server, traced.named: name}
        below = self._otlp.below(traced.request)
        traced.upstream = self._otlp.start("mcp.upstream", record.at, attributes, below)

    def _asked(self, record: Record) -> None:
        traced = self._open.get(record.body["call"]["call_id"])
        if traced is not None and traced.approval is None:
            attributes = {"thoughtgate.workflow": record.body["approval"]["workflow"]}
            below = self._otlp.below(traced.request)
            traced.approval = self._otlp.start("thoughtgate.approval", record.at, attributes, below)

    def _answered(self, record: Record) -> None:
        approval = record.body["approval"]
        facts = {
            "thoughtgate.approval.outcome": approval["outcome"],
            "thoughtgate.approval.channel": approval["channel"],
        }
        traced = self._log(record, facts)
        if traced is None:
            return
        if traced.approval is not None:
            traced.approval.set_attributes(facts)
            traced.approval.end(_ns(record.at))
            traced.approval = None
        if approval["executes"]:
            self._forwarded(traced, record)

    def _ended(self, record: Record) -> None:
        body = record.body
        traced = self._open.pop(body["call"]["call_id"], None)
        if traced is None:
            return
        error = body.get("error") or {}
        if error.get("class") == POLICY_BLOCK:
            # Allowed but never sent: a span that is dropped without an end is never exported.
            traced.upstream = None
        says_error = body.get("is_error") is True
        if body["status"] != events.OK or says_error:
            kind = error.get("kind") or error.get("class") or TOOL_ERROR
            for span in (traced.request, traced.upstream):
                if span is not None:
                    self._otlp.fail(span, kind, error.get("code"))
        if body["status"] == events.OK or says_error:
            traced.request.set_attribute("mcp.result.is_error", says_error)
        traced.close(_ns(record.at))


def _ns(at: float) -> int:
    return int(at * 1_000_000) * 1000
