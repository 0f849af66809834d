"""Workers: one that ends is started again, one that cannot start stops all."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.http_agent import HttpAgent
from tests.support.http_gate import config_for
from tests.support.http_upstream import HttpUpstream, text_result
from tests.support.proxy_process import ProxyProcess, sample_server
from tests.support.waiting import PATIENCE_S, read_line, wait_for

from thoughtgate.gate.clock import monotonic
from thoughtgate.proxy import workers

_SCRIPT: Final = """
import os, sys
from thoughtgate.process.launch import launch
from thoughtgate.proxy import workers
workers.FIRST_PAUSE_S = 0.01
ended = []
def start():
    return launch(["sh", "-c", sys.argv[1]], os.environ, lambda: None)
made = workers.Workers(2, start, lambda text: print(text, flush=True), on_end=ended.append)
code = made.run()
print("ended", len(ended), flush=True)
sys.exit(code)
"""


def _workers(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, script], stdout=subprocess.PIPE, text=True
    )


def test_a_worker_that_fails_to_start_five_times_stops_all() -> None:
    said, _ = _workers("exit 3").communicate(timeout=PATIENCE_S)
    lines = said.splitlines()
    last = next(line for line in lines if "in a row" in line)
    assert "ended with code 3; it failed to start 5 times" in last
    assert any("another starts in 0.08 s" in line for line in lines), "the pauses grow"


@pytest.mark.parametrize(("code", "exit_code"), [(1, 1), (2, 2), (77, 2)])
def test_the_exit_code_is_that_of_the_failed_worker(code: int, exit_code: int) -> None:
    process = _workers(f"exit {code}")
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == exit_code


def test_workers_that_are_killed_are_started_again_and_again(tmp_path: Path) -> None:
    """Being killed says nothing about whether the next one can start."""
    process = _workers(f"echo $$ >> {tmp_path}/pids; exec sleep 60")
    killed: set[int] = set()

    def next_pid() -> int | None:
        path = tmp_path / "pids"
        pids = [int(line) for line in path.read_text().split()] if path.exists() else []
        return next((pid for pid in pids if pid not in killed), None)

    for _ in range(7):
        pid = wait_for(next_pid, what="a worker")
        killed.add(pid)
        os.kill(pid, signal.SIGKILL)
        assert f"worker {pid} ended by signal 9; another starts" in read_line(process.stdout)
    wait_for(next_pid, what="the worker that is told to stop")
    process.terminate()
    rest, _ = process.communicate(timeout=PATIENCE_S)
    assert "ended" in rest
    assert process.returncode == 2, "sleep does not end by itself"


def test_the_pause_before_a_restart_is_bounded_however_often_workers_are_killed() -> None:
    announced: list[str] = []
    worker = workers._Worker(pid=1, started_at=monotonic(), early_ends=5000)
    workers.Workers(1, lambda: 1, announced.append)._ended(worker, 1, -9)
    assert announced == ["worker 1 ended by signal 9; another starts in 30 s"]


def test_a_worker_that_stops_as_told_is_no_failure() -> None:
    process = _workers("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done")
    for _ in range(2):
        assert read_line(process.stdout) == "up\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert rest == "ended 2\n"


def _pids_of(proxy: ProxyProcess) -> list[int]:
    """Return the workers: the children that listen, not the guardian."""
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(proxy.process.pid)],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    own = Path(f"/proc/{proxy.process.pid}/environ").read_bytes()
    workers = []
    for line in found.stdout.splitlines():
        pid = int(line.split()[0])
        environ = Path(f"/proc/{pid}/environ").read_bytes()
        if environ != own and b"THOUGHTGATE_PROXY_WORKER=" in environ:
            workers.append(pid)
    return workers


def _status(port: int) -> int:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        link.request("GET", "/health")
        return link.getresponse().status
    finally:
        link.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_worker_is_replaced_while_the_others_serve(tmp_path: Path) -> None:
    with HttpUpstream(lambda received: text_result(received, "x")) as upstream:
        path = tmp_path / "thoughtgate.yaml"
        path.write_text(config_for(upstream.url))
        arguments = ["-c", str(path), "--listen", "127.0.0.1:0", "--workers", "2"]
        with ProxyProcess(tmp_path, arguments) as proxy:
            wait_for(lambda: proxy.stderr.count("listening on") == 2, what="both workers")
            first = _pids_of(proxy)
            assert len(first) == 2
            os.kill(first[0], signal.SIGKILL)
            wait_for(lambda: proxy.stderr.count("listening on") == 3, what="the third worker")
            assert f"worker {first[0]} ended by signal 9; another starts in 0.25 s" in proxy.stderr
            assert first[1] in _pids_of(proxy)
            assert len(_pids_of(proxy)) == 2
            assert [_status(proxy.port) for _ in range(8)] == [200] * 8
            assert proxy.stop() == 0


@pytest.mark.long
def test_workers_share_sessions_and_carry_answers(tmp_path: Path) -> None:
    """Over SQLite: a session, a server's request and the end of the session."""
    command, *args = sample_server()
    config: dict[str, Any] = {
        "schema": 1,
        "default": "forward",
        "rules": [{"tool": "add", "action": "approve"}],
        "approval": {"default": {"channel": "console", "allow_elicitation": True}},
        "servers": {"one": {"command": command, "args": args}},
    }
    path = tmp_path / "thoughtgate.yaml"
    path.write_text(json.dumps(config))
    arguments = ["-c", str(path), "--listen", "127.0.0.1:0", "--workers", "3"]
    with ProxyProcess(tmp_path, arguments) as proxy:
        wait_for(lambda: proxy.stderr.count("listening on") == 3, what="all workers")
        agent = HttpAgent(proxy.port)
        agent.greet({"elicitation": {}})
        for number in range(12):
            params = {"name": "add", "arguments": {"a": number, "b": 1}}
            agent.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            (prompt,) = wait_for(lambda: agent.notices, what="the prompt")
            agent.notices.clear()
            said = {"action": "accept", "content": {"decision": "approve"}}
            assert agent.respond(prompt["id"], said) == 202
            assert "result" in agent.answer(number)
        link = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=PATIENCE_S)
        link.request("DELETE", "/mcp", headers={"mcp-session-id": agent.session})
        assert link.getresponse().status == 204
        link.close()
        wait_for(lambda: {_in_session(proxy.port, agent.session) for _ in range(9)} == {404})
        assert proxy.stop() == 0


def _in_session(port: int, session: str) -> int:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    body = json.dumps({"jsonrpc": "2.0", "id": threading.get_native_id(), "method": "ping"})
    headers = {"mcp-session-id": session, "content-type": "application/json", "accept": "*/*"}
    try:
        link.request("POST", "/mcp", body, headers)
        return link.getresponse().status
    finally:
        link.close()
