"""A console that shares the listener of a running gate.

This module imports little, because an agent waits for the gate to start. Most of the console is
imported when a browser first requests a page.
"""

import asyncio
from collections.abc import Mapping

from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, Record
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.governor import Governor
from thoughtgate.transports.asgi import App, Receive, Scope, Send
from thoughtgate.web.console_sessions import ConsoleSessions

MAX_PATH = 100
"""Maximum characters of a path in the record; the client chooses the path."""


class MountedConsole:
    """A console that is created on the first request. Runs on the gate's event loop."""

    def __init__(
        self, loaded: Loaded, environ: Mapping[str, str], state: str, governor: Governor, port: int
    ) -> None:
        self._loaded = loaded
        self._environ = environ
        self._state = state
        self._governor = governor
        self._port = port
        self._sessions = ConsoleSessions(port, now)
        self._app: App | None = None
        self._making = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    def new_link(self) -> str:
        """Return a sign-in link that works once."""
        return self._sessions.new_link()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        async with self._making:
            if self._app is None:
                self._app = await asyncio.to_thread(self._make)
        await self._app(scope, receive, send)

    def _make(self) -> App:
        from thoughtgate.web.console_server import make_console  # takes about 200 ms

        console = make_console(
            self._loaded,
            self._environ,
            self._state,
            self._port,
            refused=self._report,
            sessions=self._sessions,
        )
        return console.app

    def _report(self, reason: str, path: str) -> None:
        """Record a refusal. Pages run in threads, but the record is written on the loop."""
        self._loop.call_soon_threadsafe(self._note, reason, path)

    def _note(self, reason: str, path: str) -> None:
        facts = {"method": "console", "reason": f"{reason} at {path[:MAX_PATH]}"}
        self._governor.note(Record(AGENT_AUTH_REJECTED, now(), "", "0", {"agent": facts}))
        self._governor.flush_quietly()
