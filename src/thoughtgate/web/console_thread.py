"""A console in its own thread, for ``proxy`` and ``serve`` over HTTP in a terminal.

It has its own port, so that the gate's event loop and port only serve MCP. It runs only if
stderr is a terminal: its sign-in link is a secret and must not end up in a log file.
"""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from thoughtgate.errors import ThoughtGateError
from thoughtgate.gate.config_files import Loaded

STOP_WITHIN_S: Final = 3.0
"""How long to wait for the thread; the console has no work to finish."""


@contextlib.contextmanager
def console_in_thread(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    say: Callable[[str], None],
    *,
    record: str = "",
) -> Iterator[None]:
    """Run a console until the context ends, if the config enables it and stderr is a terminal."""
    if not loaded.settings.console.enabled or not sys.stderr.isatty():
        yield
        return
    console = _ConsoleThread(loaded, environ, state, say, record)
    console.start()
    try:
        yield
    finally:
        console.stop()


class _ConsoleThread:
    def __init__(
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        state: str,
        say: Callable[[str], None],
        record: str,
    ) -> None:
        self._loaded = loaded
        self._environ = environ
        self._state = state
        self._say = say
        self._record = record
        self._stop = threading.Event()
        self._wake: Callable[[], object] | None = None
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._wake is not None:
            # Raised if the thread has just ended by itself and closed its loop.
            with contextlib.suppress(RuntimeError):
                self._wake()
        self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        import uvloop  # imported here so that the gate does not wait for it

        try:
            uvloop.run(self._serve())
        except ThoughtGateError as error:
            # The gate works without a console too.
            self._say(f"the console could not start: {error}")

    async def _serve(self) -> None:
        from thoughtgate.web.console_server import (
            open_console,  # takes about 300 ms, which the gate must not wait for
        )

        over, loop = asyncio.Event(), asyncio.get_running_loop()
        self._wake = lambda: loop.call_soon_threadsafe(over.set)
        port = self._loaded.settings.console.port
        async with open_console(
            self._loaded, self._environ, self._state, port, record=self._record
        ) as console:
            self._say(f"console   {console.new_link()}")
            if not self._stop.is_set():
                await over.wait()
