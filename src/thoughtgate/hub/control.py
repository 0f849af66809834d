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
            "held": hub.gate.held,
            "config_failure": hub.reloader.failure if hub.reloader is not None else "",
        }

    async def start(asked: dict[str, Any]) -> str:
        return await hub.start_server(_server(asked))

    async def stop(asked: dict[str, Any]) -> str:
        return await hub.stop_server(_server(asked))

    async def restart(asked: dict[str, Any]) -> str:
        return await hub.restart_server(_server(asked))

    async def logs(asked: dict[str, Any]) -> list[str]:
        lines = asked.get("lines", DEFAULT_LINES)
        return hub.server_log(_server(asked), lines if type(lines) is int else DEFAULT_LINES)

    async def reload(_: dict[str, Any]) -> str:
        return await hub.reload()

    return {
        "status": status,
        "start": start,
        "stop": stop,
        "restart": restart,
        "logs": logs,
        "reload": reload,
    }


def _server(asked: dict[str, Any]) -> str:
    server = asked.get("server")
    if type(server) is not str:
        raise UsageError("name a server")
    return server
