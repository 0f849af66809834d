"""The command line: the table of commands, and how a command exits.

A command is a module of this package with a typer application called ``app``. It is imported
only when it runs. To add a command, add a line to the table.
"""

import contextlib
import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NamedTuple

from thoughtgate.errors import (
    EXIT_FAILURE,
    EXIT_OK,
    ConfigError,
    ThoughtGateError,
    exit_code,
    visible,
)
from thoughtgate.process.memory import collect_rarely
from thoughtgate.version import __version__


class Command(NamedTuple):
    """One line of the table."""

    name: str
    module: str
    """The module in this package; empty for a command that ``entry`` runs itself."""
    summary: str


COMMANDS: Final = (
    Command("wrap", "wrap", "Run an agent with all its MCP servers behind the gate."),
    Command("unwrap", "unwrap", "Restore agent configs that a killed wrap left changed."),
    Command("install", "installs.install", "Put agents' MCP servers behind the gate for good."),
    Command(
        "uninstall", "installs.uninstall", "Remove the shims that install put into agents' configs."
    ),
    Command("doctor", "doctor", "Find problems and show how to fix them."),
    Command("shim", "", "Run one stdio server behind the gate."),
    Command("proxy", "proxy", "Put one server behind the gate, with stdio or HTTP on either side."),
    Command("serve", "serve", "Combine many servers into one, with namespaces and lazy start."),
    Command("servers", "servers", "List, add and remove servers in a config."),
    Command(
        "tools", "definitions.group", "Show what servers changed; accept, refuse, lock, check."
    ),
    Command("scan", "definitions.scan", "Look at what servers offer, without calling a tool."),
    Command("login", "oauth.login", "Sign in to a remote server that needs it."),
    Command("logout", "oauth.logout", "Sign out from a remote server."),
    Command("status", "status", "Show running gates, pending approvals and the latest calls."),
    Command("tui", "tui", "Manage servers, calls and approvals in a terminal interface."),
    Command("validate-config", "validate_config", "Check a config file and list every problem."),
    Command("trust", "trust", "Accept a policy file found in a working directory."),
    Command("init", "init", "Write a starter config."),
    Command("approvals", "approvals", "List approval requests and answer them."),
    Command("limits", "limits", "Show how much of each limit is used; reset limits."),
    Command("stop", "orders.stop", "Refuse all calls, or those of a server or principal."),
    Command("resume", "orders.resume", "Accept stopped calls again."),
    Command("facts", "orders.facts", "Show and clear which kinds of data agents have seen."),
    Command("console", "console", "Answer approval requests and watch traffic in the browser."),
    Command("audit", "audit.group", "Follow, query, verify and export the record."),
    Command(
        "inspect",
        "inspection.inspect",
        "Show what the content checks find in definitions, arguments or results.",
    ),
    Command(
        "demo",
        "demonstration.demo",
        "See calls being forwarded, hidden, denied, limited and held.",
    ),
    Command("completion", "shell.completion", "Complete commands and options with the Tab key."),
    Command("policy", "policy.group", "Explain, lint, test, learn, compare and replay policies."),
)

USAGE_HINT: Final = "Try 'thoughtgate --help'."


def run(argv: Sequence[str]) -> int:
    """Run a command and return the exit code of the process; never raises."""
    try:
        return _dispatch(list(argv))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else EXIT_FAILURE
    except ThoughtGateError as error:
        for line in error.problems if isinstance(error, ConfigError) else [str(error)]:
            shown = visible(str(line), "\n")  # servers choose parts of some messages
            sys.stderr.write(f"Error: {shown}\n")
        return exit_code(error)
    except KeyboardInterrupt as error:
        return exit_code(error)
    except BrokenPipeError as error:  # the reader of our output is gone, so nothing can be reported
        sys.stdout = None  # the interpreter would try to flush it again
        return exit_code(error)
    except Exception as error:  # noqa: BLE001 - the outer edge of the process: a bug becomes an exit code, never output on stdout
        traceback.print_exc(file=sys.stderr)
        return exit_code(error)


def _dispatch(argv: list[str]) -> int:
    name = argv[0] if argv else ""
    command = next((one for one in COMMANDS if one.name == name), None)
    if command is not None:
        return _run_command(command, argv[1:])
    if name in {"-h", "--help", "help"}:
        sys.stdout.write(_help())
        return EXIT_OK
    if name in {"-V", "--version"}:
        sys.stdout.write(f"thoughtgate {__version__}\n")
        return EXIT_OK
    if not name:
        sys.stderr.write(_help())
        return EXIT_FAILURE
    kind = "option" if name.startswith("-") else "command"
    import difflib  # loaded only for a mistyped name

    near = difflib.get_close_matches(name, [one.name for one in COMMANDS], n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    sys.stderr.write(f"Error: unknown {kind} {name!r}. {hint}{USAGE_HINT}\n")
    return EXIT_FAILURE


def _run_command(command: Command, arguments: list[str]) -> int:
    if not command.module:
        sys.stderr.write(
            f"Error: {command.name} can only be run as 'thoughtgate {command.name}'.\n"
        )
        return EXIT_FAILURE
    collect_rarely()
    from typer.main import get_command  # takes 80 ms, which --version does not need

    from thoughtgate.cli.agent_shell import guard_commands

    module = importlib.import_module(f"thoughtgate.cli.{command.module}")
    program = get_command(module.app)
    guard_commands(program, command.name)
    # With --stdio, an agent reads stdout as MCP, so the help text must go to stderr.
    needs_stderr = "--stdio" in arguments and _asks_help(arguments)
    with contextlib.redirect_stdout(sys.stderr if needs_stderr else sys.stdout):
        program.main(arguments, prog_name=f"thoughtgate {command.name}")
    return EXIT_OK


def _asks_help(arguments: list[str]) -> bool:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return not {"-h", "--help"}.isdisjoint(own)


def _help() -> str:
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS]
    return "\n".join(
        [
            "Usage: thoughtgate COMMAND [OPTIONS]...",
            "",
            "  A gate between AI agents and the MCP tools they use. It checks every call against",
            "  your policy, asks a person for approval where you require it, and records it.",
            "",
            "Commands:",
            *lines,
            "",
            "Options:",
            "  -h, --help     Show this text, or with a command the help of that command.",
            "  -V, --version  Show the version.",
            "",
            "Examples:",
            "  thoughtgate demo",
            "  thoughtgate init",
            "  thoughtgate shim -- npx -y @modelcontextprotocol/server-filesystem /tmp",
            "  thoughtgate wrap -- claude",
            "",
        ]
    )
