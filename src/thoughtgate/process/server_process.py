"""A server as a child process that never outlives its gate.

The child leads a process group of its own, so that everything it starts can be stopped
with it, and a guardian ends that group when the gate itself is killed.

No threads and no ``subprocess``: the shim's memory budget has no room for them, and a
process without threads may fork.
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
"""From SIGTERM to SIGKILL."""

EOF_GRACE_S: Final = 5.0
"""From a closed stdin to SIGTERM."""

_PIPE_SIZE: Final = 1024 * 1024
_F_SETPIPE_SZ: Final = 1031


class Server:
    """A running server: its pipes, its group and its end."""

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
        """In the child: have a group of its own, and tell the guardian of it."""
        os.setpgid(0, 0)
        self.guardian.watch(os.getpid())

    def poll(self) -> int | None:
        """Return the exit code once the server has ended: 128 + n when signal n ended it."""
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
        """Tell whether anything of the server's group is still there."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return self.returncode is None
        return True

    def sweep(self) -> None:
        """Make sure that nothing of the group is left, once the server itself has ended."""
        if self.has_group():
            self.signal(signal.SIGTERM)
            deadline = time.monotonic() + 0.2
            while self.has_group() and time.monotonic() < deadline:
                time.sleep(0.005)
            self.signal(signal.SIGKILL)
        self.guardian.dismiss()


def _enlarge(descriptor: int) -> None:
    """Ask for a larger pipe, where the system has such a thing: fewer wake-ups under load."""
    import fcntl

    with contextlib.suppress(OSError, ValueError):
        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_SIZE)
