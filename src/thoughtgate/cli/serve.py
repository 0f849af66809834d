"""``thoughtgate serve``: many servers as one MCP server, on stdio or HTTP."""

import contextlib
import os
import sys
from typing import Annotated

import typer

from thoughtgate.cli.options import ConfigOption, command_app, examples
from thoughtgate.errors import UsageError
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.operator_log import voice
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.web.console_thread import console_in_thread

app = command_app()

LEVELS = ("debug", "info", "warn", "warning", "error")

_EXAMPLES = examples(
    "thoughtgate serve --stdio -c thoughtgate.yaml --namespace work",
    "thoughtgate serve --http 127.0.0.1:8080 -c thoughtgate.yaml",
)


@app.command(epilog=_EXAMPLES)
def serve(
    *,
    config: ConfigOption = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve one client on stdin and stdout (the default).")
    ] = False,
    http: Annotated[
        str, typer.Option("--http", metavar="HOST:PORT", help="Serve many clients over HTTP.")
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="ID", help="Which namespace to serve.")
    ] = "",
    eager: Annotated[
        bool, typer.Option("--eager", help="Start all servers now, not at their first call.")
    ] = False,
    log_level: Annotated[
        str,
        typer.Option(
            "--log-level", metavar="LEVEL", help="debug, info, warning (or warn) or error."
        ),
    ] = "",
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="production or development.")
    ] = "",
    audit: Annotated[
        str, typer.Option("--audit", metavar="stderr|FILE", help="Where the record goes.")
    ] = "",
) -> None:
    """Serve many MCP servers as one, with their tools named SERVER.TOOL.

    Servers start when they are first needed and are looked after: restarted when they
    crash, stopped when they idle. Every call is judged and recorded.
    """
    if stdio and http:
        raise UsageError("choose one of --stdio and --http")
    environ = dict(os.environ)
    level = log_level or environ.get("THOUGHTGATE_LOG_LEVEL", "")
    if level and level not in LEVELS:
        raise UsageError(f"--log-level is one of debug, info, warning, error (got {level!r})")
    loaded = load_configuration(config, environ, os.getcwd(), profile=profile or None)  # noqa: PTH109  a path as the shell has it
    say = voice("serve", loaded, _say)
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    from thoughtgate.hub.run import ServePlan, run_serve

    plan = ServePlan(
        loaded,
        environ,
        ensure_directory(state_directory(environ)),
        namespace=namespace,
        eager=eager,
        http=_address(http) if http else None,
        log_level=level,
        audit=audit,
        profile=profile,
    )
    console = console_in_thread(loaded, environ, plan.state, say, record=audit)
    with console if http else contextlib.nullcontext():
        code = run_serve(plan)
    raise typer.Exit(code)


def _say(text: str) -> None:
    sys.stderr.write(f"thoughtgate: {text}\n")


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:  # noqa: PLR2004  the largest port
        raise UsageError(f"--http needs HOST:PORT (got {text!r})")
    return host.strip("[]"), int(port)
