"""Puts an agent's remote servers behind the gate: a shim in front of a proxy that uses the URL.

The shim asks the run's service like every other; the proxy behind it only forwards. URLs and
headers may contain secrets, so they are in a private file in the state directory and not on the
command line. Entries that need the agent itself, such as an OAuth sign-in, stay with the agent
and are reported as not governed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.atomic import write_private
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.expansion import Syntax, expand
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.wrap.remotes_file import DIRECTORY

_AGENTS_OWN: Final = ("headersHelper", "oauth", "auth", "scopes", "bearer_token")
"""Keys for features that only the agent itself can provide."""


class Remotes:
    """The remote entries of a plan that a proxy can reach, each with a name for the proxy's config."""

    def __init__(self, plan: Plan, environ: Mapping[str, str]) -> None:
        self._names: dict[tuple[str, ...], str] = {}
        self._servers: dict[str, dict[str, Any]] = {}
        for number, entry in enumerate(plan.with_status("remote"), 1):
            server = reach(entry, plan.agent.syntax, environ)
            if server is not None:
                name = f"remote-{number}"
                self._names[_place(entry)] = name
                self._servers[name] = server

    def name_of(self, entry: ServerEntry) -> str | None:
        """Return the name of an entry in the proxy's config; None if it stays with the agent."""
        return self._names.get(_place(entry))

    def save(self, path: Path) -> None:
        """Write the proxy's config, readable by its owner only; nothing if there are no entries."""
        if not self._servers:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        document = {"schema": 1, "default": "forward", "servers": self._servers}
        write_private(path, json.dumps(document, indent=1).encode())


def reach(entry: ServerEntry, syntax: Syntax, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return how a proxy reaches a remote entry; None if only the agent can."""
    if entry.transport != "http" or any(entry.raw.get(key) for key in _AGENTS_OWN):
        return None
    headers = {
        str(name): expand(str(value), syntax, environ) for name, value in entry.headers.items()
    }
    for name, variable in _from_variables(entry).items():
        value = environ.get(variable)
        if value is None:
            return None
        headers[name] = f"Bearer {value}" if name == "Authorization" else value
    url = expand(entry.url, syntax, environ)
    if any("${" in text or "{env:" in text for text in (url, *headers.values())):
        # An input prompt or a variable that is not set: only the agent may be able to resolve it.
        return None
    return {"url": url, "headers": headers} if headers else {"url": url}


def remove_orphans(environ: Mapping[str, str], living: frozenset[str]) -> None:
    """Remove the files of runs whose keys are not in ``living``."""
    for path in Path(state_directory(environ), DIRECTORY).glob("*"):
        if path.name.removesuffix(".json") not in living:
            path.unlink(missing_ok=True)


def _place(entry: ServerEntry) -> tuple[str, ...]:
    return (str(entry.layer.real), *entry.path)


def _from_variables(entry: ServerEntry) -> dict[str, str]:
    """Return the headers whose values come from environment variables, as in Codex's config."""
    found: dict[str, str] = {}
    named = entry.raw.get("env_http_headers")
    if isinstance(named, Mapping):
        found.update((str(name), str(variable)) for name, variable in named.items())
    token = entry.raw.get("bearer_token_env_var")
    if isinstance(token, str):
        found["Authorization"] = token
    return found
