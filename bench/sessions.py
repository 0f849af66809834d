"""A day of work: many wrapped sessions at once, each with many servers, and the memory of them all.

Every wrap is real and so are its shims; the agent starts all its servers, makes one governed call to
each and waits. The servers themselves are not counted.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from bench.figure import Figure
from bench.pipes import ECHO_SERVER, Pipe, proportional_mb

_GATE: Final = str(Path(sys.executable).with_name("thoughtgate"))
_BAR_MB: Final = 2048.0


class Size(NamedTuple):
    """How much is measured."""

    sessions: int
    servers: int


_FULL: Final = Size(sessions=20, servers=10)
_QUICK: Final = Size(sessions=3, servers=3)

_AGENT: Final = """\
import json, subprocess, sys
entries = json.load(open(sys.argv[1]))["mcpServers"].values()
started = [
    subprocess.Popen([one["command"], *one["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for one in entries
]
info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
asked = [("initialize", info), ("tools/call", {"name": "echo", "arguments": {"text": "hi"}})]
for ident, (method, params) in enumerate(asked):
    line = json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}) + "\\n"
    for one in started:
        one.stdin.write(line.encode())
        one.stdin.flush()
    for one in started:
        while json.loads(one.stdout.readline()).get("id") != ident:
            pass
print(json.dumps([one.pid for one in started]), flush=True)
input()
"""


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure the memory of all wraps and shims together."""
    return measure_sized(_QUICK if quick else _FULL)


def measure_sized(size: Size) -> Iterable[Figure]:
    """Measure this much."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        top = Path(name)
        (top / "rules.json").write_text('{"schema": 1, "default": "forward"}', "utf-8")
        env = {
            **os.environ,
            "HOME": name,
            "THOUGHTGATE_STATE_DIR": str(top / "state"),
            "THOUGHTGATE_CONFIG": str(top / "rules.json"),
        }
        wraps = []
        shims: list[int] = []
        for number in range(size.sessions):
            config = _config(top / f"project-{number}", size.servers)
            told = ["--agent-type", "custom", "--config-path", str(config)]
            agent = [sys.executable, "-c", _AGENT, str(config)]
            wrap = stack.enter_context(Pipe([_GATE, "wrap", *told, "--", *agent], env))
            shims += json.loads(wrap.next_line())
            wraps.append(wrap)
        own = [wrap.proportional_mb() for wrap in wraps]
        behind = [proportional_mb(pid) for pid in shims]
        for wrap in wraps:
            wrap.write(b"\n")
    what = f"{size.sessions} sessions of {size.servers} servers"
    yield Figure(f"{what}: all wraps and shims, PSS", sum(own) + sum(behind), "MB", _BAR_MB)
    yield Figure("one wrap, PSS", sum(own) / len(own), "MB", note=f"largest {max(own):.1f} MB")
    yield Figure(
        "one shim, PSS", sum(behind) / len(behind), "MB", note=f"largest {max(behind):.1f} MB"
    )


def _config(folder: Path, servers: int) -> Path:
    folder.mkdir()
    command, *args = ECHO_SERVER
    entries = {f"server-{number}": {"command": command, "args": args} for number in range(servers)}
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    return path
