"""A server as a child process that never outlives its gate.

The child leads a process group of its own, so that everything it starts can be stopped
with it. A guardian, forked before anything heavy is loaded, holds one end of a pipe and
kills the group when the gate's end closes: SIGKILL of the gate included, on every Unix,
without a parent-death signal that grandchildren would not inherit.

No threads and no ``subprocess``: the shim's memory budget has no room for them, and a
process without threads may fork.
"""

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Final

TERM_GRACE_S: Final = 2.0
"""From SIGTERM to SIGKILL."""

EOF_GRACE_S: Final = 5.0
"""From a closed stdin to SIGTERM."""

_PIPE_SIZE: Final = 1024 * 1024
_F_SETPIPE_SZ: Final = 1031
_RESET: Final = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


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
            self.pid = os.posix_spawnp(
                command[0],
                list(command),
                dict(environ),
                file_actions=[(os.POSIX_SPAWN_DUP2, child_in, 0), (os.POSIX_SPAWN_DUP2, child_out, 1)],
                setpgroup=0,
                setsigdef=_RESET,
            )
        except OSError:
            self.guardian.dismiss()
            for descriptor in (self.stdin, self.stdout):
                os.close(descriptor)
            raise
        finally:
            os.close(child_in)
            os.close(child_out)
        self.guardian.watch(self.pid)
        self.returncode: int | None = None
        for descriptor in (self.stdin, self.stdout):
            os.set_blocking(descriptor, False)
            _enlarge(descriptor)

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


class Guardian:
    """A forked process that kills a group when this process ends without saying goodbye."""

    def __init__(self) -> None:
        watched, self._pipe = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._pipe)
            _guard(watched)
        os.close(watched)

    def watch(self, group: int) -> None:
        """Tell the guardian which group to end."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, b"%d\n" % group)

    def dismiss(self) -> None:
        """All is well: let the guardian go."""
        if self._pid:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, b"done\n")
            os.close(self._pipe)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0


def _guard(watched: int) -> None:
    """The guardian's whole life. Never returns into the forked copy of the gate."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(watched, 0)
        os.closerange(1, 1024)
        said = b""
        while chunk := os.read(0, 64):
            said += chunk
        words = said.split()
        if len(words) == 1:
            _end_group(int(words[0]))
    except (OSError, ValueError):
        pass
    finally:
        os._exit(0)


def _end_group(group: int) -> None:
    """Terminate, wait a little, kill. The gate was killed; there is nobody left to be polite for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        for _ in range(40):
            time.sleep(0.025)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)


def _enlarge(descriptor: int) -> None:
    """Ask for a larger pipe, where the system has such a thing: fewer wake-ups under load."""
    import fcntl

    with contextlib.suppress(OSError, ValueError):
        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_SIZE)
