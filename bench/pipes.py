"""Processes on pipes, as fast as Python lets a client be: the measuring end of the stdio benches."""

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

CHUNK: Final = 1 << 20
STUCK_S: Final = 0.3
"""A writer that makes no progress for so long has filled every pipe before it."""

PATIENCE_S: Final = 60.0
"""A process that writes nothing for so long will not answer any more."""

ECHO_SERVER: Final = [sys.executable, "-m", "thoughtgate.testing.sample_server"]
SHIM: Final = [str(Path(sys.executable).with_name("thoughtgate")), "shim", "--server-id", "sample"]

# One write for each read, without a buffer of its own: no answer is kept back, however few.
_ANSWER_ALL: Final = """\
import json, os
held = b""
while chunk := os.read(0, 65536):
    *lines, held = (held + chunk).split(b"\\n")
    idents = [json.loads(line).get("id") for line in lines]
    answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\\n'
    answers = memoryview(b"".join(answer % ident for ident in idents if ident is not None))
    while answers:
        answers = answers[os.write(1, answers):]
"""

BULK_SERVER: Final = [sys.executable, "-c", _ANSWER_ALL]
"""Answers every request with an empty result, and is not what limits a gate before it."""


def frame(body: dict[str, Any]) -> bytes:
    """Return a JSON-RPC body as one line."""
    return json.dumps({"jsonrpc": "2.0", **body}, separators=(",", ":")).encode() + b"\n"


def ping(ident: int) -> bytes:
    """Return a request that no gate judges."""
    return frame({"id": ident, "method": "ping"})


def call(ident: int, tool: str = "echo") -> bytes:
    """Return a tool call of ordinary size."""
    arguments = {"text": "The quick brown fox jumps over the lazy dog", "number": ident}
    params = {"name": tool, "arguments": arguments}
    return frame({"id": ident, "method": "tools/call", "params": params})


class Pipe:
    """One started process; every read and write is a single system call where it can be."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in = self.process.stdin.fileno()
        self._out = self.process.stdout.fileno()
        self._held = b""
        self._readable = select.poll()
        self._readable.register(self._out, select.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def initialize(self) -> None:
        """Open a session of the legacy era."""
        client = {"name": "bench", "version": "0"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self.exchange(frame({"id": 0, "method": "initialize", "params": params}))
        os.write(self._in, frame({"method": "notifications/initialized"}))

    def exchange(self, line: bytes) -> bytes:
        """Write a line and return the next one that comes."""
        self.write(line)
        return self.next_line()

    def write(self, line: bytes) -> None:
        """Write a line."""
        os.write(self._in, line)

    def next_line(self) -> bytes:
        """Return the next line that comes."""
        while b"\n" not in self._held:
            chunk = self._read()
            if not chunk:
                raise RuntimeError("the process has ended")
            self._held += chunk
        answer, _, self._held = self._held.partition(b"\n")
        return answer

    def _read(self) -> bytes:
        """Return what has come, empty at the end of the stream.

        Raises:
            TimeoutError: nothing has come for ``PATIENCE_S``.
        """
        if not self._readable.poll(PATIENCE_S * 1000):
            raise TimeoutError(f"the process has written nothing for {PATIENCE_S:.0f} s")
        return os.read(self._out, CHUNK)

    def time_exchange(self, line: bytes) -> float:
        """Return the seconds between a line and its answer."""
        start = time.perf_counter()
        self.exchange(line)
        return time.perf_counter() - start

    def pump(
        self, lines: Sequence[bytes], *, fill_first: bool = False
    ) -> tuple[float, list[bytes]]:
        """Write many lines while reading as many; return the seconds and what came.

        With ``fill_first`` nothing is read until the writer is stuck, so that the pipes of
        both directions are full when reading begins.
        """
        progress = [0]
        writer = threading.Thread(target=self._write_all, args=(lines, progress), daemon=True)
        start = time.perf_counter()
        writer.start()
        if fill_first:
            self._wait_until_stuck(writer, progress)
        got: list[bytes] = []
        while len(got) < len(lines):
            chunk = self._read()
            if not chunk:
                break
            *whole, self._held = (self._held + chunk).split(b"\n")
            got += whole
        writer.join(10)
        return time.perf_counter() - start, got

    def _write_all(self, lines: Sequence[bytes], progress: list[int]) -> None:
        for at in range(0, len(lines), 500):
            data = memoryview(b"".join(lines[at : at + 500]))
            while data:
                written = os.write(self._in, data[:65536])
                data = data[written:]
                progress[0] += written

    @staticmethod
    def _wait_until_stuck(writer: threading.Thread, progress: list[int]) -> None:
        before = -1
        deadline = time.monotonic() + PATIENCE_S
        while writer.is_alive() and progress[0] != before and time.monotonic() < deadline:
            before = progress[0]
            writer.join(STUCK_S)

    def proportional_mb(self) -> float:
        """Return the memory of the process, with pages that others use too counted by share (PSS)."""
        return proportional_mb(self.process.pid)

    def resident_mb(self) -> float:
        """Return the resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


def proportional_mb(pid: int) -> float:
    """Return the memory of a process, with pages that others use too counted by share (PSS)."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
    line = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024
