"""An interactive shell on a pseudo-terminal, with job control, for tests that type into it.

An agent that runs there takes its orders through named pipes, so that the terminal shows only
what a user would see.
"""

import contextlib
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.waiting import PATIENCE_S, read_some

PROMPT = "ready> "


class TerminalShell:
    """A shell in which a test types commands and reads what the terminal shows."""

    def __init__(self, env: Mapping[str, str], cwd: Path) -> None:
        self._near, far = pty.openpty()
        self.shown = ""
        self._seen_to = 0
        told = {**os.environ, **env, "PS1": PROMPT, "TERM": "dumb"}
        command = ["setsid", "--ctty", "bash", "--norc", "--noprofile", "-i"]
        self.process = subprocess.Popen(
            command, stdin=far, stdout=far, stderr=far, env=told, cwd=cwd
        )
        os.close(far)
        self.sees(PROMPT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._near)  # the shell and its jobs are hung up
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def types(self, text: str) -> None:
        """Type characters; a line ends with a line feed."""
        os.write(self._near, text.encode())

    def sees(self, words: str, timeout: float = PATIENCE_S) -> None:
        """Wait until the terminal shows the words, after those that were seen before."""
        deadline = time.monotonic() + timeout
        while words not in self.shown[self._seen_to :]:
            assert time.monotonic() < deadline, f"{words!r} is not in {self.shown!r}"
            if select.select([self._near], [], [], 0.1)[0]:
                self.shown += os.read(self._near, 65536).decode(errors="replace")
        self._seen_to = self.shown.index(words, self._seen_to) + len(words)


class PipedOrders:
    """Orders for an obedient agent whose standard streams are named pipes."""

    def __init__(self, top: Path) -> None:
        self._paths = top / "orders", top / "answers"
        for path in self._paths:
            os.mkfifo(path)
        # Read and write, so that opening waits for nobody.
        self._orders, self._answers = (os.open(path, os.O_RDWR) for path in self._paths)
        self._buffer = b""

    def command(self, agent: Sequence[str]) -> str:
        """Return a line of shell that runs an agent on these pipes."""
        orders, answers = (shlex.quote(str(path)) for path in self._paths)
        return f"exec {shlex.join(agent)} <{orders} >{answers}"

    def receive(self) -> Any:
        """Return the next line of the agent."""
        while b"\n" not in self._buffer:
            self._buffer += read_some(self._answers)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def order(self, what: str, **order: Any) -> Any:
        """Have the agent do something and return what came of it."""
        os.write(self._orders, json.dumps({"do": what, **order}).encode() + b"\n")
        return self.receive()

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Have the agent call a tool and return the whole response."""
        params = {"name": tool, "arguments": arguments}
        return self.order("ask", method="tools/call", params=params)["said"]

    def close(self) -> None:
        """Close the test's ends of the pipes."""
        os.close(self._orders)
        os.close(self._answers)


def end_quietly(pid: int) -> None:
    """Kill a process of the test that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
