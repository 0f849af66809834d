import json
import subprocess
from pathlib import Path

from tests.support.commands import sample_server, shim
from tests.support.otlp_receiver import attributes, otlp_receiver

from thoughtgate.config.settings import TelemetrySettings
from thoughtgate.core.record import Record
from thoughtgate.runtime.tracing import with_traces


def test_without_a_collector_nothing_changes() -> None:
    seen: list[Record] = []
    assert with_traces(TelemetrySettings(), None) is None
    assert with_traces(TelemetrySettings(), seen.append) == seen.append


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
            "schema: 1\nprofile: development\ndefault: deny\n"
            f"telemetry: {{otlp: {{endpoint: '{receiver.endpoint}'}}}}\n"
        )
        done = subprocess.run(
            shim(sample_server(), "-c", str(config), "--audit", str(tmp_path / "audit.jsonl")),
            input=json.dumps(frame) + "\n",
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert "WOULD_BLOCK" in done.stderr  # whoever observed before still does
        request = receiver.span("mcp.request")
        assert attributes(request)["gen_ai.tool.name"] == "echo"
        assert receiver.span("mcp.upstream").parent_span_id == request.span_id
