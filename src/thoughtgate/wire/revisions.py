"""The revisions of MCP, and detecting the revision of a message."""

import re
from typing import Final

from thoughtgate.wire.message import Json

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN: Final = ("2026-07-28",)
SUPPORTED: Final = LEGACY + MODERN
LATEST_LEGACY: Final = LEGACY[-1]
LATEST: Final = MODERN[-1]

META: Final = "_meta"
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"

MAX_CLIENT: Final = 200
"""Characters of a client's name and version that are kept; the client chooses them."""

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
"""Must match the complete value, because it becomes a header: a later version with more fields is
not passed on."""


def meta_of(value: Json) -> dict[str, Json]:
    """Return the ``_meta`` of params or a result; empty if there is none."""
    meta = value.get(META) if type(value) is dict else None
    return meta if type(meta) is dict else {}


def version_in(params: Json) -> str | None:
    """Return the revision that a request declares in its ``_meta``, if any."""
    # Not through ``meta_of``: every request with metadata comes here, and a call costs more.
    meta = params.get(META) if type(params) is dict else None
    version = meta.get(VERSION_KEY) if type(meta) is dict else None
    return version if type(version) is str else None


def is_modern(params: Json) -> bool:
    """Tell whether a request is self-describing, as every request is from 2026-07-28 on."""
    return version_in(params) is not None


def traceparent(params: Json) -> str:
    """Return the W3C trace context in a request's ``_meta``; empty if there is none."""
    found = meta_of(params).get("traceparent")
    return found if type(found) is str and is_traceparent(found) else ""


def with_traceparent(body: dict[str, Json], trace: str) -> dict[str, Json]:
    """Return the request with this W3C trace context in its ``_meta``, if that is well formed."""
    params = body.get("params", {})
    meta = params.get(META, {}) if type(params) is dict else None
    if type(params) is not dict or type(meta) is not dict:
        return body
    return {**body, "params": {**params, META: {**meta, "traceparent": trace}}}


def client_name(info: Json) -> str:
    """Return the name and version that a client gives itself; empty if it gives no name."""
    name = info.get("name") if type(info) is dict else None
    version = info.get("version") if type(info) is dict else None
    if type(name) is not str or not name:
        return ""
    full = f"{name} {version}" if type(version) is str and version else name
    return full[:MAX_CLIENT]


def client_in(params: Json) -> str:
    """Return the client that a self-describing request names in its ``_meta``; empty if none."""
    return client_name(meta_of(params).get(CLIENT_KEY))


def is_traceparent(text: str) -> bool:
    """Tell whether a text has the form of a ``traceparent``: version, trace, span, flags."""
    return _TRACEPARENT.fullmatch(text) is not None


def progress_token(params: Json) -> str | int | None:
    """Return the caller's progress token, if any."""
    # Not through ``meta_of``, as above.
    meta = params.get(META) if type(params) is dict else None
    token = meta.get("progressToken") if type(meta) is dict else None
    return token if type(token) is str or type(token) is int else None
