"""A console beside a gate that a person runs in a terminal: ``proxy`` and ``serve`` over HTTP.

Runs in a thread with a port of its own, so that the gate's own loop and port carry MCP and
nothing else. Only where somebody sees the link: in a log it would be a secret in a log.
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
"""The console has nothing to finish."""


@contextlib.contextmanager
def console_beside(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    say: Callable[[str], None],
    *,
    record: str = "",
) -> Iterator[None]:
    """Run a console while the context lasts, if the config and the terminal allow it."""
    if not loaded.settings.console.enabled or not sys.stderr.isatty():
        yield
        return
    beside = _Beside(loaded, environ, state, say, record)
    beside.start()
    try:
        yield
    finally:
        beside.stop()


class _Beside:
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
            # The thread may end by itself at this very moment.
            with contextlib.suppress(RuntimeError):
                self._wake()
        self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        import uvloop  # in a thread of its own, like the console

        try:
            uvloop.run(self._serve())
        except ThoughtGateError as error:
            # The gate does its work without a console.
            self._say(f"no console: {error}")

    async def _serve(self) -> None:
        from thoughtgate.web.console_server import (
            open_console,  # some 300 ms, in a thread of its own
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
