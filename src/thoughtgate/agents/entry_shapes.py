"""How a server entry says what to run.

Pure: one entry, as values, to the command line it stands for and the keys that hold it. Three
shapes are known: ``command`` and ``args`` side by side, one ``command`` array (opencode), and a
``command`` object with ``path`` and ``args`` (older Zed files).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from thoughtgate.agents.catalog import Agent
from thoughtgate.agents.entries import KeyPath, Transport

URL_KEYS: Final = ("url", "httpUrl", "serverUrl")

REMOTE_KEYS: Final = (
    *URL_KEYS,
    "headers",
    "headersHelper",
    "http_headers",
    "env_http_headers",
    "bearer_token",
    "bearer_token_env_var",
    "oauth",
    "auth",
    "scopes",
)
"""Keys that only a URL entry has; some agents refuse a command beside them."""

_REMOTE_TYPES: Final = frozenset(
    {"http", "sse", "remote", "streamable-http", "streamable_http", "streamableHttp", "ws"}
)

_OUR_NAMES: Final = frozenset({"thoughtgate", "thoughtgate.exe"})


class Slots(NamedTuple):
    """The keys of an entry that hold its command line."""

    command: KeyPath
    args: KeyPath

    @property
    def is_array(self) -> bool:
        """Whether one array holds command and arguments together."""
        return self.command == self.args


def slots_of(entry: Mapping[str, Any]) -> Slots:
    """Return where an entry keeps its command line."""
    command = entry.get("command")
    if isinstance(command, list):
        return Slots(("command",), ("command",))
    if isinstance(command, Mapping):
        return Slots(("command", "path"), ("command", "args"))
    return Slots(("command",), ("args",))


def lookup(entry: Any, keys: KeyPath) -> Any:
    """Return the value at a path, or None."""
    for key in keys:
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(key)
    return entry


def argv_of(entry: Mapping[str, Any]) -> list[Any]:
    """Return the command line of an entry as written; empty when it has no command."""
    slots = slots_of(entry)
    command, args = lookup(entry, slots.command), lookup(entry, slots.args)
    if slots.is_array:
        return list(command)
    if not isinstance(command, str) or not command:
        return []
    return [command, *(args if isinstance(args, list) else [])]


def url_of(entry: Mapping[str, Any]) -> str:
    """Return the URL of a remote entry, or an empty string."""
    urls = (entry.get(key) for key in URL_KEYS)
    return next((url for url in urls if isinstance(url, str) and url), "")


def transport_of(entry: Mapping[str, Any]) -> Transport | None:
    """Return how the agent would reach the server, or None when the entry does not say."""
    kind = entry.get("type") or entry.get("transport")
    if url_of(entry) and (kind in _REMOTE_TYPES or not argv_of(entry)):
        return "sse" if kind == "sse" else "http"
    return "stdio" if argv_of(entry) else None


def is_switched_off(entry: Mapping[str, Any]) -> bool:
    """Whether an entry says that it is off, heeded by its agent or not."""
    return entry.get("disabled") is True or entry.get("enabled") is False


def will_start(entry: Mapping[str, Any], agent: Agent) -> bool:
    """Whether the agent would start the server, by what it heeds."""
    if agent.off_switch in ("disabled", "either") and entry.get("disabled") is True:
        return False
    return not (agent.off_switch in ("enabled", "either") and entry.get("enabled") is False)


def is_ours(argv: Sequence[Any], own: Sequence[str] = ()) -> bool:
    """Whether a command line runs our shim, directly or through an interpreter or a runner.

    Args:
        argv: the command line as written.
        own: further paths that this program is known by.
    """
    for word, following in pairwise(argv):
        if not isinstance(word, str) or word == "--":
            return False
        known = word in own or PurePath(word.replace("\\", "/")).name in _OUR_NAMES
        if known and following == "shim":
            return True
    return False


def merge_keys(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry joined key by key: tables are merged, everything else is replaced."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = merge_keys(below, value)
        else:
            merged[key] = value
    return merged
