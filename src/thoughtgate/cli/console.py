"""``thoughtgate console``: answer approvals and watch traffic in the browser."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from thoughtgate.cli.audit.source import RecordOption
from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples
from thoughtgate.errors import UsageError
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.started_by_agent import is_inside_agent
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.web.console_server import open_console

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
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port; 0 for any free one.")
    ] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    record: RecordOption = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Answer approvals and watch traffic in the browser.

    Prints a link that signs one browser in, once, and serves until Ctrl-C. Everything
    stays on this machine.
    """
    environ = dict(os.environ)
    if is_inside_agent(environ, state_directory(environ)):
        raise UsageError(
            "this shell was started by a governed agent, which cannot approve its own calls; "
            "run the console from another terminal"
        )
    loaded = load_configuration(config, environ, str(Path.cwd()))
    state = ensure_directory(state_directory(environ))
    chosen = port or loaded.settings.console.port
    import uvloop  # only a console that is served pays for it

    uvloop.run(_serve(loaded, environ, state, chosen, record, show_json=json_, browse=open_))


async def _serve(
    loaded: Loaded,
    environ: dict[str, str],
    state: str,
    port: int,
    record: Path | None,
    *,
    show_json: bool,
    browse: bool,
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    place = str(record) if record is not None else ""
    async with open_console(loaded, environ, state, port, record=place) as served:
        link = served.new_link()
        said = json.dumps({"url": link, "port": served.port}) if show_json else link
        sys.stdout.write(f"{said}\n")
        sys.stdout.flush()
        sys.stderr.write("thoughtgate: open the link once; Ctrl-C ends the console\n")
        if browse:
            with contextlib.suppress(webbrowser.Error):
                await asyncio.to_thread(webbrowser.open, link)
        await stop.wait()
