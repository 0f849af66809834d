"""``thoughtgate wrap``: run an agent with every MCP server it knows behind the gate."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from thoughtgate.agents.detection import detect_agent
from thoughtgate.agents.diff import unified_diff
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.errors import UsageError
from thoughtgate.runtime.configuration import load_configuration
from thoughtgate.runtime.governing import record_place
from thoughtgate.runtime.state import ensure_directory, state_directory
from thoughtgate.runtime.wrap import Wrap, WrapOptions, WrapReport, make_rewrite, shim_command

HELP = """Run an agent with every MCP server it knows behind the gate.

The agent's config is rewritten while it runs and put back when it ends.

Examples:

  thoughtgate wrap -- claude

  thoughtgate wrap --dry-run -- cursor .

  thoughtgate wrap --profile development -- codex

  thoughtgate wrap --agent-type custom --config-path mcp.json -- my-agent
"""

app = typer.Typer(add_completion=False)


@app.command(help=HELP, context_settings={"allow_interspersed_args": False})
def wrap(
    command: Annotated[
        list[str], typer.Argument(metavar="-- AGENT...", help="The agent's command.")
    ],
    agent_type: Annotated[
        str | None, typer.Option(help="The kind of agent, when its command does not tell.")
    ] = None,
    config_path: Annotated[
        Path | None, typer.Option(help="Govern this config file of the agent, and no other.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--thoughtgate-config", "--config", "-c", help="ThoughtGate's own config file."
        ),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="production or development.")] = None,
    governance_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the governance service; 0 for any.")
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
    verbose: Annotated[bool, typer.Option("--verbose", help="Say more on stderr.")] = False,
) -> None:
    """Parse the arguments, plan, and run."""
    del verbose
    if profile not in {None, "production", "development"}:
        raise UsageError(f"--profile {profile!r}: it is production or development")
    environ = dict(os.environ)
    loaded = load_configuration(config, environ, str(Path.cwd()), profile=profile)
    plan = discover(
        detect_agent(command, agent_type),
        env=environ,
        cwd=Path.cwd(),
        home=Path.home(),
        config_path=config_path.absolute() if config_path is not None else None,
        argv=command,
        own=shim_command()[:1],
        platform=sys.platform,
    )
    if dry_run:
        _show(plan, environ)
        return
    state = ensure_directory(state_directory(environ))
    for warning in loaded.warnings:
        _say(f"warning: {warning}")
    _say(f"agent     {plan.agent.type}: {' '.join(command)}")
    _say(f"policy    {loaded.path or 'built-in starter'}, {loaded.policy.profile}")
    options = WrapOptions(tuple(command), governance_port, restore, strict)
    report = Wrap(plan, loaded, options, environ, say=_say).run()
    _close(report, record_place(loaded, state))
    raise typer.Exit(report.exit_code)


def _show(plan: Plan, environ: dict[str, str]) -> None:
    plan.require()
    done = make_rewrite(plan, environ)
    sys.stdout.write(unified_diff(done.files))
    for entry in done.ungoverned:
        _say(f"NOT GOVERNED: {entry.id} ({entry.url or entry.note})")


def _close(report: WrapReport, record: str) -> None:
    counts = report.counts
    refused = counts["calls_blocked"] + counts["calls_throttled"]
    _say(
        f"{counts['calls_total']} calls, {refused} refused, "
        f"{counts['approvals_requested']} held for approval; record: {record}"
    )
    for problem in report.problems:
        _say(f"warning: {problem}")


def _say(text: str) -> None:
    sys.stderr.write(f"thoughtgate: {text}\n")
