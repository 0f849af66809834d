"""The command line: which commands there are, and how a command ends.

A command is a module of this package with a typer application called ``app``; it is
imported only when it is the one that runs. To add a command, add its line to the table.
"""

import contextlib
import difflib
import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NamedTuple

from thoughtgate import __version__
from thoughtgate.errors import (
    EXIT_FAILURE,
    EXIT_OK,
    ConfigError,
    ThoughtGateError,
    exit_code,
)


class Command(NamedTuple):
    """One line of the table."""

    name: str
    module: str
    """The module, below this package; empty for a command that ``entry`` runs itself."""
    summary: str


COMMANDS: Final = (
    Command("wrap", "wrap", "Run an agent with every MCP server it knows behind the gate."),
    Command("unwrap", "unwrap", "Put back the agent configs that a killed wrap left rewritten."),
    Command("doctor", "doctor", "Say what is wrong and how to mend it."),
    Command("shim", "", "One stdio server behind the gate."),
    Command("proxy", "proxy", "One server behind the gate, stdio or HTTP on either side."),
    Command("serve", "serve", "Many servers as one, with namespaces and lazy start."),
    Command("servers", "servers", "List, add and remove the servers of a config."),
    Command("status", "status", "What runs, what waits, what was called last."),
    Command("tui", "tui", "Servers, calls and approvals in the terminal."),
    Command("validate-config", "validate_config", "Check a config file and list every problem."),
    Command("init", "init", "Write a starter config."),
    Command("approvals", "approvals", "See what waits for a person, and answer it."),
    Command("console", "console", "Answer approvals and watch traffic in the browser."),
    Command("audit", "audit.group", "Follow, query, verify and export the record."),
    Command("demo", "demo", "See calls forwarded, hidden, denied, limited and held."),
    Command("policy", "policy.group", "Explain, lint, test, learn, compare and replay the rules."),
)

USAGE_HINT: Final = "Try 'thoughtgate --help'."


def run(argv: Sequence[str]) -> int:
    """Run a command and return the process's exit code; nothing is raised."""
    try:
        return _dispatch(list(argv))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else EXIT_FAILURE
    except ThoughtGateError as error:
        _complain(error)
        return exit_code(error)
    except KeyboardInterrupt as error:
        return exit_code(error)
    except BrokenPipeError as error:  # whoever read our output has gone; there is nobody to tell
        sys.stdout = None  # the interpreter would try to flush it again
        return exit_code(error)
    except Exception as error:  # noqa: BLE001  the process's edge: a bug ends in an exit code, never on stdout
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
    near = difflib.get_close_matches(name, [one.name for one in COMMANDS], n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    sys.stderr.write(f"Error: no {kind} {name!r}. {hint}{USAGE_HINT}\n")
    return EXIT_FAILURE


def _run_command(command: Command, arguments: list[str]) -> int:
    if not command.module:
        sys.stderr.write(f"Error: run this as 'thoughtgate {command.name}'.\n")
        return EXIT_FAILURE
    from typer.main import get_command  # 80 ms that --version and a mistyped name do not need

    module = importlib.import_module(f"thoughtgate.cli.{command.module}")
    program = get_command(module.app)
    # Where stdout carries MCP, a help text must not get into it.
    speaks_mcp = "--stdio" in arguments
    with (
        contextlib.redirect_stdout(sys.stderr)
        if speaks_mcp and _asks_help(arguments)
        else contextlib.nullcontext()
    ):
        program.main(arguments, prog_name=f"thoughtgate {command.name}")
    return EXIT_OK


def _asks_help(arguments: list[str]) -> bool:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return not {"-h", "--help"}.isdisjoint(own)


def _complain(error: ThoughtGateError) -> None:
    """Say what is wrong on stderr, one line a problem."""
    lines = error.problems if isinstance(error, ConfigError) else [str(error)]
    for line in lines:
        sys.stderr.write(f"Error: {line}\n")


def _help() -> str:
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS]
    return "\n".join(
        [
            "Usage: thoughtgate COMMAND [OPTIONS]...",
            "",
            "  The gate between AI agents and the MCP tools they use: every call seen, judged,",
            "  approved where that is asked for, and recorded.",
            "",
            "Commands:",
            *lines,
            "",
            "Options:",
            "  -h, --help     Show this text; 'thoughtgate COMMAND --help' tells more.",
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
