"""Run file: tells a shim where its governance service is.

A file with mode 0600 in the state directory; its name is a key that stays the same from run to
run. The token is stored in this file only: argv can be read by every user, and agents filter
the environment.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.errors import UsageError
from thoughtgate.gate.state_directory import (
    read_private_file,
    state_directory,
    write_private_file,
)

DIRECTORY: Final = "runs"
MAX_BYTES: Final = 4 * 1024 * 1024
"""A system passes about two megabytes of variables to a process."""


class RunFile(NamedTuple):
    """The contents of a run file."""

    host: str
    port: int
    token: str
    profile: str
    pid: int
    """The process that runs the service."""
    entries: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - a tuple's default, never changed
    """Variables for the servers alone: by the key of an entry, ``env``, or ``problem`` with the
    reason why the server must not start."""
    serves: tuple[str, ...] = ()
    """Other run files that the entries of this run's agent name, because another wrap had rewritten
    the agent's config first."""


def run_path(key: str, environ: Mapping[str, str]) -> str:
    """Return the run file's path for a key; an absolute path is returned as it is."""
    if os.path.isabs(key):
        return key
    if os.sep in key or key.startswith("."):
        raise UsageError(f"--run {key!r} is neither a key nor an absolute path")
    return os.path.join(runs_directory(environ), f"{key}.json")


def runs_directory(environ: Mapping[str, str]) -> str:
    """Return the directory of the run files."""
    return os.path.join(state_directory(environ), DIRECTORY)


def read_run_file(path: str) -> RunFile:
    """Read a run file.

    Raises:
        UsageError: there is none, or other users can read or write it.
    """
    try:
        data = read_private_file(path, MAX_BYTES)
    except OSError as error:
        if isinstance(error, PermissionError) and error.errno is None:
            raise UsageError(str(error)) from None
        raise UsageError(
            f"no governed run at {path}: this server's entry was left wrapped; "
            "`thoughtgate unwrap` puts the agent's config back"
        ) from None
    try:
        said: dict[str, Any] = json.loads(data)
        return RunFile(
            str(said["host"]),
            int(said["port"]),
            str(said["token"]),
            str(said["profile"]),
            int(said["pid"]),
            dict(said.get("entries", {})),
            tuple(map(str, said.get("serves", ()))),
        )
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"{path} is not a run file; start the agent through thoughtgate wrap"
        ) from None


def find_run_file(path: str) -> RunFile:
    """Return the run of the wrap that started this process, among those that serve an entry.

    Wraps that share a rewritten config read the same entries, each with its own policy. A process
    that none of them started gets the run that the entry names, or else one that serves it.

    Raises:
        UsageError: no run serves the entry.
    """
    found = {
        run.pid: run
        for place, run in _living_runs(os.path.dirname(path))
        if place == path or path in run.serves
    }
    if len(found) > 1:
        pid = os.getpid()
        while pid > 0 and pid not in found:
            pid = _parent_of(pid)
        if pid in found:
            return found[pid]
    named = [run for run in found.values() if path not in run.serves]
    others = list(found.values())
    return (named or others)[0] if found else read_run_file(path)


def keys_in_use(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the keys that entries of running agents name."""
    runs = _living_runs(runs_directory(environ))
    paths = [path for place, run in runs for path in (place, *run.serves)]
    return frozenset(os.path.basename(path).removesuffix(".json") for path in paths)


def _living_runs(directory: str) -> Iterator[tuple[str, RunFile]]:
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            with contextlib.suppress(UsageError):
                if name.endswith(".json") and not has_ended((run := read_run_file(path)).pid):
                    yield path, run


def variables_of(told: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables for a server alone, as a run file or an installation keeps them.

    Raises:
        UsageError: the server must not start, because its variables are not known.
    """
    if not isinstance(told.get("env"), dict):
        raise UsageError(f"this server is not started: {told.get('problem')}")
    return {str(name): str(value) for name, value in told["env"].items()}


def write_run_file(path: str, run: RunFile) -> None:
    """Write a run file."""
    write_private_file(path, json.dumps(run._asdict()))


def remove_run_file(path: str, run: RunFile) -> None:
    """Remove a run file, unless another run has replaced it."""
    with contextlib.suppress(UsageError, FileNotFoundError):
        if read_run_file(path).token == run.token:
            os.unlink(path)


def remove_dead_runs(directory: str) -> list[str]:
    """Remove the run files of services that have exited, and return their paths."""
    removed: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            with contextlib.suppress(UsageError, FileNotFoundError):
                if name.endswith(".json") and has_ended(read_run_file(path).pid):
                    os.unlink(path)
                    removed.append(path)
    return removed


def has_ended(pid: int) -> bool:
    """Tell whether a process is known to have exited; 0 stands for an unknown process."""
    # A zombie has exited; its parent has not collected the status yet.
    return _state_of(pid) in _EXITED


def is_stopped(pid: int) -> bool:
    """Tell whether a process is stopped (Ctrl-Z), or may be if only its existence is known."""
    return _state_of(pid) in _STOPPED


_EXITED: Final = (b"Z", b"X", b"gone")
_STOPPED: Final = (b"T", b"t", b"unknown")


def _state_of(pid: int) -> bytes:
    """Return the state of a process in a letter; ``gone``, ``unknown``, or empty for no process."""
    if pid <= 0:
        return b""
    try:
        os.kill(pid, 0)
        return _stat_of(pid)[0]
    except ProcessLookupError:
        return b"gone"
    except (OSError, OverflowError, IndexError):
        # Another user's process, or a system without /proc: it exists, and nothing more is known.
        return b"unknown"


def _parent_of(pid: int) -> int:
    """Return the parent of a process; 0 if it is not known."""
    try:
        return int(_stat_of(pid)[1])
    except (OSError, ValueError, IndexError):  # a system without /proc
        return os.getppid() if pid == os.getpid() else 0


def _stat_of(pid: int) -> list[bytes]:
    """Return the fields of a process in ``/proc``, from its state on."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name before it, in parentheses, may itself contain spaces and parentheses.
        return file.read(4096).rpartition(b")")[2].split()
