"""The operations that a hub offers on its control socket."""

from typing import Any

from thoughtgate.errors import UsageError
from thoughtgate.gate.control_socket import Operation
from thoughtgate.hub.hub import Hub

DEFAULT_LINES = 200


def operations(hub: Hub) -> dict[str, Operation]:
    """Return the operations by name."""

    async def status(_: dict[str, Any]) -> dict[str, Any]:
        return {
            "servers": hub.describe_servers(),
            **hub.describe_namespaces(),
            "clients": len(hub.clients),
            "held": len(hub.gate.authority.held),
            "config_failure": hub.reloader.failure if hub.reloader is not None else "",
        }

    async def logs(asked: dict[str, Any]) -> list[str]:
        lines = asked.get("lines", DEFAULT_LINES)
        return hub.server_log(_server(asked), lines if type(lines) is int else DEFAULT_LINES)

    return {
        "status": status,
        "start": lambda asked: hub.start_server(_server(asked)),
        "stop": lambda asked: hub.stop_server(_server(asked)),
        "restart": lambda asked: hub.restart_server(_server(asked)),
        "logs": logs,
        "reload": lambda _: hub.reload(),
    }


def _server(asked: dict[str, Any]) -> str:
    server = asked.get("server")
    if type(server) is not str:
        raise UsageError("name a server")
    return server
