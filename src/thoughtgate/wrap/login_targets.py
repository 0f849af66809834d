"""Finding the remote server that ``thoughtgate login NAME`` refers to.

A name is the id of a server in the config, the name of a remote entry in an agent's config, or a
URL. While an agent is wrapped, the URLs of its remote entries are in the run's private file.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import discover
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.errors import UsageError
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.transports.origin import parse_origin
from thoughtgate.wrap.remote_servers import reach
from thoughtgate.wrap.remotes_file import DIRECTORY

MAX_FILE: Final = 16 * 1024 * 1024


def find_login_server(
    name: str, settings: Settings, environ: Mapping[str, str], cwd: Path, home: Path
) -> ServerSettings:
    """Return the server to sign in to.

    Raises:
        UsageError: no remote server has this name, or several different ones have.
    """
    found = settings.servers.get(name)
    if found is not None and name != "*":
        if not found.url:
            raise UsageError(
                f"server {name!r} is started with a command; only servers with a URL need a login"
            )
        return found
    if name.startswith(("http://", "https://")):
        return _by_url(name)
    urls = dict.fromkeys(url for known, url in remote_servers(environ, cwd, home) if known == name)
    if len(urls) > 1:
        raise UsageError(
            f"{len(urls)} agents' configs have a server {name!r} with different URLs; "
            "give the URL instead of the name"
        )
    if urls:
        return _by_url(next(iter(urls)), name)
    known = {one.id for one in settings.servers.values() if one.url}
    known |= {each for each, _ in remote_servers(environ, cwd, home)}
    listed = ", ".join(sorted(known)) or "none"
    raise UsageError(
        f"there is no remote server {name!r} here; known: {listed}. "
        "If it is in another config, name that with -c; thoughtgate status shows what gates use"
    )


def remote_servers(environ: Mapping[str, str], cwd: Path, home: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and URL of every remote server in the configs of agents, wrapped ones too."""
    yield from wrapped_servers(state_directory(environ))
    for kind, agent in AGENTS.items():
        search = Search(kind, environ, cwd, home, platform=sys.platform)
        for entry in discover(search).with_status("remote"):
            reached = reach(entry, agent.syntax, environ)
            if reached is not None:
                yield entry.id, reached["url"]


def wrapped_servers(state: str) -> Iterator[tuple[str, str]]:
    """Yield the name and URL of every remote server of an agent that is wrapped now."""
    for path in sorted(Path(state, DIRECTORY).glob("*.json")):
        for name, server in _servers(path).items():
            url = server.get("url") if isinstance(server, dict) else None
            if isinstance(url, str):
                yield name, url


def _servers(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(MAX_FILE))
    except (OSError, ValueError, RecursionError):  # removed by now, or being written
        return {}
    servers = document.get("servers") if isinstance(document, dict) else None
    return servers if isinstance(servers, dict) else {}


def _by_url(url: str, name: str = "") -> ServerSettings:
    try:
        host = parse_origin(url).host
    except ValueError as error:
        raise UsageError(f"cannot sign in to this URL: {error}") from None
    return ServerSettings(name or host, url=url)
