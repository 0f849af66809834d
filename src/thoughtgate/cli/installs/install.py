"""``thoughtgate install``: put agents' MCP servers behind the gate for good."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.detection import agent_named
from thoughtgate.agents.diff import unified_diff
from thoughtgate.agents.installs.installed_configs import InstalledConfigs
from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    ProfileOption,
    command_app,
    examples,
    read_config,
)
from thoughtgate.cli.output import say, write_json
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import EXIT_FAILURE, UsageError
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.policy_files.sources import USER
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.process.own_command import runs_from_cache
from thoughtgate.wrap.installation import (
    AgentReport,
    InstallOptions,
    install_agent,
    is_tracked,
    preview_agent,
    remove_unused,
)

app = command_app()

_EXAMPLES = examples(
    "thoughtgate install",
    "thoughtgate install claude-code codex",
    "thoughtgate install --dry-run cursor",
    "thoughtgate install custom --config-path mcp.json",
)

AgentsArgument = Annotated[
    list[str] | None,
    Argument(metavar="[AGENT]...", help="Types of agents. Default: all."),
]

ConfigPathOption = Annotated[
    Path | None, Option(metavar="FILE", help="Only this config file of the agent.")
]

_VANISHES = (
    "this installation of ThoughtGate is in a cache and may vanish, and then no server starts; "
    "install it first: uv tool install thoughtgate"
)


@app.command(epilog=_EXAMPLES)
def install(
    *,
    agents: AgentsArgument = None,
    config_path: ConfigPathOption = None,
    config: ConfigOption = None,
    profile: ProfileOption = "",
    remote: Annotated[
        bool,
        Option("--remote/--no-remote", help="Put remote servers (with a URL) behind the gate too."),
    ] = True,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print what would change in agents' configs, and exit.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Put a shim in front of every MCP server in agents' configs, permanently.

    Without AGENT, this covers every known agent that has a config: the user's files and those of
    the project in the working directory. Servers that you add later run without the gate until
    you run this command again. To undo it, run thoughtgate uninstall.
    """
    environ = dict(os.environ)
    searches = [_search(*one, config_path) for one in _chosen(agents, config_path).items()]
    loaded = read_config(config, profile=profile)
    options = _options(loaded, profile, remote=remote)
    state = Path(options.state)
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    if runs_from_cache() and not dry_run:
        raise UsageError(_VANISHES)
    if dry_run:
        configs = InstalledConfigs(state)
        reports = [preview_agent(configs, one, environ, options) for one in searches]
    else:
        ensure_directory(options.state)
        with InstalledConfigs.changing(state) as configs:
            at = render_time(now())
            reports = [install_agent(configs, one, environ, options, at) for one in searches]
            remove_unused(configs, options.state)
    # An agent that is not on this machine is reported only if it was named.
    reports = [one for one in reports if agents or one.files or one.problems or one.ungoverned]
    if json_:
        write_json([one.as_json() for one in reports])
    elif dry_run:
        sys.stdout.write(unified_diff(_changes(reports), "installed"))
    _print_reports(reports, searches, dry_run=dry_run, quiet=json_)
    if any(one.problems for one in reports):
        raise Exit(EXIT_FAILURE)


def agent_types(agents: Sequence[str] | None) -> dict[str, str]:
    """Return the types of the agents that were named, each with the name.

    Raises:
        UsageError: there is no such agent.
    """
    return {agent_named(one): one for one in agents or ()}


def _chosen(agents: Sequence[str] | None, config_path: Path | None) -> dict[str, str]:
    """Return the types of the chosen agents, each with its name if the user named it.

    Raises:
        UsageError: there is no such agent, or a file and its agent are not named together.
    """
    chosen = agent_types(agents)
    if config_path is not None and len(chosen) != 1:
        raise UsageError("--config-path needs one AGENT, such as custom")
    if "custom" in chosen and config_path is None:
        raise UsageError("the agent custom needs --config-path FILE")
    return chosen or {kind: "" for kind in AGENTS if kind != "custom"}


def _search(kind: str, name: str, config_path: Path | None) -> Search:
    return Search(
        kind,
        env=dict(os.environ),
        cwd=Path.cwd(),
        home=Path.home(),
        config_path=config_path.absolute() if config_path is not None else None,
        argv=(name,) if name else (),  # code-insiders has different files from code
        platform=sys.platform,
    )


def _options(loaded: Loaded, profile: str, *, remote: bool) -> InstallOptions:
    """Return the options of the shims: they use the user's own file, but not one of this project."""
    path = loaded.path if loaded.sources[0].role == USER else None
    return InstallOptions(
        state=state_directory(os.environ),
        settings=loaded.settings,
        config=str(Path(path).absolute()) if path else "",
        profile=profile,
        remote=remote,
    )


def _changes(reports: Iterable[AgentReport]) -> list[Any]:
    """Return the changes of all agents; several may share a file."""
    return list({one.file.real: one for report in reports for one in report.changes}.values())


def _print_reports(
    reports: Sequence[AgentReport], searches: Sequence[Search], *, dry_run: bool, quiet: bool
) -> None:
    for report in reports:
        name = AGENTS[report.agent].name
        if not quiet:
            _print_servers(report, name, dry_run=dry_run)
        for warning in report.warnings:
            say(f"warning: {warning}")
        for problem in report.problems:
            sys.stderr.write(f"Error: {name}: {problem}\n")
    if not reports and not quiet:
        names = ", ".join(AGENTS[one.agent_type].name for one in searches)
        say(f"no MCP servers found in the configs of {names}")
        say("for another agent, name its config: thoughtgate install custom --config-path FILE")


def _print_servers(report: AgentReport, name: str, *, dry_run: bool) -> None:
    for file in report.files:
        word = "already" if not file["changed"] else "would be" if dry_run else "now"
        say(f"{name}: {', '.join(file['servers'])} {word} behind the gate ({file['path']})")
        if file["changed"] and is_tracked(Path(file["path"])):
            say(
                f"{file['path']} is tracked by git: do not commit it like this; "
                "to keep it out of commits: git update-index --skip-worktree"
            )
    for server, reason in report.ungoverned:
        say(f"NOT GOVERNED: {server} ({reason})")
    for line in report.not_started:
        say(f"NOT STARTED: {line}")
    if not report.files and not report.problems:
        say(f"{name}: no MCP servers found")
