"""The hub: how soon it answers before fifty servers, and what a routed call costs over a direct one."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.figure import Figure, percentile
from bench.pipes import ECHO_SERVER, Pipe, call, frame

SERVERS: Final = 50
TOOLS: Final = 100
INITIALIZE_MS: Final = 100.0
ADDED_P50_MS: Final = 1.0
LEVEL: Final = "warn"

_COMMAND: Final = str(Path(sys.executable).with_name("thoughtgate"))


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure a hub before fifty servers with a hundred tools each."""
    rounds = 300 if quick else 2000
    with _hub(SERVERS, TOOLS) as hub:
        opened = _opened(hub)
        yield Figure(
            f"initialize, {SERVERS} servers", opened, "ms", INITIALIZE_MS, note="running process"
        )
        start = time.perf_counter()
        listed = json.loads(hub.exchange(frame({"id": 1, "method": "tools/list"})))
        first = time.perf_counter() - start
        found = len(listed["result"]["tools"])
        yield Figure(
            f"first tools/list, {found} tools", first * 1000, "ms", note="starts all servers"
        )
        yield Figure(
            f"tools/list again, {found} tools",
            percentile(
                [hub.time_exchange(frame({"id": n, "method": "tools/list"})) for n in range(2, 22)],
                0.5,
            )
            * 1000,
            "ms",
        )
        yield Figure("resident memory of the hub", hub.resident_mb(), "MB")
        yield from _added(hub, rounds)


def _added(hub: Pipe, rounds: int) -> Iterator[Figure]:
    """Measure the same call direct and routed, in turns."""
    direct: list[float] = []
    routed: list[float] = []
    with Pipe(ECHO_SERVER) as server:
        server.initialize()
        for number in range(rounds):
            direct.append(server.time_exchange(call(1000 + number)))
            routed.append(hub.time_exchange(call(1000 + number, "s07.echo")))
    for share, name, bar in ((0.5, "p50", ADDED_P50_MS), (0.99, "p99", None)):
        added = percentile(routed, share) - percentile(direct, share)
        told = f"direct {percentile(direct, share) * 1000:.3f} ms"
        yield Figure(f"routed call, added {name}", added * 1000, "ms", bar, note=told)


def _opened(hub: Pipe) -> float:
    """Return the milliseconds of ``initialize`` once the process is up."""
    hub.exchange(frame({"id": "up", "method": "ping"}))
    client = {"name": "bench", "version": "0"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    return hub.time_exchange(frame({"id": 0, "method": "initialize", "params": params})) * 1000


@contextmanager
def _hub(servers: int, tools: int) -> Iterator[Pipe]:
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--tools", "echo", "--count", str(tools - 1)]
        entry: dict[str, Any] = {"command": ECHO_SERVER[0], "args": [*ECHO_SERVER[1:], *flags]}
        config = {
            "schema": 1,
            "default": "forward",
            "servers": {f"s{number:02}": entry for number in range(servers)},
        }
        path = Path(folder, "thoughtgate.yaml")
        path.write_text(json.dumps(config), "utf-8")
        env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(Path(folder, "state"))}
        command = [_COMMAND, "serve", "--stdio", "-c", str(path), "--log-level", LEVEL]
        command += ["--state-dir", str(Path(folder, "state"))]
        with Pipe(command, env) as hub:
            yield hub
