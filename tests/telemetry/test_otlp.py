import socket

from opentelemetry import trace
from tests.support.otlp_receiver import otlp_receiver
from tests.support.records import T0

from thoughtgate.telemetry.otlp import Exporter


def test_no_global_provider_is_touched() -> None:
    with otlp_receiver() as receiver:
        before = trace.get_tracer_provider()
        exporter = Exporter(receiver.endpoint + "/", {}, 1.0, {"service.name": "x"})
        exporter.start("mcp.request", T0, {}, None).end()
        exporter.log("note", T0, {})
        exporter.close(3000)
        assert trace.get_tracer_provider() is before
        assert len(receiver.spans) == 1
        assert receiver.logs[0].trace_id == b""


def test_a_malformed_parent_begins_a_new_trace() -> None:
    with otlp_receiver() as receiver:
        exporter = Exporter(receiver.endpoint, {}, 1.0, {})
        parent = exporter.parent({"traceparent": "rubbish"})
        exporter.start("mcp.request", T0, {}, parent).end()
        exporter.close(3000)
        assert not receiver.spans[0].parent_span_id


def test_a_collector_that_is_away_stops_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    exporter = Exporter(f"http://127.0.0.1:{port}", {}, 1.0, {})
    exporter.start("mcp.request", T0, {}, None).end()
    exporter.close(50)
