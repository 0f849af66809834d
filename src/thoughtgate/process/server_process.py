"""A server as a child process that never outlives its gate.

The child leads its own process group, so that everything it starts can be stopped with it. A
guardian ends that group if the gate itself is killed.

Neither threads nor ``subprocess`` are used: they would exceed the shim's memory budget, and only
a process without threads can fork safely.
"""

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Final

from thoughtgate.process.guardian import Guardian
from thoughtgate.process.launch import launch

TERM_GRACE_S: Final = 2.0
"""From SIGTERM to SIGKILL for the server."""

SWEEP_GRACE_S: Final = 0.2
"""From SIGTERM to SIGKILL for processes that an ended server left in its group."""

EOF_GRACE_S: Final = 5.0
"""From a closed stdin to SIGTERM."""

_PIPE_SIZE: Final = 1024 * 1024
_F_SETPIPE_SZ: Final = 1031
"""From ``linux/fcntl.h``; other systems refuse it."""


class ServerProcess:
    """A running server process with its pipes and its process group."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start the server.

        Raises:
            OSError: it cannot be started; nothing is left behind.
        """
        child_in, self.stdin = os.pipe()
        self.stdout, child_out = os.pipe()
        self.guardian = Guardian()
        try:
            self.pid = launch(command, environ, self._lead_group, stdin=child_in, stdout=child_out)
        except OSError:
            self.guardian.dismiss()
            for descriptor in (self.stdin, self.stdout):
                os.close(descriptor)
            raise
        finally:
            os.close(child_in)
            os.close(child_out)
        self.returncode: int | None = None
        for descriptor in (self.stdin, self.stdout):
            os.set_blocking(descriptor, False)
            _enlarge(descriptor)

    def _lead_group(self) -> None:
        """Runs in the child: create a process group and register it with the guardian."""
        os.setpgid(0, 0)
        self.guardian.watch(os.getpid())

    def poll(self) -> int | None:
        """Return the exit code once the server has ended, 128 + n if signal n ended it."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.returncode = 0
                return 0
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.returncode = code if code >= 0 else 128 - code
        return self.returncode

    def signal(self, number: int) -> None:
        """Send a signal to the server and everything it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def has_group(self) -> bool:
        """Tell whether any process of the server's group still runs."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return self.returncode is None
        return True

    def sweep(self) -> None:
        """End the remaining processes of the group, after the server itself has ended."""
        if self.has_group():
            self.signal(signal.SIGTERM)
            deadline = time.monotonic() + SWEEP_GRACE_S
            while self.has_group() and time.monotonic() < deadline:
                time.sleep(0.005)
            self.signal(signal.SIGKILL)
        self.guardian.dismiss()


def _enlarge(descriptor: int) -> None:
    """Enlarge a pipe where the system supports it, for fewer wake-ups under load."""
    import fcntl

    with contextlib.suppress(OSError, ValueError):
        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_SIZE)
