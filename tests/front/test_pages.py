"""Health, readiness and metrics."""

import http.client
from pathlib import Path

import pytest
from tests.support.http_gate import Gate, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, free_port, text_result
from tests.support.waiting import wait_for


def _script(received: Received) -> Reply:
    return text_result(received, "x")


@pytest.mark.requirement("FR21")
def test_health_says_that_the_gate_serves(tmp_path: Path) -> None:
    with HttpUpstream(_script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        health = gate.request("GET", "/health")
        assert (health.status, health.json) == (200, {"status": "ok"})
        assert health.headers["content-type"] == "application/json"
        wait_for(lambda: gate.request("GET", "/ready").status == 200, what="readiness")
        gate.call("echo")
        metrics = gate.request("GET", "/metrics").body.decode()
        assert 'mcp_requests_total{method="tools/call",status="success"} 1.0' in metrics
        assert "mcp_connections_active 1.0" in metrics
        assert "thoughtgate_zombie_execution_prevented_total 0.0" in metrics
        gate.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
        assert "mcp_batch_size_histogram_count 1.0" in gate.request("GET", "/metrics").body.decode()
        assert upstream.calls("echo")


def test_a_separate_admin_port_keeps_the_pages_off_the_public_one(tmp_path: Path) -> None:
    port = free_port()
    listen = f"listen: {{transport: http, admin_port: {port}}}\n"
    with (
        HttpUpstream(_script) as upstream,
        Gate(tmp_path, config_for(upstream.url, listen)) as gate,
    ):
        assert gate.request("GET", "/metrics").status == 404
        assert gate.request("GET", "/health").status == 200
        for path, status in (("/metrics", 200), ("/health", 200), ("/other", 404)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path)
            assert connection.getresponse().status == status
            connection.close()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("POST", "/metrics")
        assert connection.getresponse().status == 405
        connection.close()


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_a_rebound_name_reads_no_page(tmp_path: Path, path: str) -> None:
    with HttpUpstream(_script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        assert gate.request("GET", path, headers={"host": "evil.example"}).status == 421
        assert gate.request("GET", path, headers={"host": f"localhost:{gate.port}"}).status == 200
