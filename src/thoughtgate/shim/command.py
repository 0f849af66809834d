"""``thoughtgate shim``: from arguments to a running shim.

Reads its own arguments, because an argument parser would cost more memory and time than the rest of
the shim. Nothing here ever writes to stdout, not even the help text: an agent reads it as MCP.
"""

import os
import sys
from collections.abc import Iterable
from typing import NamedTuple

from thoughtgate.errors import EXIT_FAILURE, ConfigError, ThoughtGateError, UsageError
from thoughtgate.gate.authority import PolledAuthority
from thoughtgate.gate.poll_loop import PollLoop, complain
from thoughtgate.gate.state_directory import account_home, server_environment
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION


class Options(NamedTuple):
    """The options on the command line."""

    command: tuple[str, ...]
    server: str = ""
    config: str = ""
    state_dir: str = ""
    profile: str = ""
    audit: str = ""
    run: str = ""
    endpoint: str = ""
    entry: str = ""
    help: bool = False


_FLAGS = {
    "--server-id": "server",
    "--server-name": "server",
    "-c": "config",
    "--config": "config",
    "--state-dir": "state_dir",
    "--profile": "profile",
    "--audit": "audit",
    "--run": "run",
    "--governance-endpoint": "endpoint",
    "--entry": "entry",
    "--skip": "skip",
}


def parse_options(arguments: list[str]) -> Options:
    """Read the arguments of ``shim``.

    Raises:
        UsageError: an option is unknown, lacks its value, or there is no command.
    """
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if word in {"-h", "--help"}:
            return Options((), help=True)
        flag, given, value = word.partition("=")
        if flag not in _FLAGS:
            raise UsageError(f"shim does not know {flag!r}; put -- before the server's command")
        if not given:
            if not rest or rest[0] == "--":
                raise UsageError(f"{flag} needs a value")
            value = rest.pop(0)
        if not value:
            raise UsageError(f"{flag} needs a value")
        found[_FLAGS[flag]] = value
    skip = found.pop("skip", "0")
    if not (skip.isascii() and skip.isdigit()):
        raise UsageError("--skip is a number of words")
    command = tuple(rest[1 + int(skip) :])
    if not command:
        raise UsageError("there is no server to run: thoughtgate shim [OPTIONS] -- COMMAND...")
    _check_values(found)
    return Options(command, help=False, **found)


def _check_values(found: dict[str, str]) -> None:
    if found.get("profile", PRODUCTION) not in {PRODUCTION, DEVELOPMENT}:
        raise UsageError("--profile is production or development")
    if not os.path.isabs(found.get("state_dir", "/")):
        raise UsageError("--state-dir must be an absolute path")
    if "entry" in found and not found.keys() & {"run", "endpoint", "state_dir"}:
        raise UsageError("--entry needs --run or --state-dir")


def run_shim(arguments: list[str], usage: str) -> int:
    """Run the shim and return its exit code."""
    _fill_descriptors()
    try:
        options = parse_options(arguments)
        if options.help:
            sys.stderr.write(usage)
            return 0
        return _run(options)
    except ConfigError as error:
        for problem in error.problems:
            complain(f"Error: {problem}")
        return error.exit_code
    except ThoughtGateError as error:
        complain(f"Error: {error}")
        return error.exit_code
    except Exception:  # noqa: BLE001 - the edge of the process: exit code 1 is for configs
        sys.excepthook(*sys.exc_info())
        return EXIT_FAILURE


def _fill_descriptors() -> None:
    """Open standard descriptors that the agent left closed.

    Otherwise the next file that is opened would become our stdout.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _run(options: Options) -> int:
    server = options.server or options.command[0].rpartition("/")[2]
    environ = dict(os.environ)
    authority: PolledAuthority
    principal = ""
    withheld: Iterable[str]
    own: dict[str, str] = {}
    if options.run or options.endpoint:
        # Each branch imports only what it needs, so that a shim of a wrap stays small.
        from thoughtgate.shim.service_authority import connect

        told = _as_told(options, environ)
        authority, setup, withheld, own = connect(
            server, options.command, (options.run, options.endpoint), told, options.entry
        )
    else:
        from thoughtgate.process.memory import collect_rarely

        collect_rarely()
        own = _installed_variables(options) if options.entry else {}
        from thoughtgate.shim.standalone import govern_locally

        authority, setup, principal, withheld = govern_locally(
            server,
            options.command,
            environ,
            config=options.config,
            state_dir=options.state_dir,
            profile=options.profile,
            audit=options.audit,
        )
    # After the withheld variables are removed: the entry's own may have the same names.
    environment = server_environment(environ, withheld) | own
    return PollLoop(options.command, setup, authority, environment, principal).run()


def _installed_variables(options: Options) -> dict[str, str]:
    """Return the variables that ``install`` keeps for this server alone.

    Raises:
        UsageError: the server must not start, because its variables are not known.
    """
    from thoughtgate.gate.installs.entry_variables import read_entry
    from thoughtgate.gate.run_file import variables_of

    return variables_of(read_entry(options.state_dir, options.entry))


def _as_told(options: Options, environ: dict[str, str]) -> dict[str, str]:
    """Return the environment with the state directory of the command line or of the user's account.

    The agent's entry, which a repository may contain, sets the environment. It must not choose the
    service that judges the server's calls.
    """
    if os.path.isabs(options.run) or not options.run:
        return environ
    own = {name: value for name, value in environ.items() if name != "XDG_STATE_HOME"}
    home = environ.get("HOME", "") if options.state_dir else account_home()
    return {**own, "HOME": home, "THOUGHTGATE_STATE_DIR": options.state_dir}
