"""The ancestors of a process, and the agent that started this one.

Reads ``/proc``; on systems without it (macOS), asks ``ps``. A shim that uses a governance service
never imports this module.
"""

import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = "/proc"

INIT: Final = 1

REAPERS: Final = frozenset(
    {"systemd", "init", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan"}
)
"""Programs, besides process 1, that adopt processes whose parent has exited.

They are known by name only: Linux does not reveal which processes have asked to adopt
(``PR_SET_CHILD_SUBREAPER``)."""

MULTIPLEXERS: Final = frozenset({"tmux: server", "tmux", "screen", "SCREEN", "login"})
"""Programs that start the shells in all of a user's terminals."""

_PPID: Final = 1
_TERMINAL: Final = 4
_STARTED: Final = 19
"""Indexes of fields in ``/proc/PID/stat``, counted from the state after the name."""

_PS: Final = ("ps", "-A", "-o", "pid=,ppid=,uid=,tty=,lstart=,comm=")
_PS_FIELDS: Final = 10
_PS_TIMEOUT_S: Final = 10.0
_NO_TERMINAL: Final = frozenset({"", "0", "?", "??", "-"})


class Process(NamedTuple):
    """What the system tells about one process."""

    pid: int
    parent: int
    user: int
    terminal: str
    """The controlling terminal; empty if there is none."""
    started: int
    """When the process started, in a unit that is comparable only between processes of this boot."""
    name: str

    @property
    def is_reaper(self) -> bool:
        """Whether processes whose parent has exited may become children of this one."""
        return self.pid == INIT or self.name in REAPERS


def read_process(pid: int) -> Process | None:
    """Return a process; None if it has exited or cannot be seen."""
    if Path(PROC, "self", "stat").exists():
        return _from_proc(pid)
    return _from_ps().get(pid)


def lineage(pid: int) -> list[Process]:
    """Return a process and its ancestors, as far as they can be seen."""
    read = _from_proc if Path(PROC, "self", "stat").exists() else _from_ps().get
    found: list[Process] = []
    # The processes are read one after another, so reused ids could form a loop.
    while pid > 0 and all(one.pid != pid for one in found):
        process = read(pid)
        if process is None:
            break
        found.append(process)
        pid = process.parent
    return found


def find_agent(stdin: int = 0) -> Process | None:
    """Return the process at the other end of a gate's stdin: the agent that started the gate.

    Usually that is the parent. A launcher in between, such as ``sh -c`` or ``uv run``, has the
    same pipe as its own stdin and is skipped. Returns None if the parent is not an agent, but a
    service manager or a program that starts the shells in all terminals.
    """
    ancestors = lineage(os.getpid())[1:]
    if os.isatty(stdin):
        # Typed by hand. The parent is the shell of this terminal, unless a terminal emulator or
        # multiplexer started the gate itself: these have a session of their own.
        ancestors = [one for one in ancestors[:1] if _session(one.pid) == os.getsid(0)]
    while len(ancestors) > 1 and _shares_pipe(ancestors[0].pid, stdin):
        if not _may_be_agent(ancestors[1]):
            break
        del ancestors[0]
    return ancestors[0] if ancestors and _may_be_agent(ancestors[0]) else None


def cgroup_of(pid: int) -> str:
    """Return the control group of a process; empty where there is none."""
    try:
        return Path(PROC, str(pid), "cgroup").read_text("utf-8", "replace")
    except OSError:
        return ""


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment with which a process was started; empty if it cannot be seen."""
    try:
        text = Path(PROC, str(pid), "environ").read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.split("\0"))
    return {name: value for name, sign, value in pairs if sign}


def sees_namespace(namespace: str) -> bool:
    """Tell whether a process of another process namespace is visible from here."""
    for process in Path(PROC).glob("[0-9]*"):
        try:
            link = str(process.joinpath("ns", "pid").readlink())
        except OSError:  # it has exited, or belongs to another user
            continue
        if link == namespace:
            return True
    return False


def _may_be_agent(process: Process) -> bool:
    leads = _session(process.pid) == process.pid
    return process.pid != INIT and not (leads and process.name in REAPERS | MULTIPLEXERS)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _shares_pipe(pid: int, stdin: int) -> bool:
    """Tell whether a process has our pipe as its own stdin: then it did not create the pipe."""
    try:
        ours, theirs = os.fstat(stdin), Path(PROC, str(pid), "fd", "0").stat()
    except OSError:
        return False
    is_pipe = stat.S_ISFIFO(ours.st_mode) or stat.S_ISSOCK(ours.st_mode)
    return is_pipe and os.path.samestat(ours, theirs)


def _from_proc(pid: int) -> Process | None:
    try:
        line = Path(PROC, str(pid), "stat").read_bytes()
        status = Path(PROC, str(pid), "status").read_bytes()
    except OSError:
        return None
    # The last parenthesis ends the name: a process can put parentheses and spaces into its own.
    name = line.partition(b"(")[2].rpartition(b")")[0].decode("utf-8", "replace")
    fields = line.rpartition(b")")[2].split()
    # Not the owner of /proc/PID: that is root for a process that forbids core dumps.
    user = status.partition(b"\nUid:")[2].split(maxsplit=1)
    terminal = fields[_TERMINAL].decode()
    return Process(
        pid,
        int(fields[_PPID]),
        int(user[0]) if user else -1,
        "" if terminal in _NO_TERMINAL else terminal,
        int(fields[_STARTED]),
        name,
    )


def run_ps(command: Sequence[str]) -> str:
    """Return the output of a ``ps`` command; empty if it cannot be run."""
    import subprocess  # only where there is no /proc

    try:
        done = subprocess.run(
            command,
            # A fixed locale, because the start times are parsed, and a fixed PATH, because the
            # environment of a gate may come from the agent that it governs.
            env={"PATH": "/bin:/usr/bin", "LC_ALL": "C"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PS_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _from_ps() -> dict[int, Process]:
    lines = run_ps(_PS).splitlines()
    return {one.pid: one for one in map(_from_ps_line, lines) if one is not None}


def _from_ps_line(line: str) -> Process | None:
    words = line.split(None, _PS_FIELDS - 1)
    if len(words) < _PS_FIELDS:
        return None
    pid, parent, user, terminal = words[:4]
    try:
        started = time.mktime(time.strptime(" ".join(words[4:9]), "%a %b %d %H:%M:%S %Y"))
        return Process(
            int(pid),
            int(parent),
            int(user),
            "" if terminal in _NO_TERMINAL else terminal,
            int(started),
            words[9].rpartition("/")[2],
        )
    except ValueError:
        return None
