"""Putting an agent's remote servers behind the gate: a shim in front of a proxy that uses the URL.

The shim asks the run's service like every other shim; the proxy behind it only forwards. URLs and
headers may contain secrets, so they are in a private file in the state directory and not on the
command line. If a server needs a login, the proxy uses the tokens of ``thoughtgate login NAME``.
Entries that need the agent itself, such as those with a helper that computes headers, stay with the
agent and are reported as not governed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.atomic import write_private
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.expansion import Syntax, expand
from thoughtgate.agents.injection.injection import place_of
from thoughtgate.config.checks import GATES_HEADERS, proxy_fault
from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.errors import Conflict
from thoughtgate.gate.connections.proxy_choice import ENVIRONMENT, proxy_of
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.wrap.remotes_file import DIRECTORY, INSTALLED

_AGENTS_OWN: Final = ("headersHelper", "bearer_token", "authProviderType")
"""Keys for features that only the agent itself can provide."""

_CLIENT: Final = {
    "clientId": "client_id",
    "CLIENT_ID": "client_id",
    "scope": "scopes",
    "scopes": "scopes",
    "enabled": "",
}
"""The keys of a login in agents' configs, and our keys for them; empty for one that has no effect.

An entry with any other key stays with the agent. So does one with a client secret, because our
config takes secrets only from the environment."""

_IDENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RESERVED: Final = "thoughtgate"


class Remotes:
    """The remote entries of a plan that a proxy can reach, each with a name for the proxy's config."""

    def __init__(
        self,
        plan: Plan,
        environ: Mapping[str, str],
        settings: Settings | None = None,
        config: str = "",
    ) -> None:
        """Find out how each remote entry is reached.

        ``settings``, from the file ``config``, may add to the entry of the same name.
        """
        tokens_env = settings.keys.tokens_env if settings is not None else ""
        self._key = {tokens_env: environ[tokens_env]} if environ.get(tokens_env) else {}
        self._tokens_env = tokens_env
        self._names: dict[tuple[str, ...], str] = {}
        self._servers: dict[str, dict[str, Any]] = {}
        self._variables: dict[str, dict[str, str]] = {}
        """The variables that the config names for a server, by the name in the agent's config."""
        for number, entry in enumerate(plan.with_status("remote"), 1):
            server = reach(entry, plan.agent.syntax, environ)
            if server is None:
                continue
            known = settings.servers.get(entry.id) if settings is not None else None
            if known is not None:
                server |= connection_of(known, server, config)
                self._variables[entry.id] = _variables_of(server, environ)
            name = self._ident(entry.id, number)
            self._names[place_of(entry)] = name
            self._servers[name] = server

    def _ident(self, name: str, number: int) -> str:
        """Return the id in the proxy's config: the name in the agent's config, if that is valid.

        Users see it in errors and give it to ``thoughtgate login``.
        """
        taken = {_RESERVED, *map(str.lower, self._servers)}
        is_usable = _IDENT.fullmatch(name) is not None and name.lower() not in taken
        return name if is_usable else f"remote-{number}"

    def name_of(self, entry: ServerEntry) -> str | None:
        """Return the name of an entry in the proxy's config; None if it stays with the agent."""
        return self._names.get(place_of(entry))

    def relayed(self, plan: Plan) -> set[str]:
        """Return the names of the servers that our own proxy reaches.

        A name that also belongs to an entry with a command is left out: the variables of a proxy,
        which contain keys, must go to our own program alone.
        """
        others = {entry.id for entry in plan.entries if place_of(entry) not in self._names}
        return {path[-1] for path in self._names} - others

    def own_variables(self, plan: Plan) -> dict[str, dict[str, str]]:
        """Return the variables of the proxies, by the names of their servers."""
        own = {name: self._key | self._variables.get(name, {}) for name in self.relayed(plan)}
        return {name: variables for name, variables in own.items() if variables}

    def identities(self) -> dict[str, tuple[str, ...]]:
        """Return the URL of each server, by the name of its entry."""
        return {
            place[-1]: (str(self._servers[name]["url"]),) for place, name in self._names.items()
        }

    def needed_variables(self) -> list[str]:
        """Return the names of the variables that a proxy must have when it starts."""
        named = [name for server in self._servers.values() for name in _credentials(server)]
        return [*([self._tokens_env] if self._tokens_env else []), *named]

    def save(self, path: Path) -> None:
        """Write the proxy's config, readable by its owner only; nothing if there are no entries."""
        if not self._servers:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Definitions are compared by the governance service; the proxy only passes them on.
        servers = {"*": {"definitions": "off"}, **self._servers}
        document = {"schema": 1, "default": "forward", "servers": servers}
        if self._tokens_env:
            document["keys"] = {"tokens_env": self._tokens_env}
        write_private(path, json.dumps(document, indent=1).encode())

    def require_same(self, path: Path, real: Path) -> None:
        """Check that another wrap reaches the servers of a file that both share in the same way.

        Raises:
            Conflict: it does not.
        """
        # The entries in the shared file name the other wrap's config, so that is what is used.
        names = [name for place, name in self._names.items() if place[0] == str(real)]
        try:
            there = json.loads(path.read_bytes())["servers"] if names else {}
        except (OSError, ValueError, KeyError):
            there = {}
        for name in names:
            own = json.loads(json.dumps(self._servers[name]))
            if there.get(name, own) != own:
                raise Conflict(
                    f"{real} is rewritten by another thoughtgate wrap that reaches {name} in another "
                    "way; start both with the same variables and config, or end that one first"
                )


def reach(entry: ServerEntry, syntax: Syntax, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return how a proxy reaches a remote entry; None if only the agent can."""
    if entry.transport == "stdio" or any(entry.raw.get(key) for key in _AGENTS_OWN):
        return None
    headers = {
        str(name): expand(str(value), syntax, environ) for name, value in entry.headers.items()
    }
    for name, variable in _from_variables(entry).items():
        value = environ.get(variable)
        if value is None:
            return None
        headers[name] = f"Bearer {value}" if name == "Authorization" else value
    # Headers that the gate's HTTP client sets itself, as agents' own clients do.
    headers = {name: text for name, text in headers.items() if name.lower() not in GATES_HEADERS}
    url = expand(entry.url, syntax, environ)
    if any("${" in text or "{env:" in text for text in (url, *headers.values())):
        # An input prompt or a variable that is not set: only the agent may be able to resolve it.
        return None
    login = _login_of(entry)
    if login is None:
        return None
    # Decided here, with the user's environment; the proxy is started by the agent, with another.
    proxy = proxy_of(url, environ)
    if proxy is not None and proxy_fault(proxy.url):
        return None
    parts = {"url": url, "headers": headers, "auth": login, "proxy": proxy and proxy.url}
    return {key: value for key, value in parts.items() if value}


def connection_of(known: ServerSettings, server: Mapping[str, Any], config: str) -> dict[str, Any]:
    """Return the keys that the operator's config adds to a remote entry of the same name.

    The URL comes from the agent's file, which an agent or a repository may have written.
    Certificates, credentials and the proxy are meant for the URL in the operator's config, so they
    are used only if the entry has the same one.
    """
    found: dict[str, Any] = {"timeout": _milliseconds(known.timeout_s)}
    if known.url.rstrip("/") != server["url"].rstrip("/"):
        return found
    found |= {
        "transport": known.transport,
        "max_answer": known.max_answer,
        "connect_timeout": _milliseconds(known.connect_timeout_s),
    }
    if known.tls is not None:
        base = Path(config).absolute().parent
        paths = {key: path for key, path in asdict(known.tls).items() if path}
        found["tls"] = {key: str(base / path) for key, path in paths.items()}
    if known.proxy and known.proxy != ENVIRONMENT:
        found["proxy"] = known.proxy
    has_own = "auth" in server or "authorization" in map(str.lower, server.get("headers", {}))
    if known.auth is not None and not has_own:
        usual = asdict(ServerAuth())
        said = {key: value for key, value in asdict(known.auth).items() if value != usual[key]}
        found["auth"] = {**said, "type": known.auth.type}
    return found


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def _variables_of(server: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the credentials that an entry names."""
    return {name: environ[name] for name in _credentials(server) if environ.get(name)}


def _credentials(server: Mapping[str, Any]) -> list[str]:
    """Return the names of the variables with the credentials of a server."""
    auth = server.get("auth", {})
    return [auth[key] for key in ("token_env", "client_secret_env") if auth.get(key)]


def _login_of(entry: ServerEntry) -> dict[str, Any] | None:
    """Return how the gate signs in; empty if the entry does not say, None if only the agent can."""
    found: dict[str, Any] = {}
    for key in ("oauth", "auth", "scopes"):
        said = entry.raw.get(key)
        if not said:
            continue
        for name, value in said.items() if isinstance(said, Mapping) else [(key, said)]:
            own = _CLIENT.get(name)
            if own is None:
                return None
            if own:
                words = value.split() if isinstance(value, str) else value
                found[own] = value if own == "client_id" else words
    texts = (found.get("client_id", ""), *found.get("scopes", ()))
    if not all(isinstance(text, str) for text in texts):
        return None
    return {"type": "oauth", **found} if found else {}


def remove_orphans(environ: Mapping[str, str], living: frozenset[str]) -> None:
    """Remove the files of runs whose keys are not in ``living``."""
    for path in Path(state_directory(environ), DIRECTORY).glob("*"):
        if path.name.startswith(INSTALLED) or path.stem in living:
            continue
        path.unlink(missing_ok=True)


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
