"""A proxy as a process: signals, draining, workers."""

import http.client
import json
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from tests.support.commands import sample_server, thoughtgate
from tests.support.http_gate import ACCEPT, call_of, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, free_port, text_result
from tests.support.proxy_process import ProxyProcess, environment
from tests.support.stages import port_of, served
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for


def _post(port: int, tool: str, ident: int = 1) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    headers = {"content-type": "application/json", "accept": ACCEPT}
    connection.request("POST", "/mcp", json.dumps(call_of(tool, ident=ident)), headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def _config(directory: Path, text: str) -> str:
    path = directory / "thoughtgate.yaml"
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.requirement("FR23", "FR28", "NFR-R1")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_what_is_in_flight_and_exits_0(tmp_path: Path, number: int) -> None:
    go = threading.Event()

    def slow(received: Received) -> Reply:
        reply = text_result(received, "finished")
        reply.wait = go
        return reply

    with HttpUpstream(slow) as upstream:
        config = _config(tmp_path, config_for(upstream.url))
        with ProxyProcess(tmp_path, ["-c", config, "--listen", "127.0.0.1:0"]) as proxy:
            answers: list[tuple[int, bytes]] = []
            thread = threading.Thread(target=lambda: answers.append(_post(proxy.port, "echo")))
            thread.start()
            wait_for(lambda: upstream.received, what="the call")
            proxy.process.send_signal(number)
            wait_for(lambda: not _accepts(proxy.port), what="the closed listener")
            go.set()
            thread.join(15)
            assert proxy.process.wait(30) == 0
            assert answers[0][0] == 200
            assert b"finished" in answers[0][1]
            kinds = [one["type"] for one in proxy.records()]
            assert kinds[-2:] == ["tool_call_end", "run_end"]
            assert "Traceback" not in proxy.stderr


def test_several_workers_share_one_port_and_one_record(tmp_path: Path) -> None:
    with HttpUpstream(lambda received: text_result(received, "x")) as upstream:
        config = _config(tmp_path, config_for(upstream.url))
        arguments = ["-c", config, "--listen", "127.0.0.1:0", "--workers", "2"]
        with ProxyProcess(tmp_path, arguments) as proxy:
            wait_for(lambda: proxy.stderr.count("listening on") == 2, what="both workers")
            for ident in range(20):
                assert _post(proxy.port, "echo", ident)[0] == 200
            assert proxy.stop() == 0
            starts = proxy.records("run_start")
            assert len(starts) == 2
            assert len(proxy.records("tool_call_end")) == 20
            assert len(proxy.records("run_end")) == 2


def _page(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return body.decode()


@pytest.mark.parametrize("admin", [False, True])
def test_whichever_worker_is_scraped_tells_the_numbers_of_all(tmp_path: Path, admin: bool) -> None:
    admin_port = free_port() if admin else 0
    with HttpUpstream(lambda received: text_result(received, "x")) as upstream:
        listen = f"listen: {{transport: http, admin_port: {admin_port}}}\n"
        config = _config(tmp_path, config_for(upstream.url, listen))
        arguments = ["-c", config, "--listen", "127.0.0.1:0", "--workers", "3"]
        with ProxyProcess(tmp_path, arguments) as proxy:
            wait_for(lambda: proxy.stderr.count("listening on") == 3, what="all workers")
            for ident in range(30):
                assert _post(proxy.port, "echo", ident)[0] == 200
            counted = 'mcp_requests_total{method="tools/call",status="success"} 30.0'
            spread = 'mcp_request_duration_seconds_count{method="tools/call"} 30.0'

            def page() -> str:
                return _page(admin_port or proxy.port, "/metrics")

            wait_for(lambda: counted in page(), what="the numbers of all workers")
            pages = [page() for _ in range(12)]
            assert all(counted in one and spread in one for one in pages)
            assert all(one.count("thoughtgate_build_info{") == 1 for one in pages)
            assert proxy.stop() == 0
            wait_for(lambda: not list((tmp_path / "state" / "workers").iterdir()))


@pytest.mark.parametrize("extra", [[], ["--workers", "2"]])
def test_an_address_in_use_is_exit_code_2(tmp_path: Path, extra: list[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        config = _config(tmp_path, config_for("http://127.0.0.1:9/mcp"))
        arguments = ["-c", config, "--listen", f"127.0.0.1:{port}", *extra]
        proxy = ProxyProcess(tmp_path, arguments)
        assert proxy.process.wait(20) == 2
        wait_for(lambda: "cannot listen" in proxy.stderr, what="the reason")
        proxy.close()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("gate", ["proxy --listen", "serve --http", "proxy --workers=2 --listen"])
def test_a_killed_gate_takes_its_servers_and_what_they_started_along(
    tmp_path: Path, gate: str
) -> None:
    config = _config(
        tmp_path, "schema: 1\ndefault: forward\n" + served(sample_server("--spawn-grandchild"))
    )
    command, *flags = gate.split()
    eager = ["--eager"] if command == "serve" else []
    arguments = [command, "-c", config, *flags, "127.0.0.1:0", *eager]
    with StdioPeer(thoughtgate(*arguments), env=environment(tmp_path)) as peer:
        port_of(peer)
        # The guardian, the server, and what the server started.
        wait_for(lambda: len(peer.descendants()) >= 3, what="the server's helper")
        peer.signal(signal.SIGKILL)
        peer.wait()
        peer.assert_nothing_left()


def _ready(port: int) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    try:
        connection.request("GET", "/ready")
        response = connection.getresponse()
        return response.status, json.loads(response.read())["status"]
    finally:
        connection.close()


@pytest.mark.long
@pytest.mark.parametrize("extra", [[], ["--workers", "2"]])
def test_a_gate_that_is_told_to_stop_serves_until_balancers_know(
    tmp_path: Path, extra: list[str]
) -> None:
    with HttpUpstream(lambda received: text_result(received, "served")) as upstream:
        listen = "listen: {transport: http, lame_duck: 8s}\n"
        config = _config(tmp_path, config_for(upstream.url, listen))
        arguments = ["-c", config, "--listen", "127.0.0.1:0", *extra]
        with ProxyProcess(tmp_path, arguments) as proxy:
            wait_for(lambda: proxy.stderr.count("listening on") == (2 if extra else 1))
            assert _ready(proxy.port) == (200, "ready")
            proxy.process.send_signal(signal.SIGTERM)
            wait_for(lambda: _ready(proxy.port) == (503, "draining"), what="the end of readiness")
            status, body = _post(proxy.port, "echo")
            assert (status, b"served" in body) == (200, True)
            wait_for(lambda: not _accepts(proxy.port), what="the closed listener")
            assert proxy.process.wait(30) == 0
            assert "Traceback" not in proxy.stderr


def test_a_call_after_the_gate_began_to_drain_is_refused_with_a_time_to_retry(
    tmp_path: Path,
) -> None:
    go = threading.Event()

    def slow(received: Received) -> Reply:
        reply = text_result(received, "finished")
        reply.wait = go
        return reply

    with HttpUpstream(slow) as upstream:
        config = _config(tmp_path, config_for(upstream.url))
        with ProxyProcess(tmp_path, ["-c", config, "--listen", "127.0.0.1:0"]) as proxy:
            kept = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=15)
            kept.request("GET", "/health")
            assert kept.getresponse().read()
            thread = threading.Thread(target=_post, args=(proxy.port, "echo"))
            thread.start()
            wait_for(lambda: upstream.received, what="the call")
            proxy.process.send_signal(signal.SIGTERM)
            wait_for(lambda: not _accepts(proxy.port), what="the closed listener")
            headers = {"content-type": "application/json", "accept": ACCEPT}
            try:
                kept.request("POST", "/mcp", json.dumps(call_of("echo", ident=2)), headers)
                response = kept.getresponse()
            except OSError:
                pass  # An idle connection may be closed as soon as the gate drains.
            else:
                assert response.status == 503
                assert response.getheader("retry-after") == "1"
                assert b"service_unavailable" in response.read()
            kept.close()
            go.set()
            thread.join(15)
            assert proxy.process.wait(30) == 0


@pytest.mark.parametrize("command", ["proxy", "serve"])
def test_gates_that_share_a_store_need_common_keys(tmp_path: Path, command: str) -> None:
    text = config_for("http://127.0.0.1:9/mcp", "store: postgresql://gate@127.0.0.1/none\n")
    flag = "--listen" if command == "proxy" else "--http"
    done = subprocess.run(
        thoughtgate(command, "-c", _config(tmp_path, text), flag, "127.0.0.1:0"),
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "keys.file: required with a PostgreSQL store" in done.stderr
    assert "openssl rand -hex 32" in done.stderr
