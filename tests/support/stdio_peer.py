"""A real process on pipes: write lines to it, read lines from it, be sure that it is gone.

Works for an agent's side of the shim, for servers, and for any other command. Every
wait has a deadline. Processes that a peer started, and those that these started, are
found by a mark in their environment, so nothing can hide by changing its group.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from tests.support.waiting import PATIENCE_S, wait_for
from tests.support.warm_command import MARK, start_command

_CHUNK: Final = 65536


class StdioPeer:
    """One started process and its three pipes."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        unset: Sequence[str] = (),
        is_warm: bool = True,
    ) -> None:
        """Start a command, a gate without its start-up time unless ``is_warm`` says otherwise.

        Whoever looks at a warm gate from outside sees another command line.
        """
        self.mark = uuid.uuid4().hex
        full = {**os.environ, **(env or {}), MARK: self.mark}
        for name in unset:
            full.pop(name, None)
        self._begun = time.clock_gettime(time.CLOCK_BOOTTIME) - 1.0
        self.process = start_command(command, env=full, cwd=cwd, is_warm=is_warm)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._ended = False
        self._threads = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.destroy()

    @property
    def pid(self) -> int:
        """The process id of what was started."""
        return self.process.pid

    @property
    def stderr(self) -> str:
        """Everything the process wrote to its standard error so far."""
        return b"".join(self._errors).decode("utf-8", "backslashreplace")

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def write_line(self, line: bytes) -> None:
        """Write bytes and a line end."""
        self.write(line + b"\n")

    def send(self, body: Any) -> None:
        """Write a JSON value as one line."""
        self.write_line(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())

    def read_line(self, timeout: float = PATIENCE_S) -> bytes | None:
        """Return the next line without its end, None at the end of the stream."""
        if self._ended:
            return None
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(
                f"no line within {timeout} s; standard error: {self.stderr}"
            ) from None
        self._ended = line is None
        return line

    def receive(self, timeout: float = PATIENCE_S) -> Any:
        """Return the next line as JSON; fail at the end of the stream."""
        line = self.read_line(timeout)
        assert line is not None, f"the stream has ended; standard error: {self.stderr}"
        return json.loads(line)

    def receive_answer(self, ident: int | str, timeout: float = PATIENCE_S) -> Any:
        """Skip messages up to the response with this id, and return it."""
        while True:
            body = self.receive(timeout)
            if "method" not in body and body.get("id") == ident:
                return body

    def ask(self, body: dict[str, Any], timeout: float = PATIENCE_S) -> Any:
        """Send a request and return its response, skipping what comes before it."""
        self.send(body)
        return self.receive_answer(body["id"], timeout)

    def remaining_lines(self, timeout: float = PATIENCE_S) -> list[bytes]:
        """Return all lines up to the end of the stream."""
        lines = []
        while (line := self.read_line(timeout)) is not None:
            lines.append(line)
        return lines

    def close_stdin(self) -> None:
        """Close the process's standard input."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def signal(self, number: int) -> None:
        """Send a signal to the started process alone."""
        self.process.send_signal(number)

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """Return the exit code; negative for a signal."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"still running after {timeout} s; standard error: {self.stderr}"
            ) from None

    def finish(self, timeout: float = PATIENCE_S) -> int:
        """Close standard input, wait, and collect what is still to be read."""
        self.close_stdin()
        code = self.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return code

    def wait_for_stderr(self, text: str, timeout: float = PATIENCE_S) -> None:
        """Wait until the standard error holds a text."""
        wait_for(lambda: text in self.stderr, timeout, what=f"{text!r} on standard error")

    def descendants(self) -> list[int]:
        """Return the living processes that carry this peer's mark, but for the first itself."""
        return [pid for pid in marked_processes(self.mark) if pid != self.pid]

    def assert_nothing_left(self, timeout: float = PATIENCE_S) -> None:
        """Fail unless every process that this peer brought about has ended."""
        wait_for(
            lambda: not any(marked_processes(self.mark, begun=self._begun)),
            timeout,
            what="the end of all processes",
        )

    def destroy(self) -> None:
        """Kill everything that is left and close the pipes. Safe to call twice."""
        for pid in marked_processes(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _read_lines(self) -> None:
        held = b""
        for chunk in _chunks(self.process.stdout):
            *lines, held = (held + chunk).split(b"\n")
            for line in lines:
                self._lines.put(line)
        if held:
            self._lines.put(held)
        self._lines.put(None)

    def _read_errors(self) -> None:
        for chunk in _chunks(self.process.stderr):
            self._errors.append(chunk)


def _chunks(pipe: IO[bytes] | None) -> Iterator[bytes]:
    assert pipe is not None
    with contextlib.suppress(OSError, ValueError):
        while chunk := os.read(pipe.fileno(), _CHUNK):
            yield chunk


def marked_processes(mark: str, *, begun: float | None = None) -> Iterator[int]:
    """Yield the ids of living processes whose environment holds a mark.

    In the middle of an exec a process has no environment to look at. With ``begun``, a time
    since the system's start, those count that are not older: whoever waits for the end of
    all must not take them for gone.
    """
    needle = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        # A process may end, or belong to somebody else, between listing and reading.
        with contextlib.suppress(OSError):
            marks = (entry / "environ").read_bytes().split(b"\0")
            found = needle in marks or (
                begun is not None and marks == [b""] and _started(entry) >= begun
            )
            if found and not _is_dead(entry):
                yield int(entry.name)


def _started(entry: Path) -> float:
    """When a process was forked, in seconds since the system's start."""
    return int(_stat(entry)[19]) / os.sysconf("SC_CLK_TCK")


def _is_dead(entry: Path) -> bool:
    """A zombie has ended; only its parent has not asked yet."""
    return _stat(entry)[0] in {"Z", "X"}


def _stat(entry: Path) -> list[str]:
    return (entry / "stat").read_text().rpartition(")")[2].split()
