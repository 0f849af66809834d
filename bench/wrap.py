"""A wrapped run: the shim that asks the governance service, the start, the rewriting of configs.

The wrap is real and so is its service; the agent only waits, and this process stands in
for it before a shim that the rewritten config names. Variants take turns.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.figure import Figure, percentile
from bench.pipes import ECHO_SERVER, PATIENCE_S, Pipe, call, frame, ping

DIRECT: Final = "direct"
SHIM: Final = "shim"

_GATE: Final = str(Path(sys.executable).with_name("thoughtgate"))
_WARM_UP: Final = 200
_BATCH: Final = 25
"""Exchanges of one variant before it is the next one's turn."""
_SERVERS: Final = 50
_WAITING_AGENT: Final = [sys.executable, "-c", "print('up', flush=True); input()"]


class Size(NamedTuple):
    """How much is measured."""

    rounds: int
    starts: int
    runs: int


_FULL: Final = Size(rounds=80, starts=15, runs=10)
_QUICK: Final = Size(rounds=12, starts=5, runs=3)


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure latency, start, memory and rewriting."""
    return measure_sized(_QUICK if quick else _FULL)


def measure_sized(size: Size) -> Iterable[Figure]:
    """Measure this much."""
    with tempfile.TemporaryDirectory() as name:
        machine = _Machine(Path(name))
        with machine.wrap() as command:
            yield from _latency(command, rounds=size.rounds)
            yield from _shim_start(command, times=size.starts)
        yield from _wrap_start(machine, times=size.runs)
        yield from _rewrite(machine, times=size.runs)


class _Machine:
    """A home with an agent's config and a policy of a hundred rules."""

    def __init__(self, top: Path) -> None:
        self.config = top / "mcp.json"
        rules = [{"tool": f"tool_{number}_*", "action": "deny"} for number in range(99)]
        rules.append({"tool": "echo", "action": "forward"})
        policy = {"schema": 1, "default": "deny", "rules": rules}
        (top / "rules.json").write_text(json.dumps(policy), "utf-8")
        self.env = {
            **os.environ,
            "HOME": str(top),
            "THOUGHTGATE_STATE_DIR": str(top / "state"),
            "THOUGHTGATE_CONFIG": str(top / "rules.json"),
        }

    def write(self, servers: int) -> None:
        """Write a config with so many servers."""
        command, *args = ECHO_SERVER
        entries = {
            f"server-{number}": {"command": command, "args": args} for number in range(servers)
        }
        self.config.write_text(json.dumps({"mcpServers": entries}, indent=2), "utf-8")

    def command(self, agent: list[str], *flags: str) -> list[str]:
        """Return the command line of a wrap."""
        told = ["--agent-type", "custom", "--config-path", str(self.config), *flags]
        return [_GATE, "wrap", *told, "--", *agent]

    @contextlib.contextmanager
    def wrap(self) -> Iterator[list[str]]:
        """Run a wrap; yield the command line that its agent would start."""
        self.write(1)
        with Pipe(self.command(_WAITING_AGENT), self.env) as wrap:
            wrap.next_line()
            servers: dict[str, Any] = json.loads(self.config.read_text("utf-8"))["mcpServers"]
            entry = servers["server-0"]
            yield [entry["command"], *entry["args"]]
            wrap.write(b"\n")


def _latency(command: list[str], rounds: int) -> Iterable[Figure]:
    pings: dict[str, list[float]] = {DIRECT: [], SHIM: []}
    calls: dict[str, list[float]] = {DIRECT: [], SHIM: []}
    memory = 0.0
    with Pipe(ECHO_SERVER) as direct, Pipe(command) as shim:
        pipes = {DIRECT: direct, SHIM: shim}
        for pipe in pipes.values():
            pipe.initialize()
            for ident in range(1, _WARM_UP):
                pipe.exchange(call(ident))
        for turn in range(rounds):
            for name, pipe in pipes.items():
                idents = [1000 + turn * _BATCH + number for number in range(_BATCH)]
                pings[name] += [pipe.time_exchange(ping(ident)) for ident in idents]
                calls[name] += [pipe.time_exchange(call(ident)) for ident in idents]
        memory = shim.resident_mb()
    yield from _added("passthrough", pings, bars=(0.3, 2.0))
    yield from _added("governed by the service", calls, bars=(0.8, 10.0))
    yield Figure("shim, memory after a few thousand calls", memory, "MB", 15.0)


def _added(
    what: str, samples: dict[str, list[float]], *, bars: tuple[float, float]
) -> Iterable[Figure]:
    for share, bar in zip((0.5, 0.99), bars, strict=True):
        base = percentile(samples[DIRECT], share) * 1000
        added = percentile(samples[SHIM], share) * 1000 - base
        label = f"{what}: added p{share * 100:.0f}"
        yield Figure(label, added, "ms", bar, note=f"direct {base:.3f} ms")


def _shim_start(command: list[str], times: int) -> Iterable[Figure]:
    """Time a shim to its first forwarded byte, with a server that is there at once."""
    line = frame({"method": "notifications/progress", "params": {"progressToken": 1}})
    before_cat = [*command[: command.index("--") + 1], "cat"]
    bare = [sys.executable, "-c", "import os; os.execvp('cat', ['cat'])"]
    took: dict[str, list[float]] = {"python": [], SHIM: []}
    for _ in range(times):
        for name, start in (("python", bare), (SHIM, before_cat)):
            began = time.perf_counter()
            with Pipe(start) as pipe:
                pipe.exchange(line)
                took[name].append((time.perf_counter() - began) * 1000)
    note = f"an interpreter alone: {statistics.median(took['python']):.0f} ms"
    median = statistics.median(took[SHIM])
    yield Figure("shim, start to first forwarded byte", median, "ms", 100.0, note=note)


def _wrap_start(machine: _Machine, times: int) -> Iterable[Figure]:
    """Time a wrap until its agent runs, by what the agent's own clock says."""
    took = []
    machine.write(5)
    for _ in range(times):
        began = time.time()
        done = subprocess.run(
            machine.command(["date", "+%s.%N"]),
            env=machine.env,
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        )
        took.append(float(done.stdout) - began)
    yield Figure("start until the agent runs", statistics.median(took), "s", 1.0)


def _rewrite(machine: _Machine, times: int) -> Iterable[Figure]:
    """Time finding, rewriting and writing a config of fifty servers, and putting it back."""
    from thoughtgate.agents.config_paths import Search
    from thoughtgate.agents.discovery import discover
    from thoughtgate.agents.wrapped_configs import WrappedConfigs
    from thoughtgate.wrap.rewritten_entry import make_rewrite
    from thoughtgate.wrap.server_variables import ServerVariables

    machine.write(_SERVERS)
    top = machine.config.parent
    took = []
    for number in range(times):
        began = time.perf_counter()
        plan = discover(Search("custom", machine.env, top, top, machine.config))
        configs = WrappedConfigs(plan, state=top / "state", key=f"bench{number}", started_at="")
        with configs:
            configs.write(
                lambda plan: make_rewrite(plan, machine.env, ServerVariables(plan, machine.env))
            )
            took.append((time.perf_counter() - began) * 1000)
    yield Figure(f"config rewrite, {_SERVERS} servers", statistics.median(took), "ms", 200.0)
