"""``thoughtgate validate-config``: check a config file without starting anything."""

import os
import sys
from pathlib import Path
from typing import Annotated

from typer import Exit, Option

from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples, read_config
from thoughtgate.cli.output import write_json
from thoughtgate.errors import EXIT_CONFIG, ConfigError, Problem
from thoughtgate.gate.config_files import find_config
from thoughtgate.gate.config_requirements import missing_requirements

app = command_app()


_EXAMPLES = examples(
    "thoughtgate validate-config -c thoughtgate.yaml",
    "thoughtgate validate-config -c thoughtgate.yaml --json",
    "thoughtgate validate-config --schema > thoughtgate.schema.json",
)


@app.command(epilog=_EXAMPLES)
def validate_config(
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
    schema: Annotated[
        bool, Option("--schema", help="Print the JSON Schema of the config, for editors.")
    ] = False,
) -> None:
    """Check a config file and the files it names, and list every problem.

    Environment variables that are not set and extras that are not installed are warnings,
    because the config may be meant for another machine. Nothing is started and no
    connections are made. The exit code is 0 if the config is valid, 1 if it is not.
    """
    if schema:
        from thoughtgate.config.json_schema import json_schema  # only this option needs it

        write_json(json_schema())
        return
    path, problems, warnings = _check(config)
    for warning in warnings:
        sys.stderr.write(f"Warning: {warning}\n")
    for problem in problems:
        sys.stderr.write(f"Error: {problem}\n")
    if json_:
        report = {
            "file": path,
            "valid": not problems,
            "problems": [problem._asdict() for problem in problems],
            "warnings": list(warnings),
        }
        write_json(report)
    if problems:
        raise Exit(EXIT_CONFIG)
    sys.stderr.write("The config is valid.\n")


def _check(config: str | None) -> tuple[str | None, tuple[Problem, ...], tuple[str, ...]]:
    """Return the file, its problems and its warnings."""
    try:
        path = find_config(config, os.environ, str(Path.cwd()))
        if path is None:
            message = "no config file found; name one with -c, or run 'thoughtgate init'"
            return None, (Problem("", message),), ()
        loaded = read_config(path)
    except ConfigError as error:
        return config, error.problems, ()
    missing = missing_requirements(loaded.settings, os.environ, loaded.path or "")
    return loaded.path, (), (*loaded.warnings, *map(str, missing))
