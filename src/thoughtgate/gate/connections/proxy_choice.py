"""Which HTTP proxy leads to a server: the config's own, or the one of the environment.

Whoever writes an agent's config chooses the environment of a gate that the agent starts, so there
the environment counts only if the gate's own config says ``proxy: environment``.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from thoughtgate.config.checks import is_loopback, proxy_fault
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import ConfigError, Problem

NONE: Final = "none"
ENVIRONMENT: Final = "environment"

_PORTS: Final = {"http": 80, "https": 443}


class ProxyChoice(NamedTuple):
    """The URL of a proxy, and what chose it."""

    url: str
    """May contain a password."""
    source: str
    """The config key or the variable."""


def choose_proxy(
    server: ServerSettings, environ: Mapping[str, str], *, agent_started: bool, file: str = ""
) -> ProxyChoice | None:
    """Return the proxy for a server; None to connect directly.

    Raises:
        ConfigError: a variable names a proxy of a kind that the gate does not support.
    """
    key = f"servers.{server.id}.proxy"
    setting = server.proxy or (NONE if agent_started else ENVIRONMENT)
    if setting == NONE or not server.url:
        return None
    if setting != ENVIRONMENT:
        return ProxyChoice(setting, key)
    found = proxy_of(server.url, environ)
    if found is not None and (fault := proxy_fault(found.url)):
        words = f"the variable {found.source} {fault}; set this key to none to connect directly"
        raise ConfigError([Problem(key, words, file)])
    return found


def proxy_of(url: str, environ: Mapping[str, str]) -> ProxyChoice | None:
    """Return the proxy that the environment names for a URL, as curl and others read it.

    Names are in lower or upper case, and lower case has priority. This machine itself is never
    reached through a proxy.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _PORTS.get(parts.scheme, 0)
    if is_loopback(host) or _is_excepted(host, port, _variable(environ, "no_proxy").url):
        return None
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        found = _variable(environ, name)
        if found.url:
            is_whole = "://" in found.url
            return found if is_whole else found._replace(url=f"http://{found.url}")
    return None


def _variable(environ: Mapping[str, str], name: str) -> ProxyChoice:
    for spelling in (name, name.upper()):
        value = environ.get(spelling, "").strip()
        if value:
            return ProxyChoice(value, spelling)
    return ProxyChoice("", name)


def _is_excepted(host: str, port: int, exceptions: str) -> bool:
    return any(
        _matches(host.lower().rstrip("."), port, entry.lower())
        for entry in re.split(r"[,\s]+", exceptions)
        if entry
    )


def _matches(host: str, port: int, entry: str) -> bool:
    """Tell whether an entry of NO_PROXY names a host, its domain, its network, or all hosts."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass  # one of them is a name
    name, colon, of_port = entry.rpartition(":")
    if colon and of_port.isdecimal() and not name.endswith(":"):
        if int(of_port) != port:
            return False
        entry = name.strip("[]")
    domain = entry.removeprefix("*").strip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))
