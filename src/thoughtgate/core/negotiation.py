"""What the hub says of itself to a client, and how it opens a connection to a server.

Each leg negotiates alone: what a client asked for is never what a server is asked. The
capabilities that the hub shows are at most those its servers have, and what it declares
to a server is at most what the client declared.
"""

from collections.abc import Iterable
from typing import Any, Final

from thoughtgate.wire.message import Json
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
)

NAME: Final = "thoughtgate"
TITLE: Final = "ThoughtGate"

LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
RESERVED: Final = "io.modelcontextprotocol/"

UNSUPPORTED_VERSION: Final = -32022
"""2026-07-28: the error for a revision that is not spoken."""

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
"""Capabilities of a client that the hub can carry to a server and back."""

NEEDS: Final[dict[str, str]] = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
"""What a client must have declared before a server may ask it."""

CACHED: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""2026-07-28: results that must say how long, and for whom, they may be kept."""

GONE_IN_MODERN: Final = frozenset(
    {
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    }
)
"""Methods that 2026-07-28 has no more."""


def info(version: str) -> dict[str, str]:
    """Return how the hub introduces itself, to clients and to servers."""
    return {"name": NAME, "title": TITLE, "version": version}


def choose_version(asked: Json) -> str:
    """Return the revision of an ``initialize`` answer: what was asked if it is spoken."""
    return asked if asked in LEGACY else LATEST_LEGACY


def merge_capabilities(
    known: Iterable[dict[str, Json] | None], *, manager_tools: bool
) -> dict[str, Json]:
    """Return what the hub can offer; a server that was not asked yet (None) may have everything."""
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
                # The hub can announce changes of its own lists whatever the server does.
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
    version: str, capabilities: dict[str, Json], revision: str = LATEST_LEGACY
) -> dict[str, Json]:
    """Return how the gate opens a connection to a legacy server."""
    return {
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": info(version),
    }


def initialized_by(answer: dict[str, Json]) -> dict[str, Json] | None:
    """Return the result of a server's answer to ``initialize``; None unless it opens the connection."""
    result = answer.get("result")
    if type(result) is not dict or result.get("protocolVersion") not in LEGACY:
        return None
    return result


def initialize_result(
    asked: Json, capabilities: dict[str, Json], version: str, instructions: str
) -> dict[str, Json]:
    """Answer a legacy client's opening."""
    result: dict[str, Json] = {
        "protocolVersion": choose_version(asked),
        "capabilities": capabilities,
        "serverInfo": info(version),
    }
    return {**result, "instructions": instructions} if instructions else result


def discover_result(
    capabilities: dict[str, Json], version: str, instructions: str
) -> dict[str, Json]:
    """Answer a modern client's question what there is."""
    shown = {name: members for name, members in capabilities.items() if name != "logging"}
    result: dict[str, Json] = {"supportedVersions": list(MODERN), "capabilities": shown}
    if instructions:
        result["instructions"] = instructions
    return completed("server/discover", result, version)


def completed(method: str, result: dict[str, Json], version: str) -> dict[str, Json]:
    """Return a result as a modern client needs it, with what a legacy server leaves out."""
    made = {"resultType": "complete", **result}
    if method in CACHED and made["resultType"] == "complete":
        made.setdefault("ttlMs", 0)
        # What was filtered or put together for one caller must not be shared.
        made["cacheScope"] = "private"
    meta = made.get(META)
    said = dict(meta) if type(meta) is dict else {}
    made[META] = {**said, SERVER_KEY: info(version)}
    return made


def plain(result: dict[str, Json]) -> dict[str, Json]:
    """Return a result as a legacy client knows it."""
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


def carried_capabilities(declared: Json) -> dict[str, Json]:
    """Return what of a client's capabilities a server may be told."""
    if type(declared) is not dict:
        return {}
    return {name: declared[name] for name in CARRIED if type(declared.get(name)) is dict}


def params_for_modern(
    params: dict[str, Json],
    *,
    capabilities: dict[str, Json],
    version: str,
    log_level: str = "",
    token: int | None = None,
) -> dict[str, Json]:
    """Return params with the envelope that a modern server needs."""
    meta = _vendor_meta(params)
    meta[VERSION_KEY] = LATEST
    meta[CAPABILITIES_KEY] = capabilities
    meta[CLIENT_KEY] = info(version)
    if log_level:
        meta[LOG_LEVEL_KEY] = log_level
    if token is not None:
        meta["progressToken"] = token
    return {**params, META: meta}


def params_for_legacy(params: dict[str, Json], *, token: int | None = None) -> dict[str, Json]:
    """Return params without what only a modern server understands."""
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
    meta = params.get(META)
    if type(meta) is not dict:
        return {}
    return {
        key: value
        for key, value in meta.items()
        if not key.startswith(RESERVED) and key != "progressToken"
    }


def is_at_least(level: str, threshold: str) -> bool:
    """Tell whether a log message is severe enough; an unknown level is."""
    if level not in LOG_LEVELS or threshold not in LOG_LEVELS:
        return True
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(threshold)


def input_requests(result: Json) -> dict[str, dict[str, Json]] | None:
    """Return what a modern server wants to know before it goes on; None when it is done."""
    if type(result) is not dict or result.get("resultType") != "input_required":
        return None
    wanted = result.get("inputRequests")
    if type(wanted) is not dict:
        return {}
    return {key: value for key, value in wanted.items() if type(value) is dict}
