import json
import subprocess
from pathlib import Path

from tests.support.commands import sample_server, shim
from tests.support.otlp_receiver import attributes, otlp_receiver
from tests.support.records import call

from thoughtgate.config.settings import OtlpSettings, TelemetrySettings
from thoughtgate.core.record import Record
from thoughtgate.runtime.tracing import with_traces


def test_without_a_collector_nothing_changes() -> None:
    seen: list[Record] = []
    assert with_traces(TelemetrySettings(), None) is None
    assert with_traces(TelemetrySettings(), seen.append) == seen.append


def test_whoever_observes_still_does() -> None:
    seen: list[Record] = []
    with otlp_receiver() as receiver:
        settings = TelemetrySettings(otlp=OtlpSettings(receiver.endpoint))
        alone = with_traces(settings, None)
        both = with_traces(settings, seen.append)
        assert alone is not None
        assert both is not None
        for record in call(1):
            alone(record)
            both(record)
    assert seen == call(1)


def test_a_shim_with_a_collector_sends_the_spans_of_its_calls(tmp_path: Path) -> None:
    config = tmp_path / "thoughtgate.yaml"
    frame = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "x"}},
    }
    with otlp_receiver() as receiver:
        config.write_text(
            f"schema: 1\ndefault: forward\ntelemetry: {{otlp: {{endpoint: '{receiver.endpoint}'}}}}\n"
        )
        subprocess.run(
            shim(sample_server(), "-c", str(config), "--audit", str(tmp_path / "audit.jsonl")),
            input=json.dumps(frame) + "\n",
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        request = receiver.span("mcp.request")
        assert attributes(request)["gen_ai.tool.name"] == "echo"
        assert receiver.span("mcp.upstream").parent_span_id == request.span_id
