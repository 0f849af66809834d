"""Requirements of a config: variables that must be set and extras that must be installed.

A valid config may still not run on this machine. Each command checks what it needs itself;
this module lists all problems at once, for a check before anything is started.
"""

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from thoughtgate.config.listen_settings import DEFAULT_LISTEN
from thoughtgate.config.server_auth import OAUTH
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.errors import ConfigError, Problem
from thoughtgate.gate.approvals.channel_secrets import missing_secrets
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.connections.certificates import certificate_problems
from thoughtgate.gate.connections.proxy_choice import choose_proxy
from thoughtgate.gate.keys import check_keys, place_of_keys
from thoughtgate.stores.open_database import SQLITE

_EXTRAS = {
    "otel": "opentelemetry.sdk",
    "jwt": "jwt",
    "postgres": "psycopg_pool",
    "oauth": "authlib",
}
"""The module whose presence shows that an extra is installed."""

MIN_SIGN_KEY: Final = 32
"""Minimum length of a signing key: a shorter key can be guessed from a signed record."""


def missing_requirements(
    settings: Settings, environ: Mapping[str, str], file: str = ""
) -> list[Problem]:
    """Return the variables and extras that the config needs and that are missing."""
    signing = settings.audit.sign_key_env
    wrong = sign_key_fault(signing, environ) if signing else ""
    found = [Problem("audit.sign_key_env", wrong, file)] if wrong else []
    found += [
        Problem(key, f"the variable {name} is not set", file)
        for key, name in _variables(settings)
        if not environ.get(name, "").strip()
    ]
    found += missing_secrets(settings, environ, file)
    found += _keys(settings, file)
    found += certificate_problems(settings, file)
    found += _proxies(settings.servers.values(), environ, file, agent_started=False)
    found += [
        Problem(key, f"needs an extra: pip install 'thoughtgate[{extra}]'", file)
        for key, extra in _extras(settings)
        if not _is_installed(_EXTRAS[extra])
    ]
    return found


def check_connections(
    servers: Iterable[ServerSettings],
    loaded: Loaded,
    environ: Mapping[str, str],
    *,
    listens: bool,
) -> None:
    """Check the certificates and proxies of a gate before anything is started.

    ``listens`` says whether the gate has an HTTP listener.

    Raises:
        ConfigError: with everything that cannot be used.
    """
    file, started = loaded.path or "", loaded.agent_started
    reached = replace(loaded.settings, servers={one.id: one for one in servers if one.enabled})
    if not listens:
        reached = replace(reached, listen=DEFAULT_LISTEN)
    found = [
        *certificate_problems(reached, file),
        *_proxies(reached.servers.values(), environ, file, agent_started=started),
    ]
    if found:
        raise ConfigError(found)


def _proxies(
    servers: Iterable[ServerSettings],
    environ: Mapping[str, str],
    file: str,
    *,
    agent_started: bool,
) -> Iterator[Problem]:
    for server in servers:
        try:
            choose_proxy(server, environ, agent_started=agent_started, file=file)
        except ConfigError as error:
            yield from error.problems


def sign_key_fault(name: str, environ: Mapping[str, str]) -> str:
    """Return what is wrong with the record's signing key; empty if it is valid."""
    value = environ.get(name, "")
    if not value.strip():
        return f"the variable {name} is not set"
    if len(value) < MIN_SIGN_KEY:
        return (
            f"the key in the variable {name} is too short; set it to at least {MIN_SIGN_KEY}"
            " random characters, such as those of: openssl rand -hex 32"
        )
    return ""


def _variables(settings: Settings) -> Iterator[tuple[str, str]]:
    for server in settings.servers.values():
        if server.auth is not None and server.enabled:
            for key in ("token_env", "client_secret_env"):
                if name := getattr(server.auth, key):
                    yield f"servers.{server.id}.auth.{key}", name
    auth = settings.listen.auth
    if auth is not None and auth.token_env:
        yield "listen.auth.token_env", auth.token_env


def _keys(settings: Settings, file: str) -> tuple[Problem, ...]:
    is_http = settings.listen.transport == "http"
    try:
        is_shared = is_http and settings.store != SQLITE
        check_keys(place_of_keys("", settings.keys.file, file), file, is_shared=is_shared)
    except ConfigError as error:
        # Whoever only reads a key file does not know which config names it.
        return tuple(Problem(one.key, one.message, one.file or file) for one in error.problems)
    return ()


def _extras(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.store != SQLITE:
        yield "store", "postgres"
    if settings.telemetry.otlp is not None:
        yield "telemetry.otlp", "otel"
    auth = settings.listen.auth
    if auth is not None and auth.type == "jwt":
        yield "listen.auth.type", "jwt"
    for server in settings.servers.values():
        if server.auth is not None and server.auth.type == OAUTH:
            yield f"servers.{server.id}.auth.type", "oauth"
    if settings.console.sign_in is not None:
        yield "console.sign_in", "jwt"


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # raised if the parent package is missing
        return False
