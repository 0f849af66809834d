"""An agent for tests of ``wrap``: starts the servers of a config and does what it is told.

It reads its orders as JSON lines from standard input and answers each with one on standard
output. Under ``wrap`` both are the test's own pipes, as a user's terminal would be.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thoughtgate.agents.documents import parse_document
from thoughtgate.agents.entries import Format
from thoughtgate.errors import PeerGone
from thoughtgate.testing.scripted_agent import ScriptedAgent

Order = dict[str, Any]


class ObedientAgent:
    """Carries out orders."""

    def __init__(self, config: Path, key: str) -> None:
        self._config = config
        self._key = key
        self._servers: dict[str, ScriptedAgent] = {}
        self._orders: dict[str, Callable[[Order], Any]] = {
            "open": self._open,
            "ask": self._ask,
            "send": self._send,
            "wait": lambda order: self._of(order).wait_for(order["id"]),
            "raw": lambda order: self._of(order).send_raw(order["text"]),
            "notify": self._notify,
            "notifications": lambda order: self._of(order).notifications,
            "close": lambda order: self._of(order).close(),
            "stop": self._stop,
            "text": lambda _: self._config.read_text("utf-8"),
            "write": lambda order: self._config.write_text(order["text"], "utf-8"),
            "environment": lambda order: os.environ.get(order["name"]),
            "run": lambda order: _run(order["command"]),
            "exit": lambda order: os._exit(order["code"]),
        }

    def obey(self, order: Order) -> Any:
        """Carry out one order and return what came of it."""
        return self._orders[order["do"]](order)

    def _of(self, order: Order) -> ScriptedAgent:
        return self._servers[order.get("server", "sample")]

    def _open(self, order: Order) -> dict[str, Any]:
        for name, entry in self.servers().items():
            if "command" in entry:
                env = {**os.environ, **entry.get("env", {})}
                command = [entry["command"], *entry.get("args", [])]
                self._servers[name] = ScriptedAgent(command, env=env)
        if not order.get("greet", True):
            return {name: {"pid": one._process.pid} for name, one in self._servers.items()}
        return {
            name: {"pid": one._process.pid, "answer": one.open()}
            for name, one in self._servers.items()
        }

    def servers(self) -> dict[str, Any]:
        """Return the entries of the config."""
        form: Format = "toml" if self._config.suffix == ".toml" else "json"
        values = parse_document(self._config.read_bytes(), form, file=str(self._config)).values
        servers: dict[str, Any] = values[self._key]
        return servers

    def _ask(self, order: Order) -> Any:
        return self._of(order).ask(order["method"], order.get("params"))

    def _send(self, order: Order) -> int:
        return self._of(order).send(order["method"], order.get("params"))

    def _notify(self, order: Order) -> None:
        self._of(order).notify(order["method"], order.get("params"))

    def _stop(self, order: Order) -> list[int]:
        """Stop a server as agents do: signals at times, without closing its input."""
        process = self._of(order)._process
        began = time.monotonic()
        for at_s, name in order["signals"]:
            try:
                process.wait(max(0.0, began + at_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.send_signal(getattr(signal, name))
        return [process.wait(10)]


def _run(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def main() -> int:
    """Obey until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--key", default="mcpServers")
    parser.add_argument("--ignore", action="append", default=[], help="signals to ignore")
    options = parser.parse_args()
    for name in options.ignore:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    return take_orders(ObedientAgent(options.config, options.key))


def take_orders(agent: ObedientAgent) -> int:
    """Obey until the input ends."""
    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in sys.stdin:
        try:
            said = {"said": agent.obey(json.loads(line))}
        except PeerGone as gone:
            said = {"gone": str(gone)}
        print(json.dumps(said), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
