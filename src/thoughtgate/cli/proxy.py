"""``thoughtgate proxy``: one server behind the gate, with stdio or HTTP on either side."""

import contextlib
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, TypedDict

from typer import Context, Exit, Option

from thoughtgate.cli.options import (
    HELP_NAMES,
    ConfigOption,
    ProfileOption,
    StateDirOption,
    command_app,
    examples,
    read_gate_config,
)
from thoughtgate.cli.output import say as say_on_stderr
from thoughtgate.core.answers import RELAY_KEY
from thoughtgate.errors import UsageError, visible
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.operator_log import operator_messages
from thoughtgate.gate.policy_files.accepted_policy import keep_accepted
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.web.console_thread import console_in_thread
from thoughtgate.wrap.remotes_file import is_remotes_file

app = command_app()

_EXAMPLES = examples(
    "thoughtgate proxy -c thoughtgate.yaml --listen 127.0.0.1:8080",
    "thoughtgate proxy -c thoughtgate.yaml --server github --stdio",
    "thoughtgate proxy --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:8080",
)


_AuditOption = Annotated[
    str, Option(metavar="stderr|stdout|FILE", help="Where to write the record.")
]


class _Flags(TypedDict):
    profile: str
    state_dir: str
    has_floor: bool


@app.command(
    epilog=_EXAMPLES,
    context_settings={"allow_extra_args": True, "help_option_names": HELP_NAMES},
)
def proxy(
    context: Context,
    config: ConfigOption = None,
    server: Annotated[
        str, Option(metavar="ID", help="Server in the config; needed if there are several.")
    ] = "",
    stdio: Annotated[bool, Option("--stdio", help="Serve one agent on stdin and stdout.")] = False,
    listen: Annotated[str, Option(metavar="HOST:PORT", help="Serve agents over HTTP.")] = "",
    upstream: Annotated[
        str, Option(metavar="URL", help="URL of the server, if there is no config.")
    ] = "",
    workers: Annotated[
        int,
        Option(
            metavar="N",
            min=0,
            max=256,
            help="Number of processes that share the port; 0 for the number in the config.",
        ),
    ] = 0,
    profile: ProfileOption = "",
    state_dir: StateDirOption = "",
    audit: _AuditOption = "",
) -> None:
    """Put one MCP server behind the gate.

    The agent side is HTTP (POST, GET and DELETE on /mcp) or stdio; the server side is the
    command or the URL in the config. All protocol revisions are served at the same address.
    """
    from thoughtgate.proxy.http import plan_proxy
    from thoughtgate.proxy.run import WORKER, run_proxy

    _refuse_command(context.args)
    # The proxy that wrap puts behind a shim only forwards: the shim's service makes the decisions.
    is_behind_shim = stdio and is_remotes_file(config or "", state_dir)
    flags = _Flags(profile=profile, state_dir=state_dir, has_floor=not is_behind_shim)
    loaded, environ = read_gate_config(config, by_agent=stdio, **flags)
    if not (stdio or listen) and loaded.settings.listen.transport == "stdio":
        loaded, environ = read_gate_config(config, by_agent=True, **flags)
    say = operator_messages("proxy", loaded, say_on_stderr)
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    if not is_behind_shim and WORKER not in environ:
        say(f"policy    {loaded.summary}")
    state = ensure_directory(state_directory(environ))
    if not listen and not is_behind_shim:
        loaded = _accepted(loaded, environ, say, stdio=stdio, profile=profile)
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
    plan = replace(plan, relay_key=os.environ.get(RELAY_KEY, "") if is_behind_shim else "")
    console = console_in_thread(loaded, environ, state, say, record=audit, refused=plan.refusals)
    # Only the first process of an HTTP proxy offers a console: workers share it.
    has_console = plan.listen.transport == "http" and WORKER not in environ
    with console if has_console else contextlib.nullcontext():
        code = run_proxy(plan, say)
    raise Exit(code)


def _refuse_command(words: Sequence[str]) -> None:
    """Refuse a server's command, which only ``shim`` accepts, and say how to run it."""
    if words:
        raise UsageError(
            "proxy takes the server from a config; write it there with: thoughtgate servers add"
            f" --id NAME -- {visible(shlex.join(words))}; over stdio alone, use thoughtgate shim"
        )


def _accepted(
    loaded: Loaded,
    environ: dict[str, str],
    say: Callable[[str], None],
    *,
    stdio: bool,
    profile: str,
) -> Loaded:
    """Return the config to start with; only a person would have given an address to listen on."""
    return keep_accepted(
        loaded,
        environ,
        state_directory(environ),
        say,
        profile=profile or None,
        is_started_by_agent=lambda one: stdio or one.listen.transport == "stdio",
    )
