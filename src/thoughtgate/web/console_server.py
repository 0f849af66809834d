"""Creating a console, on its own listener or on the listener of a running gate."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from thoughtgate.config.console_settings import ConsoleSettings
from thoughtgate.errors import ConfigError, Problem
from thoughtgate.gate.approvals.channel_secrets import webhook_keys
from thoughtgate.gate.approvals.console_refusals import ConsoleRefusals
from thoughtgate.gate.approvals.started_by_agent import find_agent_reason
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.open_governor import record_place, store_location
from thoughtgate.gate.poll_loop import complain
from thoughtgate.status.approval_actions import open_approval_actions
from thoughtgate.status.policy_trial import PolicyInForce
from thoughtgate.status.record_integrity import RecordIntegrity
from thoughtgate.status.record_view import ConsoleRecord
from thoughtgate.status.shared_record_view import SharedConsoleRecord
from thoughtgate.status.stop_actions import StopActions
from thoughtgate.status.webhook_answers import WebhookAnswers
from thoughtgate.stores.console_sessions import ConsoleSessionStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.transports.asgi import App
from thoughtgate.transports.loopback_server import open_listener, serve_app
from thoughtgate.transports.tls import ReloadedContext, server_context
from thoughtgate.upstream.oauth.access import OAuthAccess
from thoughtgate.web.app import make_app
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.server_logins import ServerLogins
from thoughtgate.web.sign_in.console_sessions import ConsoleSessions, is_secure, open_sessions
from thoughtgate.web.sign_in.proxy_sign_in import beside, open_sign_in, public_port
from thoughtgate.web.sign_in.shared_console_sessions import SharedConsoleSessions

MAX_REPORTS: Final = 60
"""Refused requests reported per minute, so that a hostile page cannot flood the record."""

_MINUTE_S: Final = 60.0

ReportRefusal = Callable[[str, str], None]
"""Called with the reason and the path of a refused request."""

WrappedServers = Callable[[], Iterable[tuple[str, str]]]
"""Returns the names and URLs of the remote servers of agents that are wrapped now."""


@dataclass(frozen=True, slots=True)
class Console:
    """A console's application and its sign-in links."""

    app: App
    context: ConsoleContext
    port: int

    def new_link(self) -> str:
        """Return a sign-in link that works once, or the public URL if a proxy signs people in."""
        return self.context.public_url or self.context.sessions.new_link()


def make_console(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    port: int,
    *,
    record: str = "",
    refused: ReportRefusal | None = None,
    sessions: ConsoleSessions | None = None,
    wrapped: WrappedServers = tuple,
) -> Console:
    """Create the console of a state directory, for a listener on a port.

    ``wrapped`` returns the names and URLs of the remote servers of agents that are wrapped now.

    Raises:
        StoreError: the approvals cannot be opened.
        ConfigError: reviewers sign in through a proxy, and an extra is not installed.
    """
    settings = loaded.settings.console
    sign_in = open_sign_in(settings, loaded.path or "")
    place = record or record_place(loaded, state)
    path = None if place in {"stderr", "stdout"} else Path(place)
    location = store_location(loaded, state)
    actions = open_approval_actions(location)
    shown = _console_record(path, location)
    context = ConsoleContext(
        actions,
        shown,
        sessions or _open_sessions(settings, port, location),
        ThrottledReport(refused or ConsoleRefusals()),
        WebhookAnswers(actions, webhook_keys(loaded.settings, environ)),
        sign_in,
        settings.public_url,
        _open_logins(loaded, environ, state, wrapped),
        StopActions(location),
        state,
        location,
        partial(find_agent_reason, environ, state),
        loaded,
        environ,
        _open_integrity(loaded, environ, state, path, location),
        PolicyInForce(loaded, environ, shown),
    )
    return Console(make_app(context, port), context, port)


def _open_sessions(
    settings: ConsoleSettings, port: int, location: StoreLocation
) -> ConsoleSessions:
    """Return the sessions of a console; gates that people reach through a proxy share them."""
    if settings.sign_in is None or not location.is_shared:
        return open_sessions(settings, port)
    store = ConsoleSessionStore(open_database(location))
    # The cookie is named by the port that browsers see: gates may listen on different ones.
    seen = public_port(settings.public_url) or port
    return SharedConsoleSessions(seen, now, store, is_secure=is_secure(settings))


def _open_logins(
    loaded: Loaded, environ: Mapping[str, str], state: str, wrapped: WrappedServers
) -> ServerLogins:
    access = OAuthAccess(
        store_location(loaded, state),
        environ,
        loaded.settings.keys.tokens_env,
        config=loaded.path or "",
    )
    return ServerLogins(access, loaded.settings.servers, wrapped)


def _open_integrity(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    record: Path | None,
    location: StoreLocation,
) -> RecordIntegrity | None:
    """Return the verification of the record, or of all records if gates share a store."""
    config = ("--config", loaded.path) if loaded.path else ()
    if location.is_shared:
        return RecordIntegrity(state, config, environ)
    return RecordIntegrity(state, (str(record), *config), environ) if record is not None else None


def _console_record(path: Path | None, location: StoreLocation) -> ConsoleRecord:
    """Return the views of a gate's record, or of all records if gates share a store."""
    return SharedConsoleRecord(path, location) if location.is_shared else ConsoleRecord(path)


@contextlib.asynccontextmanager
async def open_console(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    port: int = 0,
    *,
    record: str = "",
    refused: ReportRefusal | None = None,
    wrapped: WrappedServers = tuple,
) -> AsyncIterator[Console]:
    """Serve a console on its own port until the context ends.

    Raises:
        UsageError: the port is in use.
        StoreError: the approvals cannot be opened.
        ConfigError: the certificate cannot be used, or an extra is not installed.
    """
    settings = loaded.settings.console
    tls = _server_context(settings, loaded.path)
    with open_listener(port, "--port", settings.host) as listener:
        bound: int = listener.getsockname()[1]
        console = make_console(
            loaded, environ, state, bound, record=record, refused=refused, wrapped=wrapped
        )
        sign_in = console.context.sign_in
        try:
            if sign_in is not None:
                await sign_in.open()
            async with serve_app(console.app, listener, tls):
                yield console
        finally:
            console.context.sessions.close()
            console.context.approvals.close()
            console.context.record.close()
            if console.context.logins is not None:
                await console.context.logins.close()
            if sign_in is not None:
                await sign_in.close()


def _server_context(settings: ConsoleSettings, file: str | None) -> ssl.SSLContext | None:
    if settings.tls is None:
        return None
    certificate, key = (beside(file, one) for one in (settings.tls.certificate, settings.tls.key))
    try:
        return ReloadedContext(
            lambda: server_context(certificate, key),
            (certificate, key),
            lambda text: complain(f"console.tls: {text}"),
        )
    except (OSError, ValueError) as error:
        # Only the system's own text, which contains nothing of the key.
        problem = f"cannot be used: {error.strerror if isinstance(error, OSError) else error}"
        raise ConfigError([Problem("console.tls", problem, file or "")]) from None


class ThrottledReport:
    """Reports refused requests, at most ``MAX_REPORTS`` per minute."""

    def __init__(self, report: ReportRefusal, clock: Callable[[], float] = monotonic) -> None:
        self._report = report
        self._clock = clock
        self._since = 0.0
        self._count = 0

    def __call__(self, reason: str, path: str) -> None:
        """Report a refusal, unless this minute already had too many."""
        at = self._clock()
        if at - self._since > _MINUTE_S:
            self._since, self._count = at, 0
        self._count += 1
        if self._count <= MAX_REPORTS:
            self._report(reason, path)
