"""Protocol negotiation of the hub with its clients and its servers.

Each connection is negotiated independently: the revision that a client requests is never passed
to a server. The hub offers at most the capabilities of its servers, and declares to a server at
most the capabilities that the client declared.
"""

from collections.abc import Iterable
from typing import Any, Final

from thoughtgate.version import __version__
from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import LISTINGS
from thoughtgate.wire.revisions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LATEST,
    LATEST_LEGACY,
    LEGACY,
    META,
    MODERN,
    SERVER_KEY,
    VERSION_KEY,
    meta_of,
)

NAME: Final = "thoughtgate"
INFO: Final = {"name": NAME, "title": "ThoughtGate", "version": __version__}
"""The implementation info of the hub, for clients and servers."""

LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
RESERVED: Final = "io.modelcontextprotocol/"

UNSUPPORTED_VERSION: Final = -32022
"""MCP 2026-07-28: the error for an unsupported revision."""

LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)

CARRIED: Final = ("sampling", "elicitation", "roots")
"""Client capabilities that the hub can relay between a server and the client."""

NEEDS: Final[dict[str, str]] = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
"""The capability that a client must have declared before a server may send it this request."""

CACHED: Final = frozenset({"server/discover", "resources/read", *LISTINGS})
"""MCP 2026-07-28: methods whose results must say how long, and for whom, they may be cached."""

GONE_IN_MODERN: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""Methods that MCP 2026-07-28 has removed."""


def merge_capabilities(
    known: Iterable[dict[str, Json] | None], *, manager_tools: bool
) -> dict[str, Json]:
    """Return the hub's capabilities; a server that is not connected yet (None) may have all."""
    found: dict[str, dict[str, bool]] = {}
    if manager_tools:
        found["tools"] = {"listChanged": True}
    for capabilities in known:
        for name, members in _OFFERED.items():
            if capabilities is None:
                found.setdefault(name, {}).update(members)
            elif name in capabilities:
                said = capabilities[name]
                has = said if type(said) is dict else {}
                # The hub itself announces changes of its lists, whatever the server supports.
                kept = {key: True for key in members if key == "listChanged" or has.get(key)}
                found.setdefault(name, {}).update(kept)
    return dict(found)


_OFFERED: Final[dict[str, dict[str, bool]]] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


def initialize_params(
    capabilities: dict[str, Json], revision: str = LATEST_LEGACY
) -> dict[str, Json]:
    """Return the ``initialize`` request for a legacy server."""
    return {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": INFO}


def initialized_by(answer: dict[str, Json]) -> dict[str, Json] | None:
    """Return the result of a server's ``initialize`` answer; None if it is not a success."""
    result = answer.get("result")
    if type(result) is not dict or result.get("protocolVersion") not in LEGACY:
        return None
    return result


def initialize_result(
    asked: Json, capabilities: dict[str, Json], instructions: str
) -> dict[str, Json]:
    """Answer a legacy client's ``initialize``, in the revision it asks for if that is supported."""
    result: dict[str, Json] = {
        "protocolVersion": asked if asked in LEGACY else LATEST_LEGACY,
        "capabilities": capabilities,
        "serverInfo": INFO,
    }
    return {**result, "instructions": instructions} if instructions else result


def discover_result(capabilities: dict[str, Json], instructions: str) -> dict[str, Json]:
    """Answer a modern client's ``server/discover``."""
    shown = {name: members for name, members in capabilities.items() if name != "logging"}
    result: dict[str, Json] = {"supportedVersions": list(MODERN), "capabilities": shown}
    if instructions:
        result["instructions"] = instructions
    return completed("server/discover", result)


def completed(method: str, result: dict[str, Json]) -> dict[str, Json]:
    """Return a result for a modern client, with the members that a legacy server omits."""
    made = {"resultType": "complete", **result}
    if method in CACHED and made["resultType"] == "complete":
        made.setdefault("ttlMs", 0)
        # A result that was filtered or assembled for one caller must not be shared.
        made["cacheScope"] = "private"
    made[META] = {**meta_of(made), SERVER_KEY: INFO}
    return made


def plain(result: dict[str, Json]) -> dict[str, Json]:
    """Return a result in the form that a legacy client knows."""
    made = {key: value for key, value in result.items() if key not in _MODERN_ONLY}
    meta = made.get(META)
    if type(meta) is dict:
        kept = {key: value for key, value in meta.items() if not key.startswith(RESERVED)}
        if kept:
            made[META] = kept
        else:
            del made[META]
    return made


_MODERN_ONLY: Final = frozenset({"resultType", "ttlMs", "cacheScope"})


def changed_lists(result: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the notifications about the lists of a server that was restarted or has a new session.

    ``result`` is its answer to ``initialize``. Only what it declared there may be announced.
    """
    declared = result.get("capabilities")
    said = declared if type(declared) is dict else {}
    return [
        {"jsonrpc": "2.0", "method": f"notifications/{name}/list_changed"}
        for name in ("tools", "resources", "prompts")
        if type(said.get(name)) is dict and said[name].get("listChanged") is True
    ]


def carried_capabilities(declared: Json) -> dict[str, Json]:
    """Return the client capabilities that may be declared to a server."""
    if type(declared) is not dict:
        return {}
    return {name: declared[name] for name in CARRIED if type(declared.get(name)) is dict}


def params_for_modern(
    params: dict[str, Json],
    *,
    capabilities: dict[str, Json],
    log_level: str = "",
    token: int | None = None,
) -> dict[str, Json]:
    """Return params with the metadata that a modern server requires."""
    # The client's own envelope and progress token belong to its connection, not to this one.
    meta = _vendor_meta(params)
    meta[VERSION_KEY] = LATEST
    meta[CAPABILITIES_KEY] = capabilities
    meta[CLIENT_KEY] = INFO
    if log_level:
        meta[LOG_LEVEL_KEY] = log_level
    if token is not None:
        meta["progressToken"] = token
    return {**params, META: meta}


def params_for_legacy(params: dict[str, Json], *, token: int | None = None) -> dict[str, Json]:
    """Return params without members that only a modern server understands."""
    meta = _vendor_meta(params)
    if token is not None:
        meta["progressToken"] = token
    made = {key: value for key, value in params.items() if key not in _RETRY}
    if meta:
        made[META] = meta
    else:
        made.pop(META, None)
    return made


_RETRY: Final = frozenset({"inputResponses", "requestState"})


def _vendor_meta(params: dict[str, Json]) -> dict[str, Any]:
    return {
        key: value
        for key, value in meta_of(params).items()
        if not key.startswith(RESERVED) and key != "progressToken"
    }


def is_at_least(level: str, threshold: str) -> bool:
    """Tell whether a log message is severe enough; an unknown level always is."""
    if level not in LOG_LEVELS or threshold not in LOG_LEVELS:
        return True
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(threshold)


def input_requests(result: Json) -> dict[str, dict[str, Json]] | None:
    """Return the inputs that a modern server requires before it continues; None if it is done."""
    if type(result) is not dict or result.get("resultType") != "input_required":
        return None
    wanted = result.get("inputRequests")
    if type(wanted) is not dict:
        return {}
    return {key: value for key, value in wanted.items() if type(value) is dict}
