"""Making a console: on a listener of its own, or on that of a gate that runs anyway."""

import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thoughtgate.gate.approvals.channel_secrets import webhook_keys
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.open_governor import record_place
from thoughtgate.status.approval_actions import open_console_desk
from thoughtgate.status.record_view import ConsoleRecord
from thoughtgate.transports.loopback_server import open_listener, serve_app
from thoughtgate.web.app import make_app
from thoughtgate.web.request_checks import App
from thoughtgate.web.sessions import Sessions, sign_in_link
from thoughtgate.web.site import Site

MAX_TOLD: Final = 60
"""Refusals put on record in a minute: a page that tries a thousand times is told of once."""

_MINUTE_S: Final = 60.0

Told = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Console:
    """A console and how to get in."""

    app: App
    site: Site
    port: int

    def new_link(self) -> str:
        """Return a link that signs one browser in, once."""
        return sign_in_link(self.site.sessions, self.port)


def make_console(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    port: int,
    *,
    record: str = "",
    refused: Told | None = None,
    sessions: Sessions | None = None,
) -> Console:
    """Make the console of a state directory, for a listener on a port of the loopback.

    Raises:
        StoreError: the approvals cannot be opened.
    """
    place = record or record_place(loaded, state)
    path = None if place in {"stderr", "stdout"} else Path(place)
    site = Site(
        open_console_desk(state),
        ConsoleRecord(path),
        sessions or Sessions(port, now),
        Throttled(refused or complain),
        webhook_keys(loaded.settings, environ),
    )
    return Console(make_app(site, port), site, port)


@contextlib.asynccontextmanager
async def open_console(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    port: int = 0,
    *,
    record: str = "",
    refused: Told | None = None,
) -> AsyncIterator[Console]:
    """Serve a console on a port of its own until the context ends.

    Raises:
        UsageError: the port is taken.
        StoreError: the approvals cannot be opened.
    """
    with open_listener(port, "--port") as listener:
        bound: int = listener.getsockname()[1]
        console = make_console(loaded, environ, state, bound, record=record, refused=refused)
        try:
            async with serve_app(console.app, listener):
                yield console
        finally:
            console.site.desk.close()


def complain(reason: str, path: str) -> None:
    """Tell the operator of a refusal; for a console without a gate's record."""
    sys.stderr.write(f"thoughtgate: console refused a request: {reason} at {path[:100]!a}\n")


class Throttled:
    """Tells of refusals, but not of every one in a flood."""

    def __init__(self, tell: Told, clock: Callable[[], float] = monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._since = 0.0
        self._told = 0

    def __call__(self, reason: str, path: str) -> None:
        """Tell, if not too many were told of in this minute."""
        at = self._clock()
        if at - self._since > _MINUTE_S:
            self._since, self._told = at, 0
        self._told += 1
        if self._told <= MAX_TOLD:
            self._tell(reason, path)
