"""Names that identify the process that owns an approval or a task.

A process id alone is reused. The name therefore contains the machine, the boot, the process
namespace, the id and the start time. A process on another machine or in another namespace cannot
be checked from here, so it counts as alive until its approvals expire.
"""

import os
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

PREFIX: Final = "gate"
_START_FIELD: Final = 19
"""Index of the start time (field 22) in ``/proc/PID/stat``, counted after the command's name."""


class _Host(NamedTuple):
    machine: str
    boot: str
    namespace: str


def own_name() -> str:
    """Return the name of this process as an owner."""
    return name_of(os.getpid())


def name_of(pid: int) -> str:
    """Return the name of a running process as an owner."""
    return "|".join((PREFIX, *_host(), str(pid), _started(pid) or "-"))


def is_alive(owner: str) -> bool:
    """Tell whether an owner may still be running; False only if it certainly is not."""
    parts = owner.split("|")
    if len(parts) != 6 or parts[0] != PREFIX or not parts[4].isdecimal():  # noqa: PLR2004 - prefix, host, pid, start
        return True
    machine, boot, namespace, pid, started = parts[1:]
    here = _host()
    # Its processes cannot be seen from here, and a wrong "no" would let two gates act.
    if machine != here.machine:
        return True
    if boot != here.boot:
        return False
    if namespace != here.namespace:
        return True
    now = _started(int(pid))
    return now is not None and started in {now, "-"}


def other_namespace(owner: str) -> str:
    """Return an owner's process namespace if it runs on this machine but not in our namespace."""
    parts = owner.split("|")
    here = _host()
    if len(parts) != 6 or tuple(parts[1:3]) != here[:2] or parts[3] == here.namespace:  # noqa: PLR2004 - prefix, host, pid, start
        return ""
    return parts[3]


@lru_cache(maxsize=1)
def _host() -> _Host:
    machine = _text("/etc/machine-id") or os.uname().nodename
    boot = _text("/proc/sys/kernel/random/boot_id")
    if not boot and sys.platform == "darwin":
        boot = _said("sysctl", "-n", "kern.boottime")
    namespace = ""
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return _Host(*(part.replace("|", "_") for part in (machine, boot, namespace)))


def _started(pid: int) -> str | None:
    """Return when a process started, or None when there is no such process."""
    if Path("/proc/self/stat").exists():
        stat = _text(f"/proc/{pid}/stat")
        fields = stat.rpartition(")")[2].split()
        if len(fields) <= _START_FIELD or fields[0] in {"Z", "X"}:
            return None
        return fields[_START_FIELD]
    return _said("ps", "-o", "lstart=", "-p", str(pid)).replace(" ", "") or None


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _said(*command: str) -> str:
    import subprocess  # only where there is no /proc

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().replace("|", "_")
