"""Who is signed in to which remote server and until when, and which servers need a login."""

import asyncio
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from thoughtgate.core.envelope import render_time
from thoughtgate.errors import LOGIN_REQUIRED, LoginError, StoreError
from thoughtgate.gate.clock import now
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.upstream.oauth.access import OAuthAccess
from thoughtgate.upstream.oauth.tokens import SignedIn


def gather_logins(location: StoreLocation, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return all sign-ins; nothing if the store cannot be read."""

    async def read() -> list[SignedIn]:
        access = OAuthAccess(location, environ)
        try:
            return await access.signed_in()
        finally:
            await access.close()

    try:
        return [login_object(each) for each in asyncio.run(read())]
    except (StoreError, LoginError):
        return []


def login_object(found: SignedIn) -> dict[str, Any]:
    """Return a sign-in as JSON; nothing in it is secret."""
    return {
        "server": found.server,
        "principal": found.principal,
        "issuer": found.issuer,
        "scopes": list(found.scopes),
        "signed_in_at": render_time(found.signed_in_at),
        "expires_at": render_time(found.expires_at) if found.expires_at else None,
        "renewable": found.is_renewable,
        "expired": bool(found.expires_at) and not found.is_renewable and found.expires_at <= now(),
    }


def describe_login(login: Mapping[str, Any]) -> str:
    """Return a sign-in as text."""
    who = f"{login['server']}: {login['principal']} is signed in at {login['issuer']}"
    if login["expired"]:
        return f"{who}, but it has expired; run: thoughtgate login {login['server']}"
    if login["renewable"]:
        ends_at = login["expires_at"] or ""
        before = f" before {ends_at}" if ends_at > render_time(now()) else ""
        return f"{who}; the gate renews it{before}"
    return f"{who} until {login['expires_at'] or 'the server ends it'}"


def find_needed_logins(gates: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the servers of running gates to which somebody must sign in."""
    servers = [server for gate in gates for server in gate.get("servers") or ()]
    errors = ((str(one["id"]), one.get("error") or {}) for one in servers)
    return sorted({server for server, error in errors if error.get("cause") == LOGIN_REQUIRED})


def login_command(server: str, gates: Iterable[Mapping[str, Any]]) -> str:
    """Return the command that signs in to a server, with the config of the gate that needs it."""
    for gate in gates:
        if gate.get("config") and server in find_needed_logins([gate]):
            command = _told_command(server, gate)
            return f"{command} -c {shlex.quote(str(gate['config']))}"
    return f"thoughtgate login {server}"


def _told_command(server: str, gate: Mapping[str, Any]) -> str:
    """Return the command in the gate's own error, which names the principal if there are several."""
    plain = f"thoughtgate login {server}"
    for one in gate["servers"]:
        command = str(one.get("reason", "")).rpartition("; run: ")[2]
        if one["id"] == server and command.startswith(plain):
            return command
    return plain
