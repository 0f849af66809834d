"""The standalone shim beside the bare server and beside FastMCP's stdio proxy, in one run.

Variants take turns, so that whatever else the machine does meets them all; what is
reported is what a variant adds to the bare server.
"""

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench.figure import Figure, percentile
from bench.pipes import BULK_SERVER, ECHO_SERVER, SHIM, Pipe, call, frame, ping

DIRECT: Final = "direct"
RULES: Final = "100 rules"
CEDAR: Final = "20 Cedar policies"
FASTMCP: Final = "FastMCP proxy"

_PROXY: Final = (
    "import sys\n"
    "from fastmcp.client.transports import StdioTransport\n"
    "from fastmcp.server import create_proxy\n"
    "create_proxy(StdioTransport(sys.argv[1], sys.argv[2:])).run(show_banner=False)\n"
)

_BATCH: Final = 25
"""Exchanges of one variant before it is the next one's turn."""


class Size(NamedTuple):
    """How much is measured."""

    rounds: int
    messages: int
    calls: int
    starts: int
    warm_up: int = 200


_FULL: Final = Size(rounds=80, messages=100_000, calls=50_000, starts=15)
_QUICK: Final = Size(rounds=12, messages=20_000, calls=50_000, starts=5)


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure latency, throughput, start and memory."""
    return measure_sized(_QUICK if quick else _FULL)


def measure_sized(size: Size) -> Iterable[Figure]:
    """Measure this much."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_configs(folder)
        yield from _latency(folder, size.rounds, size.warm_up)
        yield from _throughput(folder, messages=size.messages)
        yield from _pipelined(folder, calls=size.calls)
        yield from _start(folder, times=size.starts)


def _write_configs(folder: Path) -> None:
    rules = [{"tool": f"tool_{number}_*", "action": "deny"} for number in range(99)]
    rules.append({"tool": "echo", "action": "forward"})
    config = {"schema": 1, "default": "deny", "rules": rules}
    (folder / "rules.json").write_text(json.dumps(config))
    lines = (f"  - {json.dumps(rule)}" for rule in rules)
    (folder / "rules.yaml").write_text("\n".join(["schema: 1", "default: deny", "rules:", *lines]))
    policies = [
        f'permit (principal, action, resource == Tool::"sample/tool_{number}")\n'
        f"when {{ context.arguments has number && context.arguments.number < {number} }};"
        for number in range(19)
    ]
    policies.append('permit (principal, action, resource == Tool::"sample/echo");')
    (folder / "bench.cedar").write_text("\n".join(policies))
    config = {
        "schema": 1,
        "default": "deny",
        "rules": [{"tool": "*", "action": "policy"}],
        "cedar": {"policies": ["bench.cedar"]},
    }
    (folder / "cedar.json").write_text(json.dumps(config))


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "THOUGHTGATE_STATE_DIR": str(folder / "state")}


def _shim(folder: Path, config: str, server: list[str]) -> Pipe:
    state = ["--state-dir", str(folder / "state")]
    command = [*SHIM, "-c", str(folder / config), *state, "--", *server]
    return Pipe(command, _environment(folder))


@contextlib.contextmanager
def _variants(folder: Path, warm_up: int) -> Iterator[dict[str, Pipe]]:
    with contextlib.ExitStack() as stack:
        pipes = {
            DIRECT: stack.enter_context(Pipe(ECHO_SERVER)),
            RULES: stack.enter_context(_shim(folder, "rules.json", ECHO_SERVER)),
            CEDAR: stack.enter_context(_shim(folder, "cedar.json", ECHO_SERVER)),
            FASTMCP: stack.enter_context(Pipe([sys.executable, "-c", _PROXY, *ECHO_SERVER])),
        }
        for pipe in pipes.values():
            pipe.initialize()
            for ident in range(1, warm_up):
                pipe.exchange(call(ident))
        yield pipes


def _latency(folder: Path, rounds: int, warm_up: int) -> Iterable[Figure]:
    pings: dict[str, list[float]] = {}
    calls: dict[str, list[float]] = {}
    with _variants(folder, warm_up) as pipes:
        for turn in range(rounds):
            for name, pipe in pipes.items():
                idents = [1000 + turn * _BATCH + number for number in range(_BATCH)]
                if name != FASTMCP:  # it answers pings itself
                    took = [pipe.time_exchange(ping(ident)) for ident in idents]
                    pings.setdefault(name, []).extend(took)
                took = [pipe.time_exchange(call(ident)) for ident in idents]
                calls.setdefault(name, []).extend(took)
    yield from _added("passthrough", pings, RULES, bars=(0.3, 2.0))
    yield from _added("governed", calls, RULES, bars=(0.4, 10.0))
    yield from _added("governed", calls, CEDAR, bars=(0.6, 10.0))
    yield from _added("forwarded", calls, FASTMCP, bars=(None, None))
    ratio = _over(calls, FASTMCP, 0.5) / max(_over(calls, RULES, 0.5), 1e-9)
    yield Figure("FastMCP's added p50 over the shim's", ratio, "times", note="governed calls")


def _over(samples: dict[str, list[float]], name: str, share: float) -> float:
    return percentile(samples[name], share) - percentile(samples[DIRECT], share)


def _added(
    what: str,
    samples: dict[str, list[float]],
    name: str,
    *,
    bars: tuple[float | None, float | None],
) -> Iterable[Figure]:
    for share, bar in zip((0.5, 0.99), bars, strict=True):
        base = percentile(samples[DIRECT], share) * 1000
        note = f"direct {base:.3f} ms"
        label = f"{what}, {name}: added p{share * 100:.0f}"
        yield Figure(label, _over(samples, name, share) * 1000, "ms", bar, note=note)


def _throughput(folder: Path, messages: int) -> Iterable[Figure]:
    params = {"progressToken": "t", "progress": 1, "message": "this many are done by now"}
    lines = [frame({"method": "notifications/progress", "params": params})] * messages
    rates: dict[str, list[float]] = {}
    for _ in range(3):
        for name, pipe in (
            (DIRECT, Pipe(["cat"])),
            ("shim", _shim(folder, "rules.json", ["cat"])),
        ):
            with pipe:
                pipe.exchange(lines[0])
                seconds, got = pipe.pump(lines)
            rates.setdefault(name, []).append(2 * len(got) / seconds)
    rate, bare = (statistics.median(rates[name]) for name in ("shim", DIRECT))
    note = f"each is parsed, recorded and forwarded; cat alone: {bare:,.0f}"
    yield Figure("messages parsed and forwarded", rate, "a second", 50_000, True, note)


def _pipelined(folder: Path, calls: int) -> Iterable[Figure]:
    lines = [call(ident) for ident in range(1, calls + 1)]
    with Pipe(BULK_SERVER) as bare:
        alone, _ = bare.pump(lines, fill_first=True)
    with _shim(folder, "rules.json", BULK_SERVER) as pipe:
        seconds, got = pipe.pump(lines, fill_first=True)
    answered = {json.loads(line).get("id") for line in got}
    lost = calls - len(answered & set(range(1, calls + 1)))
    yield Figure(f"{calls:,} pipelined calls, both pipes full: lost", lost, "calls", 0)
    note = f"direct {calls / alone:,.0f}"
    yield Figure("pipelined governed calls", calls / seconds, "a second", note=note)


def _start(folder: Path, times: int) -> Iterable[Figure]:
    line = frame(
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    )
    starts: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    bare = [sys.executable, "-c", "import os; os.execvp('cat', ['cat'])"]
    for _ in range(times):
        for name in ("python", "rules.json", "rules.yaml"):
            began = time.perf_counter()
            pipe = Pipe(bare) if name == "python" else _shim(folder, name, ["cat"])
            with pipe:
                pipe.exchange(line)
                starts.setdefault(name, []).append((time.perf_counter() - began) * 1000)
                memory.setdefault(name, []).append(pipe.proportional_mb())
    middle = {name: statistics.median(taken) for name, taken in starts.items()}
    note = (
        f"an interpreter alone: {middle['python']:.0f} ms; this one loads config and gates itself"
    )
    for name, words in (("rules.json", ""), ("rules.yaml", " with a YAML config")):
        start, size = middle[name], statistics.median(memory[name])
        yield Figure(
            f"standalone shim{words}, start to first forwarded byte", start, "ms", note=note
        )
        yield Figure(f"standalone shim{words}, memory", size, "MB", note="PSS, with its gates")
