"""What ``login`` and ``logout`` share: finding the server, and opening the stored tokens."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from thoughtgate.cli.options import read_config
from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.envelope import render_time
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.open_governor import store_location
from thoughtgate.gate.run_identity import LOCAL
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.upstream.oauth.access import OAuthAccess
from thoughtgate.upstream.oauth.tokens import SignedIn
from thoughtgate.wrap.login_targets import find_login_server

ServerArgument = Annotated[
    str,
    Argument(
        metavar="SERVER",
        help="Id of a server in the config, name of a remote server in an agent's config, or a URL.",
    ),
]
PrincipalOption = Annotated[
    str,
    Option(
        metavar="NAME",
        help="Principal whose agents use the tokens, if agents authenticate to the gate.",
    ),
]


def open_access(config: str | None, name: str) -> tuple[OAuthAccess, ServerSettings, Loaded]:
    """Return the tokens of the gates of a config, and the server that a name stands for.

    Raises:
        ConfigError: the config is invalid.
        UsageError: there is no such server, or it has no URL.
        StoreError: the state directory cannot be used.
    """
    loaded = read_config(config)
    server = find_login_server(name, loaded.settings, os.environ, Path.cwd(), Path.home())
    state = ensure_directory(state_directory(os.environ))
    # The proxies of ``wrap`` read the tokens of agents' own entries from the state directory.
    is_configured = any(one.url == server.url for one in loaded.settings.servers.values())
    location = store_location(loaded, state) if is_configured else StoreLocation(Path(state))
    access = OAuthAccess(
        location, os.environ, loaded.settings.keys.tokens_env, config=loaded.path or ""
    )
    return access, server, loaded


def login_lines(found: SignedIn) -> Sequence[str]:
    """Return a sign-in as text."""
    who = "" if found.principal == LOCAL else f" as {found.principal}"
    if found.is_renewable:
        until = "the gate renews it by itself"
    elif found.expires_at:
        until = f"until {render_time(found.expires_at)}"
    else:
        until = "until the server ends it"
    scopes = f", scopes: {' '.join(found.scopes)}" if found.scopes else ""
    return (f"Signed in to {found.server}{who}; {until}{scopes}",)
