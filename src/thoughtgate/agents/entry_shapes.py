"""Extraction of the command line or URL from a server entry.

Agents use five shapes for the command line: ``command`` and ``args`` side by side, one
``command`` array (opencode), a ``command`` object with ``path`` and ``args`` (older Zed), a
``transport`` object around ``command`` and ``args`` (Cline's CLI), and ``cmd`` (goose).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from thoughtgate.agents.catalog import Agent
from thoughtgate.agents.entries import KeyPath, Transport

URL_KEYS: Final = ("url", "httpUrl", "serverUrl")

DEBUG_KEY: Final = "dev"
"""VS Code's key for debugging a server: it can name a program that is run in place of Python."""

REMOTE_KEYS: Final = (
    DEBUG_KEY,
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
    "env",
    "environment",
    "envFile",
)
"""Keys that are removed when the URL of an entry is replaced by a command.

Some agents refuse an entry that has both. Variables had no effect on a URL, but would affect the
command, which is the gate.
"""

ENV_KEYS: Final[tuple[KeyPath, ...]] = (
    ("environment",),
    ("env",),
    ("command", "env"),
    ("transport", "env"),
    ("envs",),
)
"""Where agents keep a server's variables: opencode, most of them, older Zed, Cline's CLI, goose."""

_REMOTE_TYPES: Final = frozenset(
    {"http", "sse", "remote", "streamable-http", "streamable_http", "streamableHttp", "ws"}
)

_OUR_NAMES: Final = frozenset({"thoughtgate", "thoughtgate.exe"})


class CommandKeys(NamedTuple):
    """The keys of an entry that contain its command line."""

    command: KeyPath
    args: KeyPath

    @property
    def is_array(self) -> bool:
        """Whether a single array contains the command and its arguments."""
        return self.command == self.args


def command_keys(entry: Mapping[str, Any]) -> CommandKeys:
    """Return the keys that contain an entry's command line."""
    command = entry.get("command")
    if isinstance(command, list):
        return CommandKeys(("command",), ("command",))
    if isinstance(command, Mapping):
        return CommandKeys(("command", "path"), ("command", "args"))
    if isinstance(entry.get("transport"), Mapping):
        return CommandKeys(("transport", "command"), ("transport", "args"))
    return CommandKeys(("cmd",) if command is None and "cmd" in entry else ("command",), ("args",))


def lookup(entry: Any, keys: KeyPath) -> Any:
    """Return the value at a path, or None."""
    for key in keys:
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(key)
    return entry


def argv_of(entry: Mapping[str, Any]) -> list[Any]:
    """Return the command line of an entry as written; empty when it has no command."""
    keys = command_keys(entry)
    command, args = lookup(entry, keys.command), lookup(entry, keys.args)
    if keys.is_array:
        return list(command)
    if not isinstance(command, str) or not command:
        return []
    return [command, *(args if isinstance(args, list) else [])]


def url_of(entry: Mapping[str, Any]) -> str:
    """Return the URL of a remote entry, or an empty string."""
    inner = entry.get("transport")
    tables = (entry, inner) if isinstance(inner, Mapping) else (entry,)
    urls = (table.get(key) for table in tables for key in (*URL_KEYS, "uri"))
    return next((url for url in urls if isinstance(url, str) and url), "")


def transport_of(entry: Mapping[str, Any]) -> Transport | None:
    """Return the transport that the agent would use, or None when the entry does not define one."""
    kind = entry.get("type") or entry.get("transport")
    kind = kind.get("type") if isinstance(kind, Mapping) else kind
    if url_of(entry) and (kind in _REMOTE_TYPES or not argv_of(entry)):
        return "sse" if kind == "sse" else "http"
    return "stdio" if argv_of(entry) else None


def has_odd_url(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry has its URL where a rewrite does not replace it: Cline's CLI, goose."""
    return "uri" in entry or isinstance(entry.get("transport"), Mapping)


def is_switched_off(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry is marked as disabled, even if its agent ignores the mark."""
    return entry.get("disabled") is True or entry.get("enabled") is False


def will_start(entry: Mapping[str, Any], agent: Agent) -> bool:
    """Tell whether the agent would start the server, given the keys that it supports."""
    if agent.off_switch in ("disabled", "either") and entry.get("disabled") is True:
        return False
    return not (agent.off_switch in ("enabled", "either") and entry.get("enabled") is False)


def env_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of an entry as written."""
    tables = (lookup(entry, keys) for keys in ENV_KEYS)
    return {
        name: value
        for table in tables
        if isinstance(table, Mapping)
        for name, value in table.items()
    }


def is_shim_command(argv: Sequence[Any]) -> bool:
    """Tell whether a command line runs our shim, directly or through an interpreter or runner."""
    for word, following in pairwise(argv):
        if not isinstance(word, str) or word == "--":
            return False
        if PurePath(word.replace("\\", "/")).name in _OUR_NAMES and following == "shim":
            return True
    return False


def shim_words(argv: Sequence[Any]) -> int:
    """Return how many words of a command line belong to shims; a server's command follows them.

    0 if the command line does not begin with a shim, or names no server behind it.
    """
    count = 0
    while is_shim_command(argv[count:]) and "--" in argv[count:]:
        count = argv.index("--", count) + 1
    return count if count < len(argv) else 0


def is_left_by_wrap(argv: Sequence[Any]) -> bool:
    """Tell whether a wrap wrote a command line: only a wrap puts ``--run`` before the server's."""
    if not is_shim_command(argv) or "--" not in argv[:-1]:
        return False
    # A "--run" after the first "--" is an argument of the server.
    return "--run" in argv[: argv.index("--")]


def merge_keys(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two entries key by key: tables are merged, other values are replaced."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = merge_keys(below, value)
        else:
            merged[key] = value
    return merged
