"""A console that shares the listener of a running gate.

This module imports little, because an agent waits for the gate to start. Most of the console is
imported when a browser first requests a page.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from thoughtgate.gate.approvals.console_refusals import ConsoleRefusals
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.governor import Governor
from thoughtgate.transports.asgi import App, Receive, Scope, Send
from thoughtgate.web.sign_in.console_sessions import open_sessions


class MountedConsole:
    """A console that is created on the first request. Runs on the gate's event loop."""

    def __init__(  # noqa: PLR0917 - the first five are those of every console
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        state: str,
        governor: Governor,
        port: int,
        wrapped: Callable[[], Iterable[tuple[str, str]]] = tuple,
    ) -> None:
        """``wrapped`` returns the names and URLs of the remote servers of the wrapped agent."""
        self._loaded = loaded
        self._environ = environ
        self._state = state
        self._port = port
        self._wrapped = wrapped
        self._sessions = open_sessions(loaded.settings.console, port)
        self._refusals = ConsoleRefusals()
        self._refusals.record_with(governor)
        self._app: App | None = None
        self._making = asyncio.Lock()

    def new_link(self) -> str:
        """Return a sign-in link that works once, or the public URL if a proxy signs people in."""
        return self._loaded.settings.console.public_url or self._sessions.new_link()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # Several requests may arrive before the console exists: only the first one creates it.
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
            refused=self._refusals,
            sessions=self._sessions,
            wrapped=self._wrapped,
        )
        return console.app
