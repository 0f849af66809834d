"""``thoughtgate serve``: combine many servers into one MCP server, on stdio or HTTP."""

import contextlib
import os
from collections.abc import Callable
from typing import Annotated

from typer import Exit, Option

from thoughtgate.cli.options import (
    ConfigOption,
    ProfileOption,
    StateDirOption,
    command_app,
    examples,
    read_gate_config,
    require_choice,
)
from thoughtgate.cli.output import say as say_on_stderr
from thoughtgate.config.settings import Settings
from thoughtgate.errors import UsageError
from thoughtgate.gate.operator_log import operator_messages
from thoughtgate.gate.policy_files.accepted_policy import keep_accepted
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
        bool, Option("--stdio", help="Serve one client on stdin and stdout (the default).")
    ] = False,
    http: Annotated[
        str, Option(metavar="HOST:PORT", help="Serve any number of clients over HTTP.")
    ] = "",
    namespace: Annotated[str, Option(metavar="ID", help="Namespace to serve.")] = "",
    eager: Annotated[
        bool, Option("--eager", help="Start all servers now instead of at their first call.")
    ] = False,
    log_level: Annotated[
        str, Option(metavar="LEVEL", help="debug, info, warning (or warn) or error.")
    ] = "",
    profile: ProfileOption = "",
    state_dir: StateDirOption = "",
    audit: Annotated[str, Option(metavar="stderr|FILE", help="Where to write the record.")] = "",
) -> None:
    """Combine many MCP servers into one, with their tools named SERVER.TOOL.

    Servers are started when they are first needed, restarted when they crash, and stopped
    when they are idle. Every call is checked and recorded.
    """
    if stdio and http:
        raise UsageError("use either --stdio or --http, not both")
    level = log_level or os.environ.get("THOUGHTGATE_LOG_LEVEL", "")
    if level:
        require_choice("--log-level", level, LEVELS)
    loaded, environ = read_gate_config(
        config, profile=profile, state_dir=state_dir, by_agent=not http
    )
    say = operator_messages("serve", loaded, say_on_stderr)
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    if level in {"", "debug", "info"}:
        say(f"policy    {loaded.summary}")
    _warn_of_nothing_to_serve(loaded.settings, namespace, say)
    from thoughtgate.hub.run import ServePlan, run_serve

    state = ensure_directory(state_directory(environ))
    if not http:
        loaded = keep_accepted(loaded, environ, state, say, profile=profile or None)
    plan = ServePlan(
        loaded,
        environ,
        state,
        namespace=namespace,
        eager=eager,
        http=_address(http) if http else None,
        log_level=level,
        audit=audit,
        profile=profile,
    )
    refused = plan.refusals
    console = console_in_thread(loaded, environ, state, say, record=audit, refused=refused)
    with console if http else contextlib.nullcontext():
        code = run_serve(plan)
    raise Exit(code)


def _warn_of_nothing_to_serve(
    settings: Settings, namespace: str, say: Callable[[str], None]
) -> None:
    from thoughtgate.hub.namespace import NoSelection, select_namespace

    servers = [key for key, one in settings.servers.items() if key != "*" and one.enabled]
    chosen = select_namespace(namespace, settings.default_namespace, settings.namespaces, servers)
    if not servers:
        say("warning: no server is configured; add one with: thoughtgate servers add")
    elif isinstance(chosen, NoSelection):
        say(f"warning: {chosen.reason}; until then, every client is refused")


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:  # noqa: PLR2004 - the largest port
        raise UsageError(f"--http needs HOST:PORT, such as 127.0.0.1:8080 (got {text!r})")
    return host.strip("[]"), int(port)
