"""Options that several commands share, so that they are spelled and explained the same."""

import os
from typing import Annotated, Final, TypeAlias

import typer

ConfigOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE",
        help="Config file. Default: $THOUGHTGATE_CONFIG, the working directory, the user's config directory, /etc/thoughtgate.",
        show_default=False,
    ),
]

HELP_NAMES: Final = ["-h", "--help"]

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def command_app(help_text: str | None = None, epilog: str | None = None) -> typer.Typer:
    """Return the typer application of one command file, set up like all others.

    A text is for a command with commands of its own; without one of them it prints its help.
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
    """Return the closing part of a help text; the first character keeps its lines as they are."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def is_without_colour() -> bool:
    """Tell whether the operator wants no colour anywhere (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def counted(number: int, word: str) -> str:
    """Return a number of things in words: one call, two calls."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
