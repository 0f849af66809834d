"""A console in its own thread, for ``proxy`` and ``serve`` over HTTP in a terminal.

It has its own port, so that the gate's event loop and port only serve MCP. Unless reviewers sign in
through a proxy, it runs only if stderr is a terminal: its sign-in link is a secret and must not end
up in a log file.
"""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from thoughtgate.config.console_settings import console_at, describe_link
from thoughtgate.errors import ThoughtGateError
from thoughtgate.gate.approvals.console_refusals import ConsoleRefusals
from thoughtgate.gate.approvals.started_by_agent import is_inside_agent
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
    refused: ConsoleRefusals | None = None,
) -> Iterator[None]:
    """Run a console until the context ends, if the config enables it and somebody can sign in.

    If an agent starts the gate, there is no console, even with a terminal or sign-in of its own.
    ``refused`` receives the reason and the path of refused requests, and the URL of the console.
    """
    settings = loaded.settings.console
    has_reader = sys.stderr.isatty() or settings.sign_in is not None
    if not settings.enabled or not has_reader or is_inside_agent(environ, state):
        yield
        return
    stop = threading.Event()

    async def serve() -> None:
        from thoughtgate.web.console_server import (
            open_console,  # takes about 300 ms, which the gate must not wait for
        )

        async with open_console(
            loaded, environ, state, settings.port, record=record, refused=refused
        ) as console:
            link = console.new_link()
            say(describe_link(link))
            if refused is not None:
                refused.console_opened(console_at(link))
            await asyncio.to_thread(stop.wait)

    def run() -> None:
        import uvloop  # imported here so that the gate does not wait for it

        try:
            uvloop.run(serve())
        except ThoughtGateError as error:
            # The gate works without a console too.
            say(f"the console could not start: {error}")

    thread = threading.Thread(target=run, name="console", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(STOP_WITHIN_S)
