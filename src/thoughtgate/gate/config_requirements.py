"""Requirements of a config: variables that must be set and extras that must be installed.

A valid config may still not run on this machine. Each command checks what it needs itself;
this module lists all problems at once, for a check before anything is started.
"""

import importlib.util
from collections.abc import Iterator, Mapping
from typing import Final

from thoughtgate.config.settings import Settings
from thoughtgate.errors import Problem
from thoughtgate.gate.approvals.channel_secrets import missing_secrets

_EXTRAS = {"otel": "opentelemetry.sdk", "jwt": "jwt"}
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
    found += [
        Problem(key, f"needs an extra: pip install 'thoughtgate[{extra}]'", file)
        for key, extra in _extras(settings)
        if not _is_installed(_EXTRAS[extra])
    ]
    return found


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
    if settings.console.sign_in is not None:
        yield "console.sign_in", "jwt"


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # raised if the parent package is missing
        return False
