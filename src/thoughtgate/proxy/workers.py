"""Keeps the workers of a proxy running: a worker that ends is started again.

The others continue to serve in the meantime. If a worker repeatedly fails to start, all workers
stop: the reason is on stderr, and a supervisor of the proxy sees the exit code.
"""

import contextlib
import os
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from thoughtgate.gate.clock import monotonic

STARTED_S: Final = 10.0
"""A worker that has lived this long has started."""

MAX_FAILED_STARTS: Final = 5
"""Failed starts in a row after which all workers are stopped."""

FIRST_PAUSE_S: Final = 0.25
MAX_PAUSE_S: Final = 30.0
"""A worker is started again after a pause, which doubles with every early end."""

_MAX_DOUBLINGS: Final = 16
"""More than it takes to reach the longest pause; a float overflows at about a thousand."""


@dataclass(slots=True)
class _Worker:
    pid: int = 0
    """0 while it does not run."""
    is_told: bool = False
    """Whether it was told to stop; a second signal would end it before it has drained."""
    started_at: float = 0.0
    restart_at: float = 0.0
    early_ends: int = 0
    """How many times in a row it ended soon after its start."""
    failed_starts: int = 0
    """How many times in a row it ended early with an exit code of its own, not by a signal."""


class Workers:
    """A number of processes that run the same command."""

    def __init__(
        self,
        count: int,
        launch: Callable[[], int],
        announce: Callable[[str], None],
        *,
        on_end: Callable[[int], None] = lambda _pid: None,
    ) -> None:
        """Prepare; ``launch`` starts a worker and returns its process id.

        ``announce`` tells the operator what happened, and ``on_end`` is called with the process id
        of each worker that has ended.
        """
        self._launch = launch
        self._announce = announce
        self._on_end = on_end
        self._workers = [_Worker() for _ in range(count)]
        self._is_stopping = False
        self._code = 0

    def run(self) -> int:
        """Run until SIGINT, SIGTERM or a worker that cannot start; return the exit code.

        Raises:
            OSError: a worker cannot be launched at all.
        """
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        # A signal writes to the pipe, so none is missed between a check and the wait.
        previous = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._stop())
        try:
            while True:
                self._start_due()
                if self._is_stopping:
                    self._stop()  # again: a worker may just have been started when the signal came
                self._reap()
                if self._is_stopping and not any(one.pid for one in self._workers):
                    return self._code
                select.select([woken], [], [], self._pause())
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 512)
        finally:
            signal.set_wakeup_fd(previous)
            os.close(woken)
            os.close(wake)

    def _stop(self) -> None:
        self._is_stopping = True
        for one in self._workers:
            if one.pid and not one.is_told:
                one.is_told = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGTERM)

    def _pause(self) -> float | None:
        """Return how long to wait for a signal; None to wait until one arrives."""
        if self._is_stopping:
            return None
        waits = [one.restart_at - monotonic() for one in self._workers if not one.pid]
        return max(0.0, min(waits)) if waits else None

    def _start_due(self) -> None:
        for one in self._workers:
            if not self._is_stopping and not one.pid and one.restart_at <= monotonic():
                one.pid = self._launch()
                one.started_at = monotonic()

    def _reap(self) -> None:
        for one in self._workers:
            if not one.pid:
                continue
            pid, status = os.waitpid(one.pid, os.WNOHANG)
            if pid:
                one.pid = 0
                self._on_end(pid)
                self._ended(one, pid, os.waitstatus_to_exitcode(status))

    def _ended(self, one: _Worker, pid: int, code: int) -> None:
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        if self._is_stopping:
            if code:
                self._announce(f"worker {pid} ended {how}")
                self._code = self._code or min(abs(code), 2)
            return
        if monotonic() - one.started_at >= STARTED_S:
            one.early_ends = one.failed_starts = 0
        pause_s = min(FIRST_PAUSE_S * 2 ** min(one.early_ends, _MAX_DOUBLINGS), MAX_PAUSE_S)
        one.early_ends += 1
        # A worker that was killed says nothing about whether the next one can start.
        one.failed_starts = one.failed_starts + 1 if code > 0 else 0
        if one.failed_starts >= MAX_FAILED_STARTS:
            self._announce(
                f"worker {pid} ended {how}; it failed to start {MAX_FAILED_STARTS} times in a row,"
                " so all workers stop; its own messages above say why"
            )
            # The proxy has no other exit codes for failures than 1 and 2 (see ``errors``).
            self._code = min(code, 2)
            self._stop()
            return
        one.restart_at = monotonic() + pause_s
        self._announce(f"worker {pid} ended {how}; another starts in {pause_s:g} s")
