"""Completions for a command line that is being typed: commands, subcommands and options."""

import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from typer.main import get_command

from thoughtgate.cli.app import COMMANDS
from thoughtgate.cli.entry import SHIM_HELP


def next_words(typed: Sequence[str]) -> list[str]:
    """Return the completions of the last word; the words before it are complete.

    Nothing is returned where a file, a value or the command of another program belongs, so that
    the shell offers files there.
    """
    *before, last = typed or [""]
    if "--" in before:
        return []
    found = [one for one in _offered(before) if one.startswith(last)]
    is_option = last.startswith("-")
    return sorted({one for one in found if one.startswith("-") == is_option})


def _offered(before: Sequence[str]) -> Iterator[str]:
    if not before:
        yield from (one.name for one in COMMANDS)
        yield from ("--help", "--version")
        return
    name, *rest = before
    entry = next((one for one in COMMANDS if one.name == name), None)
    if entry is None:
        return
    if not entry.module:
        yield from re.findall(r"^ +(?:-\w, )?(--[\w-]+)", SHIM_HELP, re.MULTILINE)
        return
    command: Any = get_command(importlib.import_module(f"thoughtgate.cli.{entry.module}").app)
    for word in rest:
        command = getattr(command, "commands", {}).get(word, command)
    # A value follows, for which the shell offers files.
    if rest and _takes_value(command, rest[-1]):
        return
    yield from (word for word, one in getattr(command, "commands", {}).items() if not one.hidden)
    for parameter in command.params:
        yield from (one for one in _options(parameter) if one.startswith("--"))
    yield "--help"


def _options(parameter: Any) -> list[str]:
    is_shown = parameter.param_type_name == "option" and not parameter.hidden
    return [*parameter.opts, *parameter.secondary_opts] if is_shown else []


def _takes_value(command: Any, word: str) -> bool:
    """Tell whether a value follows this word."""
    return any(word in one.opts and not one.is_flag for one in command.params if _options(one))
