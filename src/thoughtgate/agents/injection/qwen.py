"""Qwen Code: a private config file, and the flag that lets only the servers in it start.

Qwen expands nothing in such a file, so references are resolved here, as Qwen would do it. Servers
of a project need an approval, which is bound to a hash of the entry.
"""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Final

from thoughtgate.agents.config_paths import Search, flag_values
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.injection.command_line import with_arguments, without_flag
from thoughtgate.agents.injection.injection import Governed, Injection
from thoughtgate.agents.injection.records import read_json, table, texts
from thoughtgate.agents.injection.whole_entries import expanded, whole_entries
from thoughtgate.agents.ungoverned_servers import extensions

SUBCOMMANDS: Final = frozenset({"channel", "extensions", "hooks", "mcp", "review", "serve"})
"""Subcommands that use the servers in the files; most refuse the flags below."""

CONFIG: Final = "--mcp-config"
ALLOWED: Final = "--allowed-mcp-server-names"
_NO_SERVER: Final = "no-server"
"""The allowed name if there is no server: without any name, the flag would let all servers start."""

_PATTERN: Final = frozenset("*?")
"""Characters that turn a name in the list of allowed servers into a pattern for others as well."""

_NO_HASH: Final = frozenset({"scope", "extensionName", "description"})
"""Keys that Qwen leaves out of the hash to which an approval is bound."""


def inject(given: Governed) -> Injection:
    """Return how Qwen Code is started with the governed servers and no others."""
    search = given.plan.search
    lists = _Lists(search)
    found = whole_entries(
        given, lambda one: lists.refusal(one.id) or _refusal(one, given), refused_hides=True
    )
    found = found._replace(servers=expanded(found.servers, given))
    file = found.private_file(given)
    own = without_flag(without_flag(given.command, CONFIG), ALLOWED)
    allowed = [f"{ALLOWED}={name}" for name in found.servers or (_NO_SERVER,)]
    # In this order: the list of names would take the words after it, so another option follows.
    return Injection(
        with_arguments(own, (*allowed, f"{CONFIG}={file.path}")),
        found.governed,
        files=(file,),
        left_out=(*extensions(search.home / ".qwen", "qwen-extension.json"), *found.left_out),
        outside=found.outside,
    )


class _Lists:
    """The names that the settings and the command line allow and exclude."""

    def __init__(self, search: Search) -> None:
        files = [folder / ".qwen" / "settings.json" for folder in (search.home, search.cwd)]
        settings = [table(read_json(file), "mcp") for file in files]
        self._excluded = frozenset[str]().union(*(texts(one.get("excluded")) for one in settings))
        given = frozenset(flag_values(search.argv, ALLOWED))
        listed = [texts(one["allowed"]) for one in settings if isinstance(one.get("allowed"), list)]
        self._allowed = [*listed, *([given] if given else ())]

    def refusal(self, name: str) -> str:
        """Return why a server must not start; empty if it may."""
        if not _PATTERN.isdisjoint(name):
            return "its name is a pattern for Qwen Code, which would let other servers start"
        if _matches(name, self._excluded):
            return "excluded by mcp.excluded in Qwen Code's settings"
        if any(not _matches(name, allowed) for allowed in self._allowed):
            return "not among the servers that are allowed in Qwen Code"
        return ""


def _matches(name: str, patterns: frozenset[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _refusal(entry: ServerEntry, given: Governed) -> str:
    """Return why an entry of a project must not be given to Qwen Code; empty if it may be."""
    if entry.layer.scope != "project":
        return ""
    search = given.plan.search
    named = search.variable_path("QWEN_CODE_MCP_APPROVALS_PATH")
    records = read_json(named or search.home / ".qwen" / "mcpApprovals.json")
    for folder in dict.fromkeys((search.cwd, search.cwd.resolve())):
        record = table(records, str(folder), entry.id)
        if record.get("hash") in _hashes(entry, given):
            if record.get("status") == "approved":
                return ""
            return "you rejected this project server in Qwen Code"
    return "a project server that you have not approved in Qwen Code"


def _hashes(entry: ServerEntry, given: Governed) -> Sequence[str]:
    """Return the hashes of an entry: as written, and with its references resolved."""
    return [_hash(_normal(value)) for value in (entry.raw, expanded(entry.raw, given))]


def _hash(value: Mapping[str, Any]) -> str:
    kept = {key: one for key, one in value.items() if key not in _NO_HASH}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _normal(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as Qwen stores it: without ``type``, which selects the name of the URL's key."""
    rest = dict(raw)
    kind = rest.get("type")
    if kind != "sdk":
        rest.pop("type", None)
    is_url = not any(rest.get(key) for key in ("command", "httpUrl", "tcp"))
    if is_url and kind == "http" and isinstance(rest.get("url"), str):
        rest["httpUrl"] = rest.pop("url")
    return rest
