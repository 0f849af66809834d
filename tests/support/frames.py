"""Building JSON-RPC frames: the shortest way to say what an agent or a server sends."""

import json
from typing import Any

LEGACY_VERSION = "2025-11-25"
MODERN_VERSION = "2026-07-28"


def envelope(version: str = MODERN_VERSION, **meta: Any) -> dict[str, Any]:
    """Return the ``_meta`` of a self-describing request."""
    return {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        **meta,
    }


def request(ident: int | str, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a request."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": ident, "method": method}
    return body if params is None else {**body, "params": params}


def notification(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a notification."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return body if params is None else {**body, "params": params}


def result(ident: int | str, value: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a response with a result."""
    return {"jsonrpc": "2.0", "id": ident, "result": value or {}}


def error(ident: int | str | None, code: int, message: str = "no") -> dict[str, Any]:
    """Return a response with an error."""
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}


def call(ident: int | str, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a ``tools/call`` of the legacy era."""
    return request(ident, "tools/call", {"name": tool, "arguments": arguments or {}})


def initialize(ident: int | str = 0, version: str = LEGACY_VERSION) -> dict[str, Any]:
    """Return the opening request of the legacy era."""
    client = {"name": "test", "version": "0"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return request(ident, "initialize", params)


def line(body: Any) -> bytes:
    """Return a frame's bytes, without line end."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
