"""Options that several commands share, so that their names and help texts are the same."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer import Option

from thoughtgate.errors import ConfigError, UsageError, visible

if TYPE_CHECKING:
    from thoughtgate.gate.config_files import Loaded
    from thoughtgate.stores.open_database import StoreLocation

HELP_NAMES: Final = ["-h", "--help"]

ConfigOption = Annotated[
    str | None,
    Option(
        "-c",
        "--config",
        metavar="FILE",
        help="Config file. Default: $THOUGHTGATE_CONFIG, a trusted file in the working directory, the user's config directory.",
    ),
]
StateDirOption = Annotated[
    str,
    Option(
        metavar="DIR",
        help="Directory of the record and the approvals, an absolute path. Over stdio, $THOUGHTGATE_STATE_DIR is ignored.",
    ),
]
JsonOption = Annotated[bool, Option("--json", help="Print JSON on stdout.")]
WatchOption = Annotated[
    bool,
    Option("--watch", help="Print it again whenever it changes, until Ctrl-C."),
]
ProfileOption = Annotated[
    str, Option(metavar="NAME", help="production or development; overrides the config.")
]
RecordOption = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Record to read. Default: the one that the config names, or the one in the state directory.",
    ),
]
SinceOption = Annotated[
    str, Option(metavar="TIME", help="Start: 2h or 3d (ago), or 2026-01-31T12:00Z.")
]
UntilOption = Annotated[str, Option(metavar="TIME", help="End, in the same format as --since.")]


def read_config(config: str | None, *, profile: str = "") -> "Loaded":
    """Load the config that ``-c`` names, or the one found in the default places.

    Raises:
        ConfigError: the config is invalid, or the named file does not exist.
    """
    # Imported here because commands such as init and demo read no config.
    from thoughtgate.gate.config_files import load_configuration

    return load_configuration(config, os.environ, str(Path.cwd()), profile=profile or None)


def find_store(config: str | None) -> "StoreLocation":
    """Return the store of the config that ``-c`` names, or of the one found in the default places.

    If a config is found but cannot be read, a person must still be able to answer requests: then
    the store in the state directory is used.

    Raises:
        ConfigError: the config that ``-c`` names cannot be read.
        StoreError: there is no state directory.
    """
    from thoughtgate.gate.open_governor import store_location
    from thoughtgate.gate.state_directory import state_directory
    from thoughtgate.stores.open_database import StoreLocation

    state = state_directory(os.environ)
    try:
        return store_location(read_config(config), state)
    except ConfigError as error:
        if config is not None:
            raise
        sys.stderr.write(
            f"thoughtgate: warning: {visible(str(error.problems[0]))}; "
            f"the approvals in {state} are used\n"
        )
        return StoreLocation(Path(state))


def read_gate_config(
    config: str | None,
    *,
    profile: str,
    state_dir: str,
    by_agent: bool,
    has_floor: bool = True,
) -> tuple["Loaded", dict[str, str]]:
    """Load the config of a gate; also return the environment that the gate uses.

    ``by_agent`` says that an agent starts the gate, so that its environment must not loosen it.

    Raises:
        ConfigError: the config is invalid, or the named file does not exist.
        UsageError: the state directory is not an absolute path.
    """
    from thoughtgate.gate.config_files import load_agent_gate

    if by_agent:
        return load_agent_gate(
            config,
            os.environ,
            str(Path.cwd()),
            profile=profile or None,
            state_dir=state_dir,
            has_floor=has_floor,
        )
    environ = {**os.environ, **({"THOUGHTGATE_STATE_DIR": state_dir} if state_dir else {})}
    return read_config(config, profile=profile), environ


def require_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Check that the value of an option is one of its choices.

    Raises:
        UsageError: it is not.
    """
    if value not in choices:
        listed = ", ".join(choices)
        raise UsageError(f"{option} must be one of {listed} (got {value!r})")


def command_app(help_text: str | None = None, epilog: str | None = None) -> typer.Typer:
    """Return a typer application with the settings that all commands share.

    Pass a help text for a command that has subcommands; called without a subcommand, it
    prints its help.
    """
    return typer.Typer(
        add_completion=False,
        no_args_is_help=help_text is not None,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": HELP_NAMES},
        help=help_text,
        epilog=epilog,
    )


def examples(*commands: str) -> str:
    r"""Return the examples at the end of a help text.

    The leading ``\b`` tells click not to rewrap the lines.
    """
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])
