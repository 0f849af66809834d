"""Runs a planned proxy: on stdio, in this process, or in several processes on one port."""

import os
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from thoughtgate.errors import ThoughtGateError
from thoughtgate.front.http_front import cannot_listen
from thoughtgate.process.guardian import Guardian
from thoughtgate.process.launch import launch
from thoughtgate.process.own_command import own_command
from thoughtgate.proxy.http import ProxyPlan, run_http
from thoughtgate.proxy.worker_metrics import keep_counters, metrics_directory
from thoughtgate.proxy.workers import Workers
from thoughtgate.stores.process_owner import own_name

WORKER: Final = "THOUGHTGATE_PROXY_WORKER"
"""Environment variable of a worker: the port that it shares."""

RUN: Final = "THOUGHTGATE_PROXY_RUN"
"""Environment variable of a worker: the process that started all workers. They count limits
together under its name."""

NUMBERS: Final = "THOUGHTGATE_PROXY_NUMBERS"
"""Environment variable of a worker: the directory with the metrics of all workers."""


def run_proxy(plan: ProxyPlan, announce: Callable[[str], None]) -> int:
    """Run until a signal arrives or the agent leaves; return the exit code.

    Raises:
        ThoughtGateError: the proxy cannot be run.
    """
    if plan.listen.transport == "stdio":
        from thoughtgate.proxy.stdio import run_stdio  # HTTP starts sooner without it

        return run_stdio(plan)
    shared = plan.environ.get(WORKER, "")
    if shared:
        listen = replace(plan.listen, port=int(shared), workers=1)
        plan = replace(
            plan,
            listen=listen,
            numbers=plan.environ.get(NUMBERS, ""),
            is_worker=True,
            count_with=plan.environ.get(RUN, ""),
        )
        run_http(plan, announce, reuse_port=True)
        return 0
    if plan.listen.workers > 1:
        return run_workers(plan, announce)
    run_http(plan, announce)
    return 0


def run_workers(plan: ProxyPlan, announce: Callable[[str], None]) -> int:
    """Run several processes on one port; one that ends is started again.

    Raises:
        ThoughtGateError: the address or the state directory cannot be used.
    """
    held = _reserve(plan.listen.host, plan.listen.port)
    guardian = Guardian()  # ends the workers; their own guardians end what they have started
    try:
        with metrics_directory(plan.state) as numbers:
            port = held.getsockname()[1]
            shared = {WORKER: str(port), NUMBERS: numbers, RUN: own_name()}
            environ = {**os.environ, **shared}
            command = [*own_command(), *sys.argv[1:]]

            def start() -> int:
                return launch(command, environ, lambda: guardian.watch(os.getpid(), group=False))

            def ended(pid: int) -> None:
                guardian.forget(pid, group=False)
                keep_counters(numbers, pid)

            workers = Workers(plan.listen.workers, start, announce, on_end=ended)
            announce(f"{plan.listen.workers} workers on port {port}")
            return workers.run()
    finally:
        held.close()
        guardian.dismiss()


def _reserve(host: str, port: int) -> socket.socket:
    """Bind the address without listening, so that all workers use the same port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Every socket on the port needs the option, so the workers can share it with this one.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host, port))
    except OSError as error:
        held.close()
        raise ThoughtGateError(
            cannot_listen(host, port, error.strerror or "the address cannot be used")
        ) from None
    return held
