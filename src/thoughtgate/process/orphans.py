"""Adopting the orphans of a child process: descendants whose own parent has exited.

On Linux a process can ask to become their parent in place of the system's first process. They
then stay among its descendants, and it must also collect their exit codes.
"""

import ctypes
import os
import sys
from collections.abc import Container
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36
"""From ``linux/prctl.h``."""


def adopt_orphans() -> bool:
    """Become the parent of every descendant that loses its own; False where that is impossible."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def reap_orphans(own: Container[int]) -> None:
    """Collect the exit codes of adopted processes, but never those of ``own`` children."""
    while True:
        try:
            # WNOWAIT leaves the exit code in place: for a child of ours, the code that started it
            # waits for that.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in own:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)
