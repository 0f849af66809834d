"""The hub's own tools, with which an agent lists and manages servers and namespaces.

They belong to the server id ``thoughtgate``, and calls to them are judged and recorded like
any other before they arrive here. Their results name servers, never their environment,
arguments, headers or tokens.
"""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

from thoughtgate.core.catalogue import Offer
from thoughtgate.errors import PeerError
from thoughtgate.hub.client import HIDDEN, Carried, ServerSession
from thoughtgate.upstream.server_log import KEPT_LINES
from thoughtgate.wire.message import RESPONSE, Message
from thoughtgate.wire.replies import render

DEFAULT_LINES: Final = 50
"""Number of log lines that are returned by default."""

_SERVER: Final = {
    "type": "object",
    "properties": {"server_id": {"type": "string", "description": "Id of the server"}},
    "required": ["server_id"],
}
_NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}
_LOGS: Final = {
    "type": "object",
    "properties": {
        "server_id": {"type": "string", "description": "Id of the server"},
        "lines": {
            "type": "integer",
            "minimum": 1,
            "maximum": KEPT_LINES,
            "default": DEFAULT_LINES,
            "description": "How many of the last lines",
        },
    },
    "required": ["server_id"],
}
_READS: Final = {"readOnlyHint": True, "openWorldHint": False}
_ACTS: Final = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}


def _entry(
    name: str, text: str, schema: dict[str, Any], annotations: dict[str, bool]
) -> dict[str, Any]:
    return {"name": name, "description": text, "inputSchema": schema, "annotations": annotations}


ENTRIES: Final = (
    _entry("servers_list", "List all configured MCP servers with their status", _NOTHING, _READS),
    _entry("servers_start", "Start a server", _SERVER, _ACTS),
    _entry("servers_stop", "Stop a server until it is started again", _SERVER, _ACTS),
    _entry("servers_restart", "Restart a server", _SERVER, _ACTS),
    _entry("server_logs", "Return the last lines of a server's log", _LOGS, _READS),
    _entry(
        "config_reload", "Read the config file again; only what changed restarts", _NOTHING, _ACTS
    ),
    _entry("namespaces_list", "List the namespaces and say which one is active", _NOTHING, _READS),
)

OFFER: Final = Offer(ENTRIES, frozenset(entry["name"] for entry in ENTRIES))
"""The hub's own tools, in the form of a server's list."""


class Managed(Protocol):
    """The part of the hub that the tools act on."""

    def describe_servers(self) -> list[dict[str, Any]]:
        """Return the status of every server."""

    def describe_namespaces(self) -> dict[str, Any]:
        """Return the namespaces, and which one is active and why."""

    async def start_server(self, server: str) -> str:
        """Start a server; return what happened."""

    async def stop_server(self, server: str) -> str:
        """Stop a server; return what happened."""

    async def restart_server(self, server: str) -> str:
        """Restart a server; return what happened."""

    def server_log(self, server: str, lines: int, reader: str | None = None) -> list[str]:
        """Return the last lines of a server's log, for the operator or for one principal."""

    async def reload(self) -> str:
        """Reload the config; return a description of what changed."""


class ManagerTools:
    """Answers calls to the hub's own tools."""

    def __init__(self, hub: Managed) -> None:
        self._hub = hub
        self._tools: dict[str, Callable[[dict[str, Any]], Awaitable[str]]] = {
            "servers_list": self._list,
            "servers_start": lambda given: hub.start_server(self._own(given)),
            "servers_stop": lambda given: hub.stop_server(self._own(given)),
            "servers_restart": lambda given: hub.restart_server(self._own(given)),
            "config_reload": lambda _: hub.reload(),
            "namespaces_list": self._namespaces,
        }

    async def relay(self, session: ServerSession, call: Carried) -> Message:
        """Execute one call.

        Raises:
            PeerError: the tool does not exist, or its arguments are invalid.
        """
        name = str(call.params.get("name"))
        tool = self._tools.get(name)
        if name == "server_logs":
            # A log may be about the calls of other principals, so it matters who asks.
            tool = partial(self._logs, session.client.principal)
        if tool is None or call.method != "tools/call":
            raise PeerError(HIDDEN, "")
        result: dict[str, Any]
        try:
            text = await tool(call.params.get("arguments") or {})
            result = {"content": [{"type": "text", "text": text}]}
        except PeerError as error:
            # A wrong call is a protocol error; a failed action is a result that the model reads.
            if error.kind == "invalid_params":
                raise
            result = {"content": [{"type": "text", "text": str(error)}], "isError": True}
        if call.modern:
            result = {"resultType": "complete", **result}
        body = {"jsonrpc": "2.0", "id": call.key, "result": result}
        return Message(RESPONSE, call.key, "", body, render(body))

    def _own(self, given: dict[str, Any]) -> str:
        """Return the named server; refuse one outside the namespace that the agent may use."""
        server = _server(given)
        if any(
            one["id"] == server and not one["in_namespace"] for one in self._hub.describe_servers()
        ):
            raise PeerError("not_exposed", f"{server} is not in this namespace")
        return server

    async def _list(self, _: dict[str, Any]) -> str:
        return json.dumps(self._hub.describe_servers(), indent=2)

    async def _namespaces(self, _: dict[str, Any]) -> str:
        return json.dumps(self._hub.describe_namespaces(), indent=2)

    async def _logs(self, reader: str, given: dict[str, Any]) -> str:
        lines = given.get("lines", DEFAULT_LINES)
        if type(lines) is not int or lines < 0:
            raise PeerError("invalid_params", "lines must be a positive integer")
        found = self._hub.server_log(self._own(given), lines or DEFAULT_LINES, reader)
        return "\n".join(found)


def _server(given: dict[str, Any]) -> str:
    server = given.get("server_id")
    if type(server) is not str or not server:
        raise PeerError("invalid_params", "server_id must be a non-empty string")
    return server
