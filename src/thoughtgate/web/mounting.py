"""The console on the listener of a gate that runs anyway.

Light on purpose: an agent waits for the gate to start, and most of the console is loaded
only when a browser asks for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol

from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, Record
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.web.sessions import Sessions, sign_in_link

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

MAX_PATH = 100
"""Characters of a path that the record keeps; paths are the browser's to choose."""


class Notes(Protocol):
    """Where refusals go on record: a governor."""

    def note(self, record: Record) -> None:
        """Queue a record."""

    def flush_quietly(self) -> None:
        """Write what is queued."""


class MountedConsole:
    """A console that is made when it is first asked for. Lives on the gate's event loop."""

    def __init__(
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        state: str,
        notes: Notes,
        port: int,
        *,
        record: str = "",
    ) -> None:
        self._loaded = loaded
        self._environ = environ
        self._state = state
        self._record = record
        self._notes = notes
        self._port = port
        self._sessions = Sessions(port, now)
        self._app: App | None = None
        self._making = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    def new_link(self) -> str:
        """Return a link that signs one browser in, once."""
        return sign_in_link(self._sessions, self._port)

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        async with self._making:
            if self._app is None:
                self._app = await asyncio.to_thread(self._make)
        await self._app(scope, receive, send)

    def _make(self) -> App:
        from thoughtgate.web.console_server import make_console  # some 200 ms, once somebody looks

        console = make_console(
            self._loaded,
            self._environ,
            self._state,
            self._port,
            record=self._record,
            refused=self._tell,
            sessions=self._sessions,
        )
        return console.app

    def _tell(self, reason: str, path: str) -> None:
        """Pages run in threads; a gate's record is written on its loop alone."""
        self._loop.call_soon_threadsafe(self._note, reason, path)

    def _note(self, reason: str, path: str) -> None:
        facts = {"method": "console", "reason": f"{reason} at {path[:MAX_PATH]}"}
        self._notes.note(Record(AGENT_AUTH_REJECTED, now(), "", "0", {"agent": facts}))
        self._notes.flush_quietly()
