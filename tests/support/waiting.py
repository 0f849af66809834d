"""Waiting with a deadline: for a condition, for a call that may block, for a process, for a task.

A test waits through these, so that what never happens fails the test and says what it was.
"""

import asyncio
import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import IO, Any, AnyStr, Final, TypeVar

Answer = TypeVar("Answer")

PATIENCE_S: Final = 60.0
"""Long enough for a loaded machine; a test that needs it all has failed."""

_STEP_S: Final = 0.005
_CHUNK: Final = 65536


def wait_for(
    condition: Callable[[], Answer | None],
    timeout: float = PATIENCE_S,
    *,
    what: str = "the condition",
) -> Answer:
    """Ask until the answer is truthy and return it; fail the test when the time is up."""
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout} s; last: {answer!r}")
        time.sleep(_STEP_S)
    return answer


def within(
    work: Callable[[], Answer], timeout: float = PATIENCE_S, *, what: str = "the call"
) -> Answer:
    """Return what a call that may block returns; fail the test when the time is up.

    The call runs on a thread of its own. One that never returns keeps that thread, which
    ends with the test process.
    """
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout)
    if errors:
        raise errors[0]
    if not answers:
        raise AssertionError(f"{what} did not return within {timeout} s")
    return answers[0]


def read_line(stream: IO[AnyStr] | None, timeout: float = PATIENCE_S) -> AnyStr:
    """Return the next line of a process's stream, empty at its end."""
    assert stream is not None
    return within(stream.readline, timeout, what="reading a line")


def read_some(descriptor: int, size: int = _CHUNK, timeout: float = PATIENCE_S) -> bytes:
    """Return what is there to be read, waiting for the first byte; empty at the end."""
    assert select.select([descriptor], [], [], timeout)[0], f"nothing to read within {timeout} s"
    return os.read(descriptor, size)


def reap(pid: int, timeout: float = PATIENCE_S) -> int:
    """Wait for a child's end and return its exit code; negative for a signal."""
    ended = wait_for(
        lambda: found if (found := os.waitpid(pid, os.WNOHANG))[0] else None,
        timeout,
        what=f"the end of process {pid}",
    )
    return os.waitstatus_to_exitcode(ended[1])


@contextlib.contextmanager
def ending(
    process: subprocess.Popen[AnyStr], timeout: float = PATIENCE_S
) -> Iterator[subprocess.Popen[AnyStr]]:
    """Lend a started process; then close its pipes and wait, and kill it if it stays."""
    try:
        yield process
    finally:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            process.wait(timeout)
        finally:
            process.kill()
            process.wait(timeout)


def run_async(main: Coroutine[Any, Any, Answer], timeout: float = PATIENCE_S) -> Answer:
    """Run a coroutine on an event loop of its own; fail the test when the time is up."""
    return asyncio.run(asyncio.wait_for(main, timeout))
