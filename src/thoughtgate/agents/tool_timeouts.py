"""Agents that give up on a tool call sooner than a person may take to approve it.

Such an agent withdraws the approval request, and a reviewer who answers later approves nothing.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.errors import visible

_MS: Final = 0.001

MARGIN_S: Final = 30.0
"""What a suggested timeout adds to the approval's: the call itself takes time, too."""

_CLAUDE_VARIABLE: Final = "MCP_TOOL_TIMEOUT"


class ToolTimeout(NamedTuple):
    """How an agent's config limits the duration of a tool call."""

    key: str
    """The key in a server's entry."""
    unit_s: float = 1.0
    default_s: float = 0.0
    """The timeout without the key; 0 if it is longer than anybody waits, or unknown."""


TIMEOUTS: Final[Mapping[str, ToolTimeout]] = {
    "claude-code": ToolTimeout("timeout", _MS),
    "codex": ToolTimeout("tool_timeout_sec", default_s=60.0),
    "gemini": ToolTimeout("timeout", _MS, 600.0),
    "qwen": ToolTimeout("timeout", _MS, 600.0),
    "opencode": ToolTimeout("timeout", _MS),
    "kilo": ToolTimeout("timeout", _MS),
    "copilot": ToolTimeout("timeout", _MS),
    "zed": ToolTimeout("timeout"),
    "cline": ToolTimeout("timeout", default_s=60.0),
    "roo": ToolTimeout("timeout", default_s=60.0),
}
"""The agents whose key is documented, by type."""


def short_timeouts(plan: Plan, approval_s: float, environ: Mapping[str, str]) -> list[str]:
    """Return a warning for each timeout of the agent that is shorter than that of an approval."""
    known = TIMEOUTS.get(plan.search.agent_type)
    if known is None:
        return []
    found: dict[tuple[float, str], list[str]] = {}
    for entry in _in_force(plan):
        seconds, where = _timeout_of(entry, known, plan.search.agent_type, environ)
        if 0 < seconds < approval_s:
            found.setdefault((seconds, where), []).append(visible(entry.id))
    return [
        f"{plan.agent.name} gives up on a call of {', '.join(names)} after {seconds:g}s, but an "
        f"approval may take {approval_s:g}s; set {where} to {_wanted(known, where, approval_s)}, "
        "or approval.default.timeout to less"
        for (seconds, where), names in found.items()
    ]


def _in_force(plan: Plan) -> list[ServerEntry]:
    """Return the last entry of each server: the one with the highest precedence."""
    return list({one.id: one for one in plan.with_status("governed", "remote", "managed")}.values())


def _timeout_of(
    entry: ServerEntry, known: ToolTimeout, agent: str, environ: Mapping[str, str]
) -> tuple[float, str]:
    """Return a server's timeout in seconds, and what sets it."""
    said = entry.raw.get(known.key)
    if isinstance(said, int | float) and not isinstance(said, bool):
        return said * known.unit_s, f"{known.key} in {entry.layer.path}"
    text = environ.get(_CLAUDE_VARIABLE, "") if agent == "claude-code" else ""
    if text.isascii() and text.isdigit():
        return int(text) * _MS, _CLAUDE_VARIABLE
    return known.default_s, f"{known.key} in {entry.layer.path}"


def _wanted(known: ToolTimeout, where: str, approval_s: float) -> str:
    unit_s = _MS if where == _CLAUDE_VARIABLE else known.unit_s
    return f"{(approval_s + MARGIN_S) / unit_s:.0f}"
