"""A small interface to the OpenTelemetry SDK: spans, log records and their export.

This is the only module that imports the SDK, from the extra ``thoughtgate[otel]``. It sets
no global providers, which an embedding program may have set itself.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any

from opentelemetry._logs import SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from thoughtgate.telemetry.logs import INFO, WARN, level_of
from thoughtgate.version import __version__

TIMEOUT_S = 2.0
"""Timeout of one export, which runs in its own thread; stopping waits for at most two."""

# The SDK logs an unreachable collector to stderr, which may carry the record.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())


_SEVERITIES = {INFO: SeverityNumber.INFO, WARN: SeverityNumber.WARN}
_KINDS = {"mcp.request": SpanKind.SERVER, "mcp.upstream": SpanKind.CLIENT}


class Exporter:
    """Exports spans and log records to a collector."""

    def __init__(
        self, endpoint: str, headers: dict[str, str], sample_rate: float, facts: Mapping[str, Any]
    ) -> None:
        base = _base(endpoint)
        resource = Resource.create(dict(facts))
        sampler = ParentBased(TraceIdRatioBased(sample_rate))
        self._spans = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=True)
        exporter = OTLPSpanExporter(f"{base}/v1/traces", headers=headers, timeout=TIMEOUT_S)
        self._spans.add_span_processor(BatchSpanProcessor(exporter))
        self._logs = LoggerProvider(resource=resource, shutdown_on_exit=True)
        logs = OTLPLogExporter(f"{base}/v1/logs", headers=headers, timeout=TIMEOUT_S)
        self._logs.add_log_record_processor(BatchLogRecordProcessor(logs))
        self._tracer = self._spans.get_tracer("thoughtgate", __version__)
        self._logger = self._logs.get_logger("thoughtgate", __version__)
        self._w3c = TraceContextTextMapPropagator()

    def parent(self, traceparent: str | None) -> Context:
        """Return the trace context that a caller sent, or an empty one, in which a new trace starts."""
        return self._w3c.extract({"traceparent": traceparent}) if traceparent else Context()

    def carried(self, span: Span) -> str:
        """Return the ``traceparent`` of a span, for the server."""
        carrier: dict[str, str] = {}
        self._w3c.inject(carrier, self.below(span))
        return carrier.get("traceparent", "")

    def below(self, span: Span) -> Context:
        """Return the context in which children of a span start."""
        return set_span_in_context(span, Context())

    def start(self, name: str, at: float, attributes: Mapping[str, Any], parent: Context) -> Span:
        """Start a span at the given time."""
        kind = _KINDS.get(name, SpanKind.INTERNAL)
        return self._tracer.start_span(
            name, parent, kind, attributes, start_time=int(at * 1_000_000) * 1000
        )

    def fail(self, span: Span, kind: str, code: int | None) -> None:
        """Mark a span as failed."""
        span.set_status(Status(StatusCode.ERROR, kind))
        span.set_attribute("error.type", kind)
        if code is not None:
            span.set_attribute("rpc.response.status_code", str(code))

    def log(self, name: str, at: float, facts: Mapping[str, Any], span: Span | None = None) -> None:
        """Send a log record, linked to a span if there is one."""
        context = self.below(span) if span is not None else None
        severity = _SEVERITIES[level_of(name, str(facts.get("thoughtgate.action", "")))]
        self._logger.emit(
            timestamp=int(at * 1_000_000) * 1000,
            severity_number=severity,
            severity_text=severity.name,
            body=name,
            attributes=dict(facts),
            event_name=f"thoughtgate.{name}",
            context=context,
        )

    def now(self) -> int:
        """Return the time in nanoseconds."""
        return time.time_ns()

    def close(self, timeout_ms: int) -> None:
        """Export the queue within a time limit, and stop."""
        self._spans.force_flush(timeout_ms)
        self._logs.force_flush(timeout_ms)
        self._spans.shutdown()
        self._logs.shutdown()


def _base(endpoint: str) -> str:
    """Return a collector's base URL, even if the URL for spans or logs was given."""
    plain = endpoint.rstrip("/")
    return plain.removesuffix("/v1/traces").removesuffix("/v1/logs").rstrip("/")
