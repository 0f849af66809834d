"""What a config needs of its surroundings: variables that must be set, extras to install.

A config can be right and still not run here. Each command refuses what it needs itself;
this lists everything at once, for whoever asks before anything is started.
"""

import importlib.util
from collections.abc import Iterator, Mapping

from thoughtgate.config.settings import Settings
from thoughtgate.errors import Problem
from thoughtgate.runtime.channel_keys import missing_secrets

_EXTRAS = {"otel": "opentelemetry.sdk", "jwt": "jwt"}
"""The module that shows whether an extra is installed."""


def missing_requirements(
    settings: Settings, environ: Mapping[str, str], file: str = ""
) -> list[Problem]:
    """Return what the config names and the surroundings do not have."""
    found = [
        Problem(key, f"the variable {name} is not set", file)
        for key, name in _variables(settings)
        if not environ.get(name, "").strip()
    ]
    found += missing_secrets(settings, environ, file)
    found += [
        Problem(key, f"needs an extra: pip install 'thoughtgate[{extra}]'", file)
        for key, extra in _extras(settings)
        if not _is_installed(_EXTRAS[extra])
    ]
    return found


def _variables(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.audit.sign_key_env:
        yield "audit.sign_key_env", settings.audit.sign_key_env
    for server in settings.servers.values():
        if server.auth is not None and server.enabled:
            yield f"servers.{server.id}.auth.token_env", server.auth.token_env
    auth = settings.listen.auth
    if auth is not None and auth.token_env:
        yield "listen.auth.token_env", auth.token_env


def _extras(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.telemetry.otlp is not None:
        yield "telemetry.otlp", "otel"
    auth = settings.listen.auth
    if auth is not None and auth.type == "jwt":
        yield "listen.auth.type", "jwt"


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is part of
        return False
