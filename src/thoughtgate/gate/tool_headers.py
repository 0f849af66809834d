"""Tool arguments that are repeated in HTTP headers, as the server's tool list declares."""

from typing import Final

from thoughtgate.wire.headers import ParamHeader, param_headers_of
from thoughtgate.wire.message import Json

MAX_TOOLS: Final = 20_000
"""Tools whose header parameters are remembered; bounds the cost of a hostile list."""


class ToolHeaders:
    """Learns header parameters from tool lists (MCP 2026-07-28, ``x-mcp-header``)."""

    def __init__(self) -> None:
        self._wanted: dict[str, tuple[ParamHeader, ...]] = {}

    def learn(self, method: str, entries: tuple[dict[str, Json], ...]) -> None:
        """Remember the header parameters in a list of tools."""
        if method != "tools/list":
            return
        for entry in entries:
            name = entry.get("name")
            wanted = param_headers_of(entry.get("inputSchema"))
            if type(name) is not str:
                continue
            # Removed first, so that a known tool can be renewed when the table is full.
            self._wanted.pop(name, None)
            if len(self._wanted) < MAX_TOOLS:
                self._wanted[name] = wanted or ()

    def of(self, tool: str) -> tuple[ParamHeader, ...]:
        """Return the header parameters of a tool."""
        return self._wanted.get(tool, ())

    def known(self, tool: str) -> tuple[ParamHeader, ...] | None:
        """Return the header parameters of a tool; None if no list has shown the tool."""
        return self._wanted.get(tool)
