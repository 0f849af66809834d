"""The certificate files that a config names: checking them, and creating TLS contexts from them.

Every path is relative to the config file. A private key that others can read is refused, like every
other key of the gate.
"""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from thoughtgate.config.settings import Settings
from thoughtgate.config.tls_settings import ListenTls, ServerTls
from thoughtgate.errors import ConfigError, Problem
from thoughtgate.gate.keys import exposure
from thoughtgate.transports.tls import (
    ReloadedContext,
    client_context,
    reason_of,
    server_context,
)

Report = Callable[[str], None]
"""Called with a message for the operator."""

_SILENT: Final[Report] = lambda _text: None  # noqa: E731  a default, not a function of its own


def beside(config: str | None, name: str) -> str:
    """Return a path from a config as one that is valid here; empty if there is none."""
    if not name:
        return ""
    base = Path(config).absolute().parent if config else Path.cwd()
    return str(base / Path(name).expanduser())


def trusting(ca: str, config: str | None, key: str) -> ssl.SSLContext:
    """Return a context that also trusts the CAs in a file that a config names at ``key``.

    Raises:
        ConfigError: the file cannot be used.
    """
    return _built(lambda: client_context(beside(config, ca)), key, config)


def server_tls(
    tls: ServerTls | None, config: str | None, key: str, report: Report = _SILENT
) -> ssl.SSLContext:
    """Return the context for connections to a server; ``key`` is where the config has its TLS.

    Raises:
        ConfigError: a file cannot be used.
    """
    if tls is None:
        return client_context()
    files = [beside(config, name) for name in (tls.ca, tls.client_cert, tls.client_key)]

    def build() -> ssl.SSLContext:
        _check_key(files[2])
        return client_context(*files)

    used = [file for file in files if file]
    return _built(lambda: ReloadedContext(build, used, _about(key, report)), key, config)


def listener_tls(tls: ListenTls, config: str | None, report: Report = _SILENT) -> ssl.SSLContext:
    """Return the context of the listener.

    Raises:
        ConfigError: a file cannot be used.
    """
    files = [beside(config, name) for name in (tls.cert, tls.key, tls.client_ca)]

    def build() -> ssl.SSLContext:
        _check_key(files[1])
        return server_context(*files)

    used, key = [file for file in files if file], "listen.tls"
    return _built(lambda: ReloadedContext(build, used, _about(key, report)), key, config)


def certificate_problems(settings: Settings, config: str) -> Iterator[Problem]:
    """Yield what is wrong with the certificate files of a config, each with its key."""
    for server in settings.servers.values():
        if server.tls is not None:
            where = f"servers.{server.id}.tls"
            tls = server.tls
            yield from _authorities(f"{where}.ca", tls.ca, config)
            pair = (tls.client_cert, tls.client_key)
            yield from _pair(where, ("client_cert", "client_key"), pair, config)
    listen, sign_in = settings.listen, settings.console.sign_in
    if listen.tls is not None:
        pair = (listen.tls.cert, listen.tls.key)
        yield from _pair("listen.tls", ("cert", "key"), pair, config)
        yield from _authorities("listen.tls.client_ca", listen.tls.client_ca, config)
    if listen.auth is not None:
        yield from _authorities("listen.auth.ca", listen.auth.ca, config)
    if sign_in is not None:
        yield from _authorities("console.sign_in.jwt.ca", sign_in.jwt.ca, config)


def _authorities(key: str, name: str, config: str) -> Iterator[Problem]:
    if not name:
        return
    if fault := _unreadable(beside(config, name)):
        yield Problem(key, f"{beside(config, name)}: {fault}", config)
        return
    try:
        trusting(name, config, key)
    except ConfigError as error:
        yield from error.problems


def _pair(
    where: str, names: tuple[str, str], pair: tuple[str, str], config: str
) -> Iterator[Problem]:
    """Yield what is wrong with a certificate and its key, under these names in the config."""
    (cert, key), (cert_key, key_key) = pair, names
    if not cert or not key:
        return
    files = {f"{where}.{cert_key}": beside(config, cert), f"{where}.{key_key}": beside(config, key)}
    missing = [
        Problem(at, f"{file}: {error}", config)
        for at, file in files.items()
        if (error := _unreadable(file))
    ]
    yield from missing
    if missing:
        return
    try:
        _check_key(beside(config, key))
    except ValueError as error:
        yield Problem(f"{where}.{key_key}", str(error), config)
        return
    # Loading both also shows whether the key belongs to the certificate.
    try:
        server_context(*files.values())
    except (OSError, ValueError) as error:
        yield Problem(f"{where}.{cert_key}", f"cannot be used: {reason_of(error)}", config)


def _unreadable(file: str) -> str:
    try:
        with Path(file).open("rb"):
            return ""
    except OSError as error:
        return error.strerror or "cannot be read"


def _check_key(file: str) -> None:
    """Refuse a private key that others can read or change.

    Raises:
        OSError: it cannot be read.
        ValueError: it is exposed.
    """
    if file and (fault := exposure(Path(file).stat(), file)):
        raise ValueError(f"{file} {fault}")


def _built(build: Callable[[], ssl.SSLContext], key: str, config: str | None) -> ssl.SSLContext:
    try:
        return build()
    except (OSError, ValueError) as error:
        problem = Problem(key, f"cannot be used: {reason_of(error)}", config or "")
        raise ConfigError([problem]) from None


def _about(key: str, report: Report) -> Report:
    return lambda text: report(f"{key}: {text}")
