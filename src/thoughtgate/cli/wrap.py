"""``thoughtgate wrap``: run an agent with all its MCP servers behind the gate."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.detection import detect_agent
from thoughtgate.agents.diff import unified_diff
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.cli.options import HELP_NAMES, ProfileOption, command_app, examples, read_config
from thoughtgate.cli.output import counted
from thoughtgate.cli.output import say as say_on_stderr
from thoughtgate.core.record_events import CALL_DECISION, FRAME_REFUSED, Record
from thoughtgate.errors import UsageError
from thoughtgate.gate.approvals.started_by_agent import is_inside_agent
from thoughtgate.gate.config_files import Loaded, reload_configuration
from thoughtgate.gate.open_governor import record_place
from thoughtgate.gate.operator_log import json_log, operator_messages
from thoughtgate.gate.policy_files.accepted_policy import keep_accepted
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.gate.tracing import both
from thoughtgate.process.own_command import runs_from_cache
from thoughtgate.service.service import Governance
from thoughtgate.telemetry.metrics import Metrics
from thoughtgate.transports.asgi import App
from thoughtgate.web.mounted_console import MountedConsole
from thoughtgate.wrap.remote_servers import Remotes
from thoughtgate.wrap.rewritten_entry import make_rewrite
from thoughtgate.wrap.run import (
    ACTIVE,
    Surroundings,
    Wrap,
    WrapOptions,
    WrapReport,
    describe_exceptions,
    named,
)
from thoughtgate.wrap.server_variables import ServerVariables

Say = Callable[[str], None]

app = command_app()

_EXAMPLES = examples(
    "thoughtgate wrap -- claude",
    "thoughtgate wrap --dry-run -- cursor .",
    "thoughtgate wrap --profile development -- codex",
    "thoughtgate wrap --agent-type custom --config-path mcp.json -- my-agent",
)

_VANISHES = (
    "warning: --no-restore leaves the path of this installation in the agent's config, but it is "
    "in a cache and may vanish; install it first: uv tool install thoughtgate"
)

_OwnConfig = Annotated[
    str | None,
    Option(
        "--thoughtgate-config",
        "--config",
        "-c",
        metavar="FILE",
        help="ThoughtGate's own config file. Default: as for the other commands.",
    ),
]

_GovernancePort = Annotated[
    int,
    Option(
        metavar="PORT",
        min=0,
        max=65535,
        help="Port of the governance service; 0 for any free port.",
    ),
]


@app.command(
    epilog=_EXAMPLES,
    options_metavar="[OPTIONS] --",
    context_settings={"allow_interspersed_args": False, "help_option_names": HELP_NAMES},
)
def wrap(
    *,
    command: Annotated[
        list[str], Argument(metavar="AGENT", help="Command of the agent, with its arguments.")
    ],
    agent_type: Annotated[
        str | None,
        Option(metavar="TYPE", help="Type of the agent, if the command does not reveal it."),
    ] = None,
    config_path: Annotated[
        Path | None, Option(metavar="FILE", help="Govern only this config file of the agent.")
    ] = None,
    config: _OwnConfig = None,
    profile: ProfileOption = "",
    governance_port: _GovernancePort = 0,
    restore: Annotated[
        bool,
        Option("--restore/--no-restore", help="Restore the agent's config when the agent exits."),
    ] = True,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print what would change in the agent's config, and exit.")
    ] = False,
    strict: Annotated[
        bool,
        Option(
            "--strict",
            help="Fail if a server would not be governed, or never starts through the gate.",
        ),
    ] = False,
    remote: Annotated[
        bool,
        Option("--remote/--no-remote", help="Put remote servers (with a URL) behind the gate too."),
    ] = True,
    verbose: Annotated[
        bool, Option("--verbose", help="Report refused and held calls on stderr.")
    ] = False,
) -> None:
    """Run an agent with all its MCP servers behind the gate.

    The agent's config is changed while the agent runs, and restored when it exits. The exit
    code is the agent's.
    """
    environ = dict(os.environ)
    loaded = read_config(config, profile=profile)
    plan = _plan(command, agent_type, config_path, environ)
    if dry_run:
        _show(plan, environ, remote=remote)
        return
    say = operator_messages("wrap", loaded, say_on_stderr)
    _refuse_nesting(environ)
    _print_start(say, loaded, plan, command)
    if not restore and runs_from_cache():
        say(_VANISHES)
    loaded = _accepted(loaded, environ, say, profile)
    options = WrapOptions(tuple(command), governance_port, restore, strict, remote)
    report = Wrap(plan, loaded, options, _surroundings(loaded, environ, say, verbose=verbose)).run()
    _print_end(say, report, loaded, environ, restore=restore)
    raise Exit(report.exit_code)


def _accepted(loaded: Loaded, environ: dict[str, str], say: Say, profile: str) -> Loaded:
    """Return the config to start with: the agent may have changed the file since the last run."""
    state = ensure_directory(state_directory(environ))
    return keep_accepted(loaded, environ, state, say, profile=profile or None)


def _refuse_nesting(environ: dict[str, str]) -> None:
    if environ.get(ACTIVE):
        raise UsageError(
            f"this shell runs inside a wrapped agent ({ACTIVE} is set), whose servers are already "
            "behind the gate; run the command without 'thoughtgate wrap'"
        )


def _plan(
    command: list[str], agent_type: str | None, config_path: Path | None, environ: dict[str, str]
) -> Plan:
    if agent_type == "custom" and config_path is None:
        raise UsageError("--agent-type custom needs --config-path FILE")
    search = Search(
        detect_agent(command, agent_type),
        env=environ,
        cwd=Path.cwd(),
        home=Path.home(),
        config_path=config_path.absolute() if config_path is not None else None,
        argv=tuple(command),
        platform=sys.platform,
    )
    return discover(search)


def _surroundings(
    loaded: Loaded, environ: dict[str, str], say: Say, *, verbose: bool
) -> Surroundings:
    metrics, state = Metrics(), state_directory(environ)
    # Its sign-in link is for a person, not for an agent that starts another one.
    has_console = loaded.settings.console.enabled and not is_inside_agent(environ, state)

    def read_again() -> Loaded:
        return reload_configuration(loaded, environ)

    def console(governance: Governance, port: int) -> tuple[App, str]:
        mounted = MountedConsole(loaded, environ, state, governance.governor, port)
        return mounted, mounted.new_link()

    return Surroundings(
        environ,
        say,
        read_again,
        console=console if has_console else None,
        observe=both(
            json_log("wrap", loaded) or (_report_refusal if verbose else None), metrics.observe
        ),
        metrics=metrics.render,
    )


def _show(plan: Plan, environ: dict[str, str], *, remote: bool) -> None:
    """Print the diff on stdout, and servers that would not be governed on stderr."""
    plan.require()
    variables = ServerVariables(plan, environ)
    done = make_rewrite(plan, environ, variables, Remotes(plan, environ) if remote else None)
    for line in describe_exceptions(plan, done, variables):
        say_on_stderr(line)
    sys.stdout.write(unified_diff(done.files))


def _print_start(say: Say, loaded: Loaded, plan: Plan, command: list[str]) -> None:
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    say(f"agent     {plan.agent.name} ({Path(command[0]).name})")
    say(f"policy    {loaded.summary}")


def _print_end(
    say: Say, report: WrapReport, loaded: Loaded, environ: dict[str, str], *, restore: bool
) -> None:
    counts = report.counts
    totals = [
        counted(counts["calls_total"], "call"),
        f"{counts['calls_blocked'] + counts['calls_throttled']} refused",
        f"{counts['approvals_requested']} held for approval",
    ]
    if counts["calls_would_block"]:
        totals.append(f"{counts['calls_would_block']} would have been refused in production")
    say(", ".join(totals))
    if report.governed:
        say(f"governed  {named(report.governed)}")
    if report.silent:
        say(f"NEVER STARTED through the gate: {named(report.silent)}")
    say(f"record    {record_place(loaded, state_directory(environ))}")
    if not restore:
        say(f"not restored: {', '.join(report.files)}; to restore, run: thoughtgate unwrap")


def _report_refusal(record: Record) -> None:
    """Print a call or frame that was refused or held."""
    if record.type == CALL_DECISION and record.body["decision"]["action"] != "ALLOW":
        decision, tool = record.body["decision"], record.body["call"]["tool_name"]
        word = decision.get("outcome", decision["action"])
        say_on_stderr(f"{word}: {record.server}: {tool!r}, {decision['gate']} gate")
    elif record.type == FRAME_REFUSED:
        frame = record.body["frame"]
        word = frame.get("outcome", "REJECT")
        say_on_stderr(f"{word}: {record.server}: a frame, {frame['check']}")
