"""Descriptions of the hub's servers for people and models."""

from collections.abc import Sequence
from typing import Any, Final

from thoughtgate.core.server_lifecycle import FAILED, RUNNING, WAITING
from thoughtgate.gate.clock import monotonic
from thoughtgate.upstream.supervisor import Supervisor

MAX_INSTRUCTIONS: Final = 4000
"""Maximum length of a server's own instructions, because they cost tokens in every session."""


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
    if standing.reason:
        facts["reason"] = standing.reason
    if standing.state in {WAITING, FAILED}:
        facts["retry_in_s"] = round(max(0.0, standing.retry_at - monotonic()), 1)
    warnings = [text for texts in supervisor.warnings.values() for text in texts]
    if warnings:
        facts["warnings"] = warnings
    return facts


def instructions(supervisors: Sequence[Supervisor], separator: str) -> str:
    """Return the instructions for a client's model, including the servers' own instructions."""
    if not supervisors:
        return ""
    named = ", ".join(f"{one.id} ({one.settings.name or one.id})" for one in supervisors)
    text = f"Tools are named SERVER{separator}TOOL. Servers: {named}."
    for supervisor in supervisors:
        upstream = supervisor.upstream
        if upstream is not None and upstream.instructions:
            said = upstream.instructions[:MAX_INSTRUCTIONS]
            text += f"\n\n[{supervisor.settings.name or supervisor.id}]\n{said}"
    return text
