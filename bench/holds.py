"""Calls that wait for people: what each costs, and whether others notice.

Two shims before the same kind of server, side by side: one holds a thousand calls, one
holds none. Forwarded calls go to both in turns, so that whatever else the machine does
hits both alike.

Ten calls of 9 MB show what a large held call costs: its frame, and little besides.
"""

import contextlib
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from bench.figure import Figure, percentile
from bench.pipes import ECHO_SERVER, SHIM, Pipe, call

HELD: Final = 1000
WARM_UP: Final = 300
"""Calls before memory is first read: what grows with use must not count as a hold's."""

LARGE: Final = 10
LARGE_BYTES: Final = 9_000_000
LARGE_ARGUMENTS: Final[dict[str, dict[str, object]]] = {
    "one text": {"text": "x" * LARGE_BYTES},
    "many small values": {"list": [{"a": n % 10} for n in range(LARGE_BYTES // 8)]},
}

CONFIG: Final = {
    "schema": 1,
    "default": "forward",
    "rules": [{"tool": "delete_note", "action": "approve"}],
    "holds": {"connection": 2000, "principal": 2000, "total": 2000},
    "approval": {"default": {"timeout": "1h"}},
}


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure memory a hold, and forwarded calls beside them."""
    rounds = 3_000 if quick else 20_000
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        busy = stack.enter_context(_shim(Path(folder, "busy")))
        idle = stack.enter_context(_shim(Path(folder, "idle")))
        for number in range(WARM_UP):
            for pipe in (busy, idle):
                pipe.exchange(call(number + 1))
        before_mb = busy.resident_mb()
        began = time.perf_counter()
        for number in range(HELD):
            # Nothing is answered while it waits.
            busy.write(call(100_000 + number, "delete_note"))
        _wait_until_held(Path(folder, "busy", "state"), HELD)
        took_s = time.perf_counter() - began
        after_mb = busy.resident_mb()
        beside, alone = _forward(busy, idle, rounds)
    each_kb = (after_mb - before_mb) * 1024 / HELD
    yield Figure("memory a held call, of 1,000", each_kb, "KB", 20.0)
    yield Figure("calls held a second", HELD / took_s, "/s")
    ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
    yield Figure(
        "forwarded p99 beside 1,000 holds", ratio, "x", 1.10, note="against a shim with none"
    )
    yield Figure(
        "forwarded p50 beside 1,000 holds", percentile(beside, 0.5) / percentile(alone, 0.5), "x"
    )
    yield from _measure_large()


def _measure_large() -> Iterable[Figure]:
    """Measure the memory of large calls that are held, and of one more shim for each shape."""
    for shape, arguments in LARGE_ARGUMENTS.items():
        with tempfile.TemporaryDirectory() as folder, _shim(Path(folder, "large")) as pipe:
            for number in range(WARM_UP):
                pipe.exchange(call(number + 1))
            before_mb = pipe.resident_mb()
            for number in range(LARGE):
                pipe.write(_large_call(100_000 + number, arguments))
            _wait_until_held(Path(folder, "large", "state"), LARGE)
            # An answer shows that the shim has finished its turn with the last of them.
            pipe.exchange(call(200_000))
            each_mb = (pipe.resident_mb() - before_mb) / LARGE
        name = f"memory a held call of 9 MB, of {LARGE} ({shape})"
        yield Figure(name, each_mb, "MB", 12.0)


def _large_call(ident: int, arguments: object) -> bytes:
    params = {"name": "delete_note", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


@contextlib.contextmanager
def _shim(folder: Path) -> Iterator[Pipe]:
    folder.mkdir()
    config = folder / "bench.json"
    config.write_text(json.dumps(CONFIG), "utf-8")
    environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(folder / "state")}
    state = ["--state-dir", str(folder / "state")]
    with Pipe([*SHIM, "-c", str(config), *state, "--", *ECHO_SERVER], environ) as pipe:
        pipe.initialize()
        yield pipe


def _wait_until_held(state: Path, count: int) -> None:
    """Wait until all calls are questions in the store."""
    query = "SELECT count(*) FROM approvals WHERE status = 'pending'"
    with contextlib.closing(sqlite3.connect(state / "thoughtgate.db", timeout=5)) as store:
        while store.execute(query).fetchone()[0] < count:
            time.sleep(0.01)


def _forward(busy: Pipe, idle: Pipe, rounds: int) -> tuple[list[float], list[float]]:
    beside: list[float] = []
    alone: list[float] = []
    for number in range(rounds):
        line = call(200_000 + number)
        beside.append(busy.time_exchange(line))
        alone.append(idle.time_exchange(line))
    return beside, alone
