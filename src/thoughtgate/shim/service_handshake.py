"""How a shim finds the governance service of its run and opens a session with it.

Small on purpose: every shim that asks a service loads it. What is asked afterwards is
``shim.service_authority``'s business.
"""

import json
import os
import select
import time
from collections.abc import Mapping
from typing import Any, Final

from thoughtgate.core.events import Event
from thoughtgate.errors import PeerGone, UsageError
from thoughtgate.gate.clock import monotonic
from thoughtgate.gate.run_file import RunFile, has_ended, read_run_file, run_path
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.shim.service_connection import Link

EVALUATE_S: Final = 2.0
"""From a question to giving up on its answer (F-016b)."""

FIRST_WAIT_S: Final = 0.05
LONGEST_WAIT_S: Final = 2.0
ATTEMPTS: Final = 20
"""How a service that is not there yet is waited for (F-016a)."""

SUCCESS: Final = 200

TOKEN_VARIABLE: Final = "THOUGHTGATE_GOVERNANCE_TOKEN"  # noqa: S105 - the name, not the token


def find_run(key: str, endpoint: str, environ: Mapping[str, str]) -> RunFile:
    """Return where the service is: by its address if one is given, else by the run's file.

    Raises:
        UsageError: the run file or the endpoint makes no sense.
    """
    if not endpoint:
        return read_run_file(run_path(key, environ))
    host, _, port = endpoint.removeprefix("http://").rstrip("/").rpartition(":")
    if host not in {"127.0.0.1", "localhost"} or not port.isdigit():
        raise UsageError("--governance-endpoint is http://127.0.0.1:PORT")
    token = environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise UsageError(f"--governance-endpoint needs {TOKEN_VARIABLE}")
    return RunFile("127.0.0.1", int(port), token, PRODUCTION, 0)


def greet(run: RunFile, server: str) -> dict[str, Any]:
    """Wait until the service is healthy, for it may still be starting, then say hello.

    Raises:
        PeerGone: the service does not answer, or its process has ended.
    """
    wait_s = FIRST_WAIT_S
    for _ in range(ATTEMPTS):
        status, _ = exchange(run, "GET", "/healthz", b"")
        if status or has_ended(run.pid):
            break
        time.sleep(wait_s)
        wait_s = min(wait_s * 2, LONGEST_WAIT_S)
    hello = {"server_id": server, "hello": True, "pid": os.getpid()}
    reply = read_object(*exchange(run, "POST", "/governance/heartbeat", json.dumps(hello).encode()))
    if reply is None:
        raise PeerGone(
            "the governance service does not answer; start the agent through `thoughtgate wrap`, "
            "or put its config back with `thoughtgate unwrap`"
        )
    return reply


def exchange(run: RunFile, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Send one request and wait for its answer; status 0 when there is none."""
    said: list[tuple[int, bytes]] = []

    def answer(status: int, reply: bytes) -> list[Event]:
        said.append((status, reply))
        return []

    link = Link(run.host, run.port, run.token)
    deadline = monotonic() + EVALUATE_S
    link.request(method, path, body, answer, deadline)
    while not said and monotonic() < deadline:
        wait_on(link, deadline)
    link.close()
    return said[0] if said else (0, b"")


def wait_on(link: Link, deadline: float) -> None:
    """Serve one connection until something comes of it, or the time is up."""
    if link.descriptor < 0:
        link.fail()
        return
    poll = select.poll()
    poll.register(link.descriptor, link.mask)
    for _, mask in poll.poll(max(0.0, deadline - monotonic()) * 1000):
        link.ready(mask)


def read_object(status: int, body: bytes) -> dict[str, Any] | None:
    """Return what a successful answer says; None for everything else."""
    if status != SUCCESS:
        return None
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
