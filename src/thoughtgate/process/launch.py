"""Starting a program as a child process that registers with the guardian before the exec.

This uses fork, not ``posix_spawn`` or ``subprocess``: the child must register itself between
fork and exec, and the ``subprocess`` module would exceed the shim's memory budget.
"""

import errno
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

_RESET: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ, signal.SIGCHLD)
"""Signals that Python or the gate ignores or handles; the program starts with the defaults.

SIGPIPE is reset later, after the child has registered: the guardian may already be gone."""

_NOT_STARTED: Final = 127


def launch(
    command: Sequence[str],
    environ: Mapping[str, str],
    before_exec: Callable[[], None],
    *,
    stdin: int = 0,
    stdout: int = 1,
) -> int:
    """Start a program and return its process id once it runs.

    Args:
        command: the program, looked up in the PATH of ``environ``, and its arguments.
        environ: its whole environment.
        before_exec: called in the child before the program runs.
        stdin: the descriptor that becomes the program's standard input.
        stdout: the descriptor that becomes its standard output.

    Raises:
        OSError: it cannot be started; nothing is left behind.
    """
    # Closed by a successful exec, so that an empty read says that the program runs.
    failed, report = os.pipe()
    # A signal between fork and exec must not run the gate's own handlers in the child.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _RESET)

    def become() -> None:
        for target, descriptor in ((0, stdin), (1, stdout)):
            if descriptor != target:
                os.dup2(descriptor, target)
        before_exec()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.execvpe(command[0], list(command), dict(environ))  # noqa: S606 - no shell, ever

    pid = -1
    try:
        pid = os.fork()
        if pid == 0:
            _run_child(become, report)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(report)
        if pid < 0:
            os.close(failed)
    try:
        number = os.read(failed, 16)
    finally:
        os.close(failed)
    if number:
        os.waitpid(pid, 0)
        raise OSError(int(number), os.strerror(int(number)), command[0])
    return pid


def _run_child(become: Callable[[], None], report: int) -> None:
    """Run our code in the child. Never returns into the forked copy of the gate."""
    try:
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        become()
    except OSError as error:
        os.write(report, b"%d" % (error.errno or errno.EINVAL))
    except (ValueError, TypeError):  # a NUL in the command, a number in the environment
        os.write(report, b"%d" % errno.EINVAL)
    finally:
        os._exit(_NOT_STARTED)
