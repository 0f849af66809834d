"""``thoughtgate wrap``: run an agent with all its MCP servers behind the gate."""

import os
import pwd
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from thoughtgate.agents.catalog import Way
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.detection import detect_launched, is_command_of
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.agents.injection.ways import Choice, choose_way, search_for_injection
from thoughtgate.agents.journal import find_journals
from thoughtgate.agents.launchers import Launch, find_launch
from thoughtgate.agents.restoration import original_contents
from thoughtgate.agents.tool_timeouts import short_timeouts
from thoughtgate.cli.options import HELP_NAMES, ProfileOption, command_app, examples, read_config
from thoughtgate.cli.output import counted
from thoughtgate.cli.output import say as say_on_stderr
from thoughtgate.config.console_settings import console_at
from thoughtgate.errors import UsageError
from thoughtgate.gate.approvals.started_by_agent import is_inside_agent
from thoughtgate.gate.approvals.terminal_notice import open_terminal_notice
from thoughtgate.gate.config_files import Loaded, reload_configuration
from thoughtgate.gate.open_governor import record_place
from thoughtgate.gate.operator_log import operator_events, operator_messages
from thoughtgate.gate.policy_files.accepted_policy import keep_accepted
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.gate.tracing import both
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.process.own_command import runs_from_cache
from thoughtgate.service.service import Governance
from thoughtgate.telemetry.metrics import Metrics
from thoughtgate.transports.asgi import App
from thoughtgate.version import __version__
from thoughtgate.web.mounted_console import MountedConsole
from thoughtgate.wrap.login_targets import wrapped_servers
from thoughtgate.wrap.nesting import find_outer_runs, require_policy_of
from thoughtgate.wrap.preview import preview_run
from thoughtgate.wrap.run import Wrap, WrapHooks, WrapOptions, WrapReport, named

Say = Callable[[str], None]

app = command_app()

_EXAMPLES = examples(
    "thoughtgate wrap -- claude",
    "thoughtgate wrap --dry-run -- cursor .",
    "thoughtgate wrap --rewrite -- claude",
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

_Way = Annotated[
    bool | None,
    Option(
        "--inject/--rewrite",
        help="Give the agent governed servers at its start and touch no file, or rewrite its "
        "config. Default: inject where the agent allows it.",
    ),
]

_DryRun = Annotated[
    bool, Option("--dry-run", help="Print what would be changed or injected, and exit.")
]


def _version(is_asked: bool) -> None:
    if is_asked:
        sys.stdout.write(f"thoughtgate {__version__}\n")
        raise Exit


_Strict = Annotated[
    bool,
    Option(
        "--strict", help="Fail if a server would not be governed, or never starts through the gate."
    ),
]

_Version = Annotated[
    bool, Option("--version", is_eager=True, callback=_version, help="Show the version.")
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
    inject: _Way = None,
    dry_run: _DryRun = False,
    strict: _Strict = False,
    remote: Annotated[
        bool,
        Option("--remote/--no-remote", help="Put remote servers (with a URL) behind the gate too."),
    ] = True,
    verbose: Annotated[
        bool, Option("--verbose", help="Log every verdict, result and server on stderr.")
    ] = False,
    version: _Version = False,
) -> None:
    """Run an agent with all its MCP servers behind the gate.

    Agents that accept a list of servers at startup are given governed servers, and no file
    changes. The config of other agents is rewritten while they run and restored when they exit.
    The exit code is the agent's.
    """
    del version
    environ = dict(os.environ)
    loaded = read_config(config, profile=profile)
    search = _search(command, agent_type, config_path, environ)
    plan, choice = _choose(search, inject, restore=restore, dry_run=dry_run, remote=remote)
    if dry_run:
        shown, lines = preview_run(plan, choice.way, environ, remote=remote)
        for line in lines:
            say_on_stderr(line)
        sys.stdout.write(shown)
        return
    say = operator_messages("wrap", loaded, say_on_stderr)
    outer = find_outer_runs(environ, state_directory(environ))
    _print_start(say, loaded, plan, choice)
    _warn_of_timeouts(say, loaded, plan, environ)
    if not restore and runs_from_cache():
        say(_VANISHES)
    loaded = _accepted(loaded, environ, say, profile)
    require_policy_of(outer, loaded, state_directory(environ))
    options = WrapOptions(governance_port, restore, strict, remote, choice.way)
    around = _hooks(loaded, environ, say, verbose=verbose)
    report = Wrap(plan, loaded, options, around).run()
    _print_end(say, report, loaded, environ, restore=restore)
    raise Exit(report.exit_code)


def _accepted(loaded: Loaded, environ: dict[str, str], say: Say, profile: str) -> Loaded:
    """Return the config to start with: the agent may have changed the file since the last run."""
    state = ensure_directory(state_directory(environ))
    return keep_accepted(loaded, environ, state, say, profile=profile or None)


def _search(
    command: list[str], agent_type: str | None, config_path: Path | None, environ: dict[str, str]
) -> Search:
    if agent_type == "custom" and config_path is None:
        raise UsageError("--agent-type custom needs --config-path FILE")
    launch = _launch(command, agent_type, environ)
    return Search(
        detect_launched(launch, agent_type),
        env=launch.env,
        cwd=launch.cwd,
        home=Path(launch.env.get("HOME") or Path.home()),
        config_path=config_path.absolute() if config_path is not None else None,
        argv=launch.argv,
        launcher=tuple(command[: launch.start]),
        platform=sys.platform,
        is_agent=not launch.clears and (agent_type is None or is_command_of(agent_type, launch)),
    )


def _choose(
    search: Search, inject: bool | None, *, restore: bool, dry_run: bool, remote: bool
) -> tuple[Plan, Choice]:
    """Return how this run governs the agent's servers, and the plan for it."""
    wanted: Way | None = None if inject is None else "inject" if inject else "rewrite"
    if not restore:  # only a rewritten file can stay as it is
        if inject:
            raise UsageError("--no-restore leaves a rewritten config behind: omit --inject")
        wanted = "rewrite"
    # Without the changes of other wraps: the agent is given its own servers.
    state = Path(state_directory(search.env))
    journals, _ = find_journals(state)
    originals = original_contents(journals)
    injecting = discover(search_for_injection(search), contents=originals)
    choice = choose_way(injecting, wanted, state=state, remote=remote)
    if choice.way == "inject":
        return injecting, choice
    return discover(search, contents=originals if dry_run else None), choice


def _launch(command: list[str], agent_type: str | None, environ: dict[str, str]) -> Launch:
    """Return the agent's own command line behind launchers such as ``env`` and ``npx``."""
    try:
        return find_launch(command, environ, Path.cwd(), user=_user_name())
    except UsageError:
        if agent_type is None:
            raise
        return Launch(tuple(command), 0, environ, Path.cwd())  # the user knows better


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without an account, as in containers
        return ""


def _hooks(loaded: Loaded, environ: dict[str, str], say: Say, *, verbose: bool) -> WrapHooks:
    metrics, state = Metrics(), state_directory(environ)
    # Its sign-in link is for a person, not for an agent that starts another one.
    has_console = loaded.settings.console.enabled and not is_inside_agent(environ, state)

    notice = open_terminal_notice() if loaded.settings.notify.terminal else None

    report = operator_events("wrap", loaded, verbose=verbose)

    def read_again() -> Loaded:
        return reload_configuration(loaded, environ)

    def console(governance: Governance, port: int) -> tuple[App, str]:
        mounted = MountedConsole(
            loaded, environ, state, governance.governor, port, lambda: wrapped_servers(state)
        )
        link = mounted.new_link()
        governance.governor.answer_places.console_url = console_at(link)
        return mounted, link

    return WrapHooks(
        environ,
        say,
        read_again,
        console=console if has_console else None,
        observe=both(report, metrics.observe),
        reports_verdicts=report is not None,
        metrics=metrics.render,
        channels=[notice] if notice is not None else [],
    )


def _print_start(say: Say, loaded: Loaded, plan: Plan, choice: Choice) -> None:
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    program = Path(plan.search.argv[0]).name
    is_known = plan.agent.type != "custom"
    say(f"agent     {plan.agent.name} ({program})" if is_known else f"agent     {program}")
    if choice.reason:
        say(f"its config is rewritten for this run: {choice.reason}")
    say(f"policy    {loaded.summary}")


def _warn_of_timeouts(say: Say, loaded: Loaded, plan: Plan, environ: dict[str, str]) -> None:
    """Warn if the agent gives up on a held call before a person must have answered."""
    if loaded.policy.profile == PRODUCTION:
        longest = max(each.timeout_s for each in loaded.settings.approval.values())
        for warning in short_timeouts(plan, longest, environ):
            say(f"warning: {warning}")


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
    for name, reason in report.added_outside:
        say(f"NOT GOVERNED during the run: {name} ({reason})")
    say(f"record    {record_place(loaded, state_directory(environ))}")
    if not restore:
        say(f"not restored: {', '.join(report.files)}; to restore, run: thoughtgate unwrap")
