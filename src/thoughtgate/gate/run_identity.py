"""Identity of a run: from the environment, completed with new ids."""

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from thoughtgate.core.envelope import CLIENTS, ENVIRONMENTS, UNKNOWN, Run
from thoughtgate.gate.clock import new_id
from thoughtgate.gate.state_directory import write_once

MAX_VALUE = 256
"""Maximum length of a value from the environment, because it is repeated in every event."""

LOCAL: Final = "local"
"""The principal of a run for which the environment names neither a principal nor an agent."""


def identify_run(environ: Mapping[str, str], profile: str, state: str) -> Run:
    """Return the identity of a new run, from ``THOUGHTGATE_*`` or else ``SUB_*`` variables."""
    client = _read(environ, "CLIENT")
    environment = _read(environ, "ENV")
    given, writer = _read(environ, "RUN_ID"), new_id()
    return Run(
        run_id=given or new_id(),
        agent_id=_read(environ, "AGENT_ID") or UNKNOWN,
        client=client if client in CLIENTS else UNKNOWN,
        env=environment if environment in ENVIRONMENTS else UNKNOWN,
        host_id=host_id(state),
        proc_id=f"{os.getpid()}",
        shim_id=writer,
        principal=_read(environ, "PRINCIPAL"),
        workload=_workload(_read(environ, "WORKLOAD", limit=4096)),
        profile=profile,
        # Every gate of the run counts its calls from one, so the ids need a random part too.
        calls_prefix=f"{given}.{writer.rpartition('-')[2]}" if given else "",
    )


def principal_of(run: Run, *, by_agent: bool = False) -> str:
    """Return the principal of a run whose callers do not identify themselves.

    ``by_agent`` says that an agent started the gate: its environment is recorded, but must not
    choose the principal that policies, limits and remembered approvals go by.
    """
    if by_agent:
        return LOCAL
    if run.principal:
        return run.principal
    return run.agent_id if run.agent_id != UNKNOWN else LOCAL


def host_id(state: str) -> str:
    """Return an id that stays the same for this user on this machine."""
    path = os.path.join(state, "host-id")
    made = new_id()
    try:
        if not os.path.exists(path):
            write_once(path, made.encode())
        # Non-blocking, because opening a pipe without a writer would wait forever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="ascii") as file:
            return file.read(64).strip() or made
    except (OSError, UnicodeError):
        return made


def _read(environ: Mapping[str, str], name: str, limit: int = MAX_VALUE) -> str:
    value = environ.get(f"THOUGHTGATE_{name}") or environ.get(f"SUB_{name}") or ""
    # A variable may hold bytes that are not valid UTF-8; the record and error messages must be.
    return value[:limit].encode("utf-8", "replace").decode()


def _workload(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if text else None
    except ValueError:
        return None
    return value if isinstance(value, dict) and value else None
