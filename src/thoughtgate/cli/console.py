"""``thoughtgate console``: answer approval requests and watch traffic in the browser."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import webbrowser
from typing import Annotated

from typer import Option

from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    RecordOption,
    command_app,
    examples,
    read_config,
)
from thoughtgate.cli.output import say
from thoughtgate.config.console_settings import LINK_USE
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.web.console_server import open_console
from thoughtgate.wrap.login_targets import wrapped_servers

app = command_app()


@app.command(
    epilog=examples(
        "thoughtgate console --open",
        "thoughtgate console --port 7777",
        "thoughtgate console --record audit.jsonl",
    )
)
def console(
    *,
    port: Annotated[
        int,
        Option(metavar="PORT", min=0, max=65535, help="Port to listen on; 0 for any free port."),
    ] = 0,
    open_: Annotated[bool, Option("--open", help="Open the console in the browser.")] = False,
    record: RecordOption = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Answer approval requests and watch traffic in the browser.

    Prints a one-time link that signs one browser in, and runs until you press Ctrl-C. The
    console is reachable only from this machine, unless the config has console.sign_in.
    """
    environ = dict(os.environ)
    loaded = read_config(config)
    state = ensure_directory(state_directory(environ))
    chosen = port or loaded.settings.console.port
    import uvloop  # imported only when a console is actually served

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        path = str(record) if record is not None else ""
        async with open_console(
            loaded, environ, state, chosen, record=path, wrapped=lambda: wrapped_servers(state)
        ) as served:
            link = served.new_link()
            line = json.dumps({"url": link, "port": served.port}) if json_ else link
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            is_link = loaded.settings.console.sign_in is None
            how = LINK_USE if is_link else "reviewers sign in through the proxy"
            say(f"{how}; press Ctrl-C to stop the console")
            if open_:
                with contextlib.suppress(webbrowser.Error):
                    await asyncio.to_thread(webbrowser.open, link)
            await stop.wait()

    uvloop.run(serve())
