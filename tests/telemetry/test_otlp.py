import socket

import pytest
from opentelemetry import trace
from tests.support.audit_cli import sample_events
from tests.support.otlp_receiver import otlp_receiver
from tests.support.records import T0

from thoughtgate.telemetry.logs import DEBUG, Log
from thoughtgate.telemetry.otlp import Exporter
from thoughtgate.telemetry.spans import Tracer


def test_no_global_provider_is_touched() -> None:
    with otlp_receiver() as receiver:
        before = trace.get_tracer_provider()
        exporter = Exporter(receiver.endpoint + "/", {}, 1.0, {"service.name": "x"})
        exporter.start("mcp.request", T0, {}, exporter.parent(None)).end()
        exporter.log("note", T0, {})
        exporter.close(3000)
        assert trace.get_tracer_provider() is before
        assert len(receiver.spans) == 1
        assert receiver.logs[0].trace_id == b""


def test_a_malformed_parent_begins_a_new_trace() -> None:
    with otlp_receiver() as receiver:
        exporter = Exporter(receiver.endpoint, {}, 1.0, {})
        parent = exporter.parent("rubbish")
        exporter.start("mcp.request", T0, {}, parent).end()
        exporter.close(3000)
        assert not receiver.spans[0].parent_span_id


def test_a_collector_that_is_away_stops_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    exporter = Exporter(f"http://127.0.0.1:{port}", {}, 1.0, {})
    exporter.start("mcp.request", T0, {}, exporter.parent(None)).end()
    exporter.close(50)


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/traces/", "/v1/logs"])
def test_the_address_for_spans_or_logs_stands_for_the_collector(path: str) -> None:
    with otlp_receiver() as receiver:
        exporter = Exporter(receiver.endpoint + path, {}, 1.0, {})
        exporter.start("mcp.request", T0, {}, exporter.parent(None)).end()
        exporter.log("note", T0, {})
        exporter.close(3000)
        assert (len(receiver.spans), len(receiver.logs)) == (1, 1)


def test_severities_are_the_levels_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: dict[str, list[str]] = {}
    log = Log("gate", level=DEBUG)
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        for record in sample_events():
            monkeypatch.setattr(
                log,
                "say",
                lambda level, *_, at=record.type, **__: levels.setdefault(at, []).append(level),
            )
            log.record(record)
            tracer.observe(record)
        tracer.close()
        sent: dict[str, list[str]] = {}
        for one in receiver.logs:
            assert one.severity_text == ("INFO" if one.severity_number == 9 else "WARN")
            name = one.event_name.removeprefix("thoughtgate.")
            sent.setdefault(name, []).append(one.severity_text.lower())
    both = sent.keys() & levels.keys()
    assert {name: sent[name] for name in both} == {name: levels[name] for name in both}
    assert "warn" in sent["tool_call_decision"]
    assert "info" in sent["tool_call_decision"]
    assert {"frame_refused", "agent_auth_rejected"} <= both
    assert set(sent["run_start"]) == {"info"}
