"""``thoughtgate wrap``: run an agent with every MCP server it knows behind the gate."""

import os
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from thoughtgate.agents.detection import detect_agent
from thoughtgate.agents.diff import unified_diff
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.cli.options import HELP_NAMES, command_app, counted, examples
from thoughtgate.core.record_events import CALL_DECISION, FRAME_REFUSED, Record
from thoughtgate.errors import UsageError, visible
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.open_governor import record_place
from thoughtgate.gate.operator_log import json_log, voice
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.gate.tracing import both
from thoughtgate.service.service import Governance
from thoughtgate.telemetry.metrics import Metrics
from thoughtgate.transports.asgi import App
from thoughtgate.web.mounted_console import MountedConsole
from thoughtgate.wrap.remote_servers import Remotes
from thoughtgate.wrap.rewritten_entry import make_rewrite, shim_command
from thoughtgate.wrap.run import (
    ACTIVE,
    Surroundings,
    Wrap,
    WrapOptions,
    WrapReport,
    ungoverned,
)

app = command_app()

_EXAMPLES = examples(
    "thoughtgate wrap -- claude",
    "thoughtgate wrap --dry-run -- cursor .",
    "thoughtgate wrap --profile development -- codex",
    "thoughtgate wrap --agent-type custom --config-path mcp.json -- my-agent",
)

_OwnConfig: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--thoughtgate-config",
        "--config",
        "-c",
        metavar="FILE",
        help="ThoughtGate's own config file.",
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
        list[str], typer.Argument(metavar="AGENT", help="The agent's command and its arguments.")
    ],
    agent_type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="The kind of agent, when its command does not tell."),
    ] = None,
    config_path: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Govern this config file of the agent, and no other."),
    ] = None,
    config: _OwnConfig = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="production or development.")
    ] = None,
    governance_port: Annotated[
        int,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="Port of the governance service; 0 for any."
        ),
    ] = 0,
    restore: Annotated[
        bool, typer.Option("--restore/--no-restore", help="Put the agent's config back at the end.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would change in the agent's config.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to start if a server would run ungoverned.")
    ] = False,
    remote: Annotated[
        bool,
        typer.Option(
            "--remote/--no-remote", help="Put remote (URL) servers behind the gate as well."
        ),
    ] = True,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say on stderr what is refused or held.")
    ] = False,
) -> None:
    """Run an agent with every MCP server it knows behind the gate.

    The agent's config is rewritten while it runs and put back when it ends. The exit code
    is the agent's.
    """
    if agent_type == "custom" and config_path is None:
        raise UsageError("--agent-type custom needs --config-path FILE")
    environ = dict(os.environ)
    loaded = load_configuration(config, environ, str(Path.cwd()), profile=profile)
    plan = _plan(command, agent_type, config_path, environ)
    if dry_run:
        _show(plan, environ, remote=remote)
        return
    _refuse_nesting(environ)
    _open(loaded, plan, command)
    options = WrapOptions(tuple(command), governance_port, restore, strict, remote)
    report = Wrap(plan, loaded, options, _surroundings(config, loaded, environ, verbose)).run()
    _close(report, loaded, environ, restore=restore)
    raise typer.Exit(report.exit_code)


def _refuse_nesting(environ: dict[str, str]) -> None:
    if environ.get(ACTIVE):
        raise UsageError(
            f"this is already inside a wrapped agent ({ACTIVE} is set): its servers are "
            "governed; run the command without thoughtgate wrap"
        )


def _plan(
    command: list[str], agent_type: str | None, config_path: Path | None, environ: dict[str, str]
) -> Plan:
    return discover(
        detect_agent(command, agent_type),
        env=environ,
        cwd=Path.cwd(),
        home=Path.home(),
        config_path=config_path.absolute() if config_path is not None else None,
        argv=command,
        own=shim_command()[:1],
        platform=sys.platform,
    )


def _surroundings(
    config: str | None, loaded: Loaded, environ: dict[str, str], verbose: bool
) -> Surroundings:
    cwd, metrics = str(Path.cwd()), Metrics()

    def read_again() -> Loaded:
        return load_configuration(config, environ, cwd, profile=loaded.policy.profile)

    def console(governance: Governance, port: int) -> tuple[App, str]:
        state = state_directory(environ)
        mounted = MountedConsole(loaded, environ, state, governance.governor, port)
        return mounted, mounted.new_link()

    return Surroundings(
        environ,
        voice("wrap", loaded, _say),
        read_again,
        console=console if loaded.settings.console.enabled else None,
        observe=both(json_log("wrap", loaded) or (_tell if verbose else None), metrics.observe),
        metrics=metrics.render,
    )


def _show(plan: Plan, environ: dict[str, str], *, remote: bool) -> None:
    """Print the diff on stdout; what would stay outside the gate goes to stderr."""
    plan.require()
    done = make_rewrite(plan, environ, Remotes(plan, environ) if remote else None)
    for one in ungoverned(plan, done):
        _say(f"NOT GOVERNED: {one}")
    sys.stdout.write(unified_diff(done.files))


def _open(loaded: Loaded, plan: Plan, command: list[str]) -> None:
    say = voice("wrap", loaded, _say)
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    say(f"agent     {plan.agent.name} ({Path(command[0]).name})")
    say(f"policy    {loaded.path or 'built-in starter'}, {loaded.policy.profile}")


def _close(report: WrapReport, loaded: Loaded, environ: dict[str, str], *, restore: bool) -> None:
    counts = report.counts
    said = [
        counted(counts["calls_total"], "call"),
        f"{counts['calls_blocked'] + counts['calls_throttled']} refused",
        f"{counts['approvals_requested']} held for approval",
    ]
    if counts["calls_would_block"]:
        said.append(f"{counts['calls_would_block']} would have been refused in production")
    say = voice("wrap", loaded, _say)
    say(", ".join(said))
    say(f"record    {record_place(loaded, state_directory(environ))}")
    if not restore:
        say(f"left wrapped: {', '.join(report.files)}; put back with: thoughtgate unwrap")


def _tell(record: Record) -> None:
    """Say what did not simply pass."""
    if record.type == CALL_DECISION:
        decision, call = record.body["decision"], record.body["call"]
        if decision["action"] != "ALLOW":
            word = decision.get("outcome", decision["action"])
            _say(f"{word}: {record.server}: {call['tool_name']!r}, {decision['gate']} gate")
    elif record.type == FRAME_REFUSED:
        frame = record.body["frame"]
        _say(f"{frame.get('outcome', 'REJECT')}: {record.server}: a frame, {frame['check']}")


def _say(text: str) -> None:
    sys.stderr.write(f"thoughtgate: {visible(text)}\n")
    sys.stderr.flush()
