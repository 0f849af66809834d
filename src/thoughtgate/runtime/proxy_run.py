"""Running a planned proxy: on stdio, in this process, or in several that share a port."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from thoughtgate.errors import ThoughtGateError
from thoughtgate.runtime.proxy import ProxyPlan, run_http
from thoughtgate.runtime.proxy_stdio import run_stdio

WORKER: Final = "THOUGHTGATE_PROXY_WORKER"
"""Set for a worker to the port that it shares."""


def run_proxy(plan: ProxyPlan, announce: Callable[[str], None]) -> int:
    """Run until a signal or the end of the agent; return the exit code.

    Raises:
        ThoughtGateError: it cannot be run.
    """
    if plan.listen.transport == "stdio":
        return run_stdio(plan)
    shared = plan.environ.get(WORKER, "")
    if shared:
        listen = replace(plan.listen, port=int(shared), workers=1)
        run_http(replace(plan, listen=listen), announce, reuse_port=True)
        return 0
    if plan.listen.workers > 1:
        return run_workers(plan, announce)
    run_http(plan, announce)
    return 0


def run_workers(plan: ProxyPlan, announce: Callable[[str], None]) -> int:
    """Run several processes on one port; when one of them fails, all stop.

    Raises:
        ThoughtGateError: the address cannot be used.
    """
    held = _reserve(plan.listen.host, plan.listen.port)
    port = held.getsockname()[1]
    environ = {**os.environ, WORKER: str(port)}
    command = [sys.executable, "-m", "thoughtgate.cli.entry", *sys.argv[1:]]
    workers = [subprocess.Popen(command, env=environ) for _ in range(plan.listen.workers)]
    announce(f"{len(workers)} workers on port {port}")

    def stop(number: int, frame: object) -> None:
        del number, frame
        for worker in workers:
            worker.terminate()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        return _wait(workers)
    finally:
        held.close()


def _wait(workers: list[subprocess.Popen[bytes]]) -> int:
    """Wait for all; the first that ends badly takes the others with it."""
    code = 0
    left = {worker.pid: worker for worker in workers}
    while left:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        worker = left.pop(pid, None)
        if worker is None:
            continue
        worker.returncode = os.waitstatus_to_exitcode(status)
        if worker.returncode:
            code = code or abs(worker.returncode)
            for other in left.values():
                other.terminate()
    return min(code, 2)


def _reserve(host: str, port: int) -> socket.socket:
    """Bind the address without listening, so that all workers get the same port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host, port))
    except OSError as error:
        held.close()
        raise ThoughtGateError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return held
