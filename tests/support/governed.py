"""A governance service with a real governor behind it, in this process."""

from pathlib import Path
from typing import Any

from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.open_governor import open_governor
from thoughtgate.service.service import Governance


def open_governance(folder: Path, policy: str, profile: str | None = None) -> Governance:
    """Return a service that judges by a policy and keeps its record in a folder."""
    path = folder / "thoughtgate.yaml"
    path.write_text(policy, "utf-8")
    loaded = load_configuration(str(path), {}, str(folder), profile=profile)
    state = folder / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    governor = open_governor(loaded, {}, str(state))
    governor.start(now(), command="test")
    return Governance(governor, loaded.settings, frozenset({"OUR_SECRET"}))


def hello(governance: Governance, server: str = "files", **more: Any) -> str:
    """Open a session and return its id."""
    reply = governance.heartbeat({"server_id": server, "hello": True, **more})
    session: str = reply["session_id"]
    return session


def question(session: str | None, tool: str, server: str = "files", **more: Any) -> dict[str, Any]:
    """Return what a shim asks before a call."""
    body = {
        "server_id": server,
        "direction": "agent_to_server",
        "method": "tools/call",
        "id": 7,
        "params": {"name": tool, "arguments": {}},
        "message_type": "request",
        "profile": "production",
        **more,
    }
    return body if session is None else {**body, "session_id": session}


def ended(
    call_id: str, tool: str = "read", status: str = "OK", at: float | None = None
) -> list[Any]:
    """Return the end of a call as a shim hands it over."""
    call = {"call_id": call_id, "server_name": "files", "tool_name": tool}
    body = {"call": call, "status": status, "latency_ms": 1, "bytes_out": 2}
    return ["tool_call_end", now() if at is None else at, body]
