"""Traces that leave the gate: to the collector, and with the calls to the servers."""

import http.client
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server, shim, with_state
from tests.support.frames import MODERN_VERSION, envelope, request
from tests.support.http_gate import ACCEPT, call_of
from tests.support.http_hub import HttpHub, serving_http
from tests.support.http_upstream import HttpUpstream, Received, Reply, result, text_result
from tests.support.hub import Served, modern, sample, serving
from tests.support.otlp_receiver import attributes, otlp_receiver
from tests.support.proxy_process import ProxyProcess, environment, proxy_command
from tests.support.records import started
from tests.support.waiting import wait_for
from tests.support.wraps import Machine

from thoughtgate.config.settings import TelemetrySettings
from thoughtgate.core.record_events import Record
from thoughtgate.gate.tracing import both, open_tracer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def _config(directory: Path, endpoint: str, more: str = "") -> Path:
    config = directory / "thoughtgate.yaml"
    traces = f"telemetry: {{otlp: {{endpoint: '{endpoint}'}}}}\n"
    config.write_text(f"schema: 1\ndefault: forward\n{traces}{more}", "utf-8")
    return config


def _call(ident: int, **meta: Any) -> dict[str, Any]:
    body = call_of("echo", {"text": "x"}, ident=ident)
    if meta:
        body["params"]["_meta"] = meta
    return body


def _post(port: int, body: dict[str, Any]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    headers = {"content-type": "application/json", "accept": ACCEPT, "traceparent": PARENT}
    connection.request("POST", "/mcp", json.dumps(body), headers)
    assert connection.getresponse().status == 200
    connection.close()


def _calls(seen: Path, word: str = "tools/call") -> list[dict[str, Any]]:
    """Return the calls that reached the sample server."""
    lines = [json.loads(line)["line"] for line in seen.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines if word in line]


def _far(received: Received) -> Reply:
    """Answer as a small server of 2025-11-25."""
    message = received.message
    if not message or "id" not in message:
        return Reply(202)
    info = {"name": "far", "version": "1"}
    results = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": info,
        },
        "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "x"}]},
    }
    if message["method"] in results:
        return result(received, results[message["method"]])
    error = {"code": -32601, "message": "unknown"}
    return Reply(body=json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())


def _served(endpoint: str) -> dict[str, Any]:
    return {"telemetry": {"otlp": {"endpoint": endpoint}}}


def _carried(span: Any) -> tuple[str, str]:
    return span.trace_id.hex(), span.span_id.hex()


def _span_of(trace: str) -> tuple[str, str]:
    _, trace_id, span_id, _ = trace.split("-")
    return trace_id, span_id


def test_without_a_collector_there_is_no_tracer() -> None:
    assert open_tracer(TelemetrySettings()) is None


def test_two_observers_see_the_same() -> None:
    first: list[Record] = []
    second: list[Record] = []
    record = started("c")
    for observer in (both(first.append, second.append), both(None, second.append)):
        assert observer is not None
        observer(record)

    assert (first, second) == ([record], [record, record])
    assert both(first.append, None) == first.append
    assert both(None, None) is None


def test_a_server_on_stdio_is_told_the_gates_span(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    calls = [
        _call(1, traceparent=PARENT, kept=1),
        _call(2),
    ]
    with otlp_receiver() as receiver:
        config = _config(tmp_path, receiver.endpoint)
        subprocess.run(
            shim(
                sample_server("--log", str(seen)),
                *("-c", str(config), "--audit", str(tmp_path / "audit.jsonl")),
            ),
            input="".join(json.dumps(one) + "\n" for one in calls),
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        spans = [span for span in receiver.spans if span.name == "mcp.upstream"]
    metas = [one["params"]["_meta"] for one in _calls(seen)]
    assert {_span_of(meta["traceparent"]) for meta in metas} == {_carried(span) for span in spans}
    (continued,) = [meta for meta in metas if "kept" in meta]
    assert continued["traceparent"].split("-")[1] == PARENT.split("-")[1]


@pytest.mark.parametrize("mode", ["--listen", "--stdio"])
def test_a_server_on_http_is_told_in_the_header_and_in_the_message(
    tmp_path: Path, mode: str
) -> None:
    with otlp_receiver() as receiver, HttpUpstream(lambda one: text_result(one, "x")) as upstream:
        config = str(
            _config(tmp_path, receiver.endpoint, f"servers: {{far: {{url: '{upstream.url}'}}}}\n")
        )
        if mode == "--stdio":
            subprocess.run(
                with_state(proxy_command("-c", config, "--stdio")),
                input=json.dumps(_call(1)) + "\n",
                env=environment(tmp_path),
                capture_output=True,
                text=True,
                timeout=30,
                check=True,
            )
        else:
            with ProxyProcess(tmp_path, ["-c", config, "--listen", "127.0.0.1:0"]) as proxy:
                _post(proxy.port, _call(1))
                assert proxy.stop() == 0
        (call,) = upstream.calls("echo")
        told = _carried(receiver.span("mcp.upstream"))
    trace = call.headers["traceparent"]
    assert _span_of(trace) == told
    assert call.message["params"]["_meta"]["traceparent"] == trace
    assert mode == "--stdio" or told[0] == PARENT.split("-")[1]


BESIDE = {"tracestate": "vendor=1,other=a b", "baggage": "user=alice;p=1,plan=x%20y"}
"""What travels beside a trace context."""


def _ask_on_stdio(hub: Served) -> None:
    hub.open()
    body = _call(1, traceparent=PARENT, kept=1, **BESIDE)
    body["params"]["name"] = "one.echo"
    assert "result" in hub.ask(body)


def _ask_in_a_session(hub: HttpHub) -> None:
    session = hub.open_session()
    body = _call(1, kept=1)
    body["params"]["name"] = "one.echo"
    assert hub.post(body, Mcp_Session_Id=session, traceparent=PARENT, **BESIDE).status == 200


def _ask_alone(hub: HttpHub) -> None:
    body = _call(1, kept=1, **envelope())
    body["params"]["name"] = "one.echo"
    head = {"Mcp_Method": "tools/call", "Mcp_Name": "one.echo", "traceparent": PARENT, **BESIDE}
    assert hub.post(body, MCP_Protocol_Version=MODERN_VERSION, **head).status == 200


def _serve(way: str, tmp_path: Path, server: dict[str, Any], endpoint: str) -> None:
    """Make one call through ``serve``, in one of the ways that clients have."""
    if way == "stdio":
        with serving(tmp_path, {"one": server}, **_served(endpoint)) as peer:
            _ask_on_stdio(peer)
        return
    with serving_http(tmp_path, {"one": server}, **_served(endpoint)) as hub:
        (_ask_in_a_session if way == "session" else _ask_alone)(hub)


@pytest.mark.parametrize("way", ["stdio", "session", "alone"])
def test_a_stdio_server_of_a_hub_is_told_the_hubs_span(tmp_path: Path, way: str) -> None:
    seen = tmp_path / "seen.jsonl"
    with otlp_receiver() as receiver:
        _serve(way, tmp_path, sample("--log", str(seen)), receiver.endpoint)
        told = _carried(receiver.span("mcp.upstream"))
        parent = receiver.span("mcp.request").parent_span_id.hex()
    (call,) = _calls(seen)
    meta = call["params"]["_meta"]
    assert (call["params"]["name"], meta["kept"]) == ("echo", 1)
    assert _span_of(meta["traceparent"]) == told
    assert {name: meta.get(name) for name in BESIDE} == BESIDE
    assert (told[0], parent) == _span_of(PARENT)


@pytest.mark.parametrize("way", ["stdio", "session", "alone"])
def test_an_http_server_of_a_hub_is_told_in_the_header_too(tmp_path: Path, way: str) -> None:
    with otlp_receiver() as receiver, HttpUpstream(_far) as upstream:
        _serve(way, tmp_path, {"url": upstream.url}, receiver.endpoint)
        (call,) = upstream.calls("echo")
        told = _carried(receiver.span("mcp.upstream"))
    trace = call.headers["traceparent"]
    assert _span_of(trace) == told
    assert call.message["params"]["_meta"]["traceparent"] == trace
    assert {name: call.headers.get(name) for name in BESIDE} == BESIDE
    assert told[0] == PARENT.split("-")[1]


def test_the_server_of_a_task_is_told_the_hubs_span(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    servers = {"one": sample("--log", str(seen))}
    with otlp_receiver() as receiver:
        with serving(tmp_path, servers, **_served(receiver.endpoint)) as hub:
            hub.open()
            body = _call(1)
            body["params"].update(name="one.echo", task={})
            ident = hub.ask(body)["result"]["task"]["taskId"]
            assert "result" in hub.ask(request(2, "tasks/result", {"taskId": ident}))
        told = _carried(receiver.span("mcp.upstream"))
    (call,) = _calls(seen)
    assert "task" not in call["params"]
    assert _span_of(call["params"]["_meta"]["traceparent"]) == told


def _follow_in_a_session(hub: HttpHub) -> None:
    session = hub.open_session()
    for number, method in enumerate(("resources/subscribe", "resources/unsubscribe")):
        body = request(number + 1, method, {"uri": "note:///draft"})
        answer = hub.post(body, Mcp_Session_Id=session, traceparent=PARENT)
        assert answer.messages[0]["result"] == {}


def test_a_server_is_told_the_trace_of_who_follows_a_resource_and_ends_it(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    server = sample("--era", "legacy", "--log", str(seen))
    with otlp_receiver() as receiver:
        with serving_http(tmp_path, {"one": server}, **_served(receiver.endpoint)) as hub:
            _follow_in_a_session(hub)
            wait_for(lambda: len(_calls(seen, 'subscribe"')) == 2, what="both requests")
        told = _carried(receiver.span("mcp.upstream"))
    first, last = (call["params"]["_meta"] for call in _calls(seen, 'subscribe"'))
    assert _span_of(first["traceparent"]) == told
    assert told[0] == PARENT.split("-")[1]
    assert last["traceparent"] == PARENT


def test_the_trace_of_one_that_listens_reaches_a_legacy_server(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    server = sample("--era", "legacy", "--log", str(seen))
    with otlp_receiver() as receiver:
        with serving(tmp_path, {"one": server}, **_served(receiver.endpoint)) as hub:
            wanted = {"resourceSubscriptions": ["note:///draft"]}
            hub.send(modern(1, "subscriptions/listen", {"notifications": wanted}))
            wait_for(lambda: seen.exists() and _calls(seen, "resources/subscribe"))
        told = _carried(receiver.span("mcp.upstream"))
    (call,) = _calls(seen, "resources/subscribe")
    assert _span_of(call["params"]["_meta"]["traceparent"]) == told


def test_without_a_collector_a_follower_adds_no_trace(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    with serving_http(tmp_path, {"one": sample("--era", "legacy", "--log", str(seen))}) as hub:
        _follow_in_a_session(hub)
        wait_for(lambda: len(_calls(seen, 'subscribe"')) == 2, what="both requests")
    assert [call["params"] for call in _calls(seen, 'subscribe"')] == [{"uri": "note:///draft"}] * 2


def test_without_a_collector_a_hub_adds_no_trace_but_records_the_callers(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    with serving_http(tmp_path, {"one": sample("--log", str(seen))}) as hub:
        _ask_in_a_session(hub)
    (call,) = _calls(seen)
    assert {"traceparent", *BESIDE}.isdisjoint(call["params"].get("_meta", {}))
    assert f'"traceparent":"{PARENT}"' in (tmp_path / "state" / "audit.jsonl").read_text("utf-8")


def test_a_wrapped_server_is_told_the_span_of_the_service(tmp_path: Path) -> None:
    with otlp_receiver() as receiver:
        machine = Machine(tmp_path / "machine")
        seen = tmp_path / "seen.jsonl"
        machine.write_sample("--log", str(seen))
        machine.policy.write_text(_config(tmp_path, receiver.endpoint).read_text("utf-8"), "utf-8")
        with machine.wrap() as run:
            run.open()
            run.call("echo", {"text": "x"})
            assert run.finish() == 0
        told = _carried(receiver.span("mcp.upstream"))
    (call,) = _calls(seen)
    assert _span_of(call["params"]["_meta"]["traceparent"]) == told


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
