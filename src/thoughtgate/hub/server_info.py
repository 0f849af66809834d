"""Descriptions of the hub's servers for people and models."""

from collections.abc import Sequence
from typing import Any, Final

from thoughtgate.core.server_lifecycle import DISABLED, FAILED, HALTED, RUNNING, WAITING
from thoughtgate.errors import STOPPED_BY_HAND, upstream_error
from thoughtgate.gate.clock import monotonic
from thoughtgate.upstream.health import DEGRADED
from thoughtgate.upstream.supervisor import Supervisor

MAX_INSTRUCTIONS: Final = 4000
"""Maximum length of a server's own instructions, because they cost tokens in every session."""

MAX_ALL_INSTRUCTIONS: Final = 16_000
"""Maximum length of the instructions of all servers; those of the last servers are left out."""

_OFF: Final = {DISABLED: "disabled", HALTED: STOPPED_BY_HAND}
"""The causes of states in which only a person starts a server."""


def describe_server(supervisor: Supervisor, *, active: bool) -> dict[str, Any]:
    """Return the status of a server, without its command line or environment."""
    settings, standing, upstream = supervisor.settings, supervisor.standing, supervisor.upstream
    tools = supervisor.known("tools/list")
    facts: dict[str, Any] = {
        "id": settings.id,
        "name": settings.name or settings.id,
        "kind": "http" if settings.url else "stdio",
        "enabled": settings.enabled,
        "in_namespace": active,
        "status": standing.state,
        "tools": len(tools.entries) if tools is not None else None,
        "calls": supervisor.calls,
        "failures": standing.failures,
    }
    if upstream is not None and standing.state == RUNNING:
        facts["pid"] = upstream.pid or None
        facts["uptime_s"] = round(monotonic() - standing.since, 1)
        facts["revision"] = upstream.version
    failure = supervisor.failure
    if settings.url and standing.state == RUNNING and supervisor.health.state == DEGRADED:
        facts["status"] = DEGRADED
    if settings.url:
        failure = supervisor.health.failure or failure
    if standing.state in _OFF:
        failure = upstream_error(_OFF[standing.state])
    if failure is not None:
        facts["reason"] = str(failure)
        told = {name: value for name, value in failure.facts.items() if name != "reason"}
        facts["error"] = {"kind": failure.kind, **told}
    elif standing.reason:
        facts["reason"] = standing.reason
    if standing.state in {WAITING, FAILED}:
        facts["retry_in_s"] = round(max(0.0, standing.retry_at - monotonic()), 1)
    warnings = [text for texts in supervisor.warnings.values() for text in texts]
    if warnings:
        facts["warnings"] = warnings
    return facts


def instructions(
    supervisors: Sequence[Supervisor], separator: str, shown: Sequence[Supervisor]
) -> str:
    """Return the instructions for a client's model, including those of the ``shown`` servers."""
    if not supervisors:
        return ""
    named = ", ".join(f"{one.id} ({one.settings.name or one.id})" for one in supervisors)
    text = f"Tools are named SERVER{separator}TOOL. Servers: {named}."
    left_out = []
    for supervisor in supervisors:
        said = _quoted(supervisor.instructions) if supervisor in shown else ""
        name = supervisor.settings.name or supervisor.id
        if said and len(text) + len(said) > MAX_ALL_INSTRUCTIONS:
            left_out.append(name)
        elif said:
            text += f"\n\n[{name}]\n{said}"
    if left_out:
        text += f"\n\nThe instructions of these servers are left out: {', '.join(left_out)}."
    return text


def _quoted(said: str) -> str:
    """Return a server's instructions, in which no line looks like the heading of another server."""
    said = said.strip()
    if len(said) > MAX_INSTRUCTIONS:
        said = said[:MAX_INSTRUCTIONS] + "…"
    lines = (f"| {line}" if line.lstrip().startswith("[") else line for line in said.splitlines())
    return "\n".join(lines)
