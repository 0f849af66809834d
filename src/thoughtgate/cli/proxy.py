"""``thoughtgate proxy``: one server behind the gate, stdio or HTTP on either side."""

import contextlib
import os
import sys
from typing import Annotated

import typer

from thoughtgate.cli.options import ConfigOption, command_app, examples
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.operator_log import voice
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.web.console_thread import console_in_thread

app = command_app()

_EXAMPLES = examples(
    "thoughtgate proxy -c thoughtgate.yaml --listen 127.0.0.1:8080",
    "thoughtgate proxy -c thoughtgate.yaml --server github --stdio",
    "thoughtgate proxy --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:8080",
)


@app.command(epilog=_EXAMPLES)
def proxy(
    config: ConfigOption = None,
    server: Annotated[
        str, typer.Option("--server", metavar="ID", help="Which server of the config.")
    ] = "",
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Talk to the agent over stdin and stdout.")
    ] = False,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Talk to agents over HTTP.")
    ] = "",
    upstream: Annotated[
        str, typer.Option("--upstream", metavar="URL", help="The server, when no config names it.")
    ] = "",
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            metavar="N",
            min=0,
            max=256,
            help="Processes that share the port; 0 for as many as the config says.",
        ),
    ] = 0,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="production or development.")
    ] = "",
    audit: Annotated[
        str,
        typer.Option("--audit", metavar="stderr|stdout|FILE", help="Where the record goes."),
    ] = "",
) -> None:
    """Put one MCP server behind the gate.

    The agent side is HTTP (POST, GET and DELETE on /mcp) or stdio; the server's side is
    whatever the config says: a command or a URL. Both eras of the protocol are served at
    the same address.
    """
    from thoughtgate.proxy.http import plan_proxy
    from thoughtgate.proxy.run import WORKER, run_proxy

    environ = dict(os.environ)
    loaded = load_configuration(config, environ, os.getcwd(), profile=profile or None)  # noqa: PTH109  a path as the shell has it
    say = voice("proxy", loaded, _say)
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    state = ensure_directory(state_directory(environ))
    plan = plan_proxy(
        loaded,
        environ,
        state,
        server=server,
        stdio=stdio,
        listen=listen,
        upstream=upstream or environ.get("THOUGHTGATE_UPSTREAM", "") * (loaded.path is None),
        workers=workers,
        audit=audit,
    )
    console = console_in_thread(loaded, environ, state, say, record=audit)
    is_seen = plan.listen.transport == "http" and WORKER not in environ
    with console if is_seen else contextlib.nullcontext():
        code = run_proxy(plan, say)
    raise typer.Exit(code)


def _say(text: str) -> None:
    """Tell the operator, on stderr: stdout may carry MCP or the record."""
    print(f"thoughtgate: {text}", file=sys.stderr, flush=True)
