"""Running gates: each one keeps a small file in the state directory while it runs.

The file is readable by its owner only and holds no secret. A gate that was killed leaves its
file behind; the next reader sees that its process has exited and removes the file.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from thoughtgate.core.envelope import render_time
from thoughtgate.core.record_events import SERVER_RECOVERED, SERVER_STARTED, Record
from thoughtgate.gate.clock import now
from thoughtgate.gate.state_directory import read_private_file, write_private_file
from thoughtgate.process.ancestry import Process, cgroup_of
from thoughtgate.stores.process_owner import is_alive, own_name

DIRECTORY: Final = "gates"
MAX_BYTES: Final = 65536

GOVERNED: Final = "governed"
"""The fact that describes the process whose calls the gate judges, if the gate knows it."""

ADOPTS: Final = "adopts"
"""Whether descendants of that process remain its descendants after their parent has exited."""


class GateFile:
    """The file with which this process announces itself as a gate."""

    def __init__(self, state: str, kind: str, **facts: Any) -> None:
        """Announce this process as a gate; ``kind`` is the command it runs."""
        self.path = Path(state, DIRECTORY, f"{os.getpid()}.json")
        told = {
            "pid": os.getpid(),
            "kind": kind,
            "owner": own_name(),
            "started_at": render_time(now()),
            **facts,
        }
        write_private_file(str(self.path), json.dumps(told))

    def withdraw(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self.path.unlink()


def announce(state: str, kind: str, **facts: Any) -> GateFile | None:
    """Announce this process; return None if that fails, because the gate works without it."""
    try:
        return GateFile(state, kind, **facts)
    except OSError:
        return None


def describe_governed(process: Process | None, *, adopts: bool = False) -> dict[str, Any]:
    """Return the facts about the process that a gate governs, for its announcement."""
    if process is None:
        return {}
    told = {
        "pid": process.pid,
        "started": process.started,
        "terminal": process.terminal,
        "cgroup": cgroup_of(process.pid),
        ADOPTS: adopts,
    }
    return {GOVERNED: told}


class SharedAnnouncement(Protocol):
    """Announces a gate to the gates of other machines (``gate.approvals.gate_row``)."""

    def announce(self, facts: Mapping[str, Any]) -> None:
        """Announce the gate, or change its facts."""

    def end(self) -> None:
        """Withdraw the announcement."""


MAX_SERVERS: Final = 100
MAX_TEXT: Final = 300
"""Limits on the servers of an announcement, whose file is small."""


def describe_change(record: Record) -> dict[str, Any]:
    """Return a server as ``status`` shows it after an event about it."""
    facts = record.body.get("server")
    facts = facts if isinstance(facts, dict) else {}
    told: dict[str, Any] = {"id": record.server[:MAX_TEXT], "since": render_time(record.at)}
    if record.type == SERVER_STARTED and facts.get("pid"):
        return {**told, "status": "running", "pid": facts["pid"]}
    if record.type in {SERVER_STARTED, SERVER_RECOVERED}:
        return {**told, "status": "up"}
    shown = {name: _short(facts[name]) for name in ("reason", "exit_code") if name in facts}
    names = ("kind", "cause", "status", "retry_after")
    error = {name: _short(facts[name]) for name in names if name in facts}
    return {**told, "status": _short(facts.get("state", "exited")), **shown, "error": error}


def _short(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)[:MAX_TEXT]


class GateAnnouncer:
    """Announces a gate for the duration of its run."""

    def __init__(self, state: str, **facts: Any) -> None:
        self._state = state
        self._facts = facts
        self._kind = ""
        self._file: GateFile | None = None
        self.servers: dict[str, dict[str, Any]] = {}
        """The servers as their last events describe them, by name."""
        self.shared: SharedAnnouncement | None = None
        """Announces the gate in a store that several machines share."""

    def begin(self, kind: str, server: str) -> None:
        """Announce the run; ``kind`` is the command."""
        self._kind = kind
        self._facts["started_at"] = render_time(now())  # the same in every later announcement
        self.add(**({"server": server} if server else {}))

    def server_changed(self, record: Record) -> None:
        """Show the state of a server after an event about it."""
        if record.server not in self.servers and len(self.servers) >= MAX_SERVERS:
            return
        self.servers[record.server] = describe_change(record)
        self.add(servers=list(self.servers.values()))

    def add(self, **facts: Any) -> None:
        """Add facts to the announcement."""
        self._facts |= facts
        self._file = announce(self._state, self._kind, **self._facts)
        if self.shared is not None:
            self.shared.announce({"kind": self._kind, **self._facts})

    def end(self) -> None:
        """Remove the announcement."""
        if self._file is not None:
            self._file.withdraw()
        if self.shared is not None:
            self.shared.end()


def list_gates(state: str) -> list[dict[str, Any]]:
    """Return the running gates, oldest first, and remove the files of gates that have exited."""
    gates = []
    for path in sorted(Path(state, DIRECTORY).glob("*.json")):
        told = _read(path)
        if told is None:
            continue
        # Not by the process id alone, which another process may have by now.
        if is_alive(told["owner"]):
            gates.append(told)
        else:
            for left in (path, path.with_suffix(".sock")):
                with contextlib.suppress(OSError):
                    left.unlink()
    return sorted(gates, key=lambda gate: str(gate.get("started_at")))


def _read(path: Path) -> dict[str, Any] | None:
    """Read one file; return None if it is not private or is invalid."""
    try:
        told = json.loads(read_private_file(str(path), MAX_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or not isinstance(told.get("owner"), str):
        return None
    return told if isinstance(told.get("pid"), int) else None
