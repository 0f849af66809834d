"""``thoughtgate validate-config``: check a config file; start nothing."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples
from thoughtgate.errors import EXIT_CONFIG, ConfigError, Problem
from thoughtgate.gate.config_files import find_config, load_configuration
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
        bool, typer.Option("--schema", help="Print the JSON Schema for editors instead.")
    ] = False,
) -> None:
    """Check a config file, with everything it names, and list every problem.

    Variables that are not set here and extras that are not installed are warnings: the
    config may be meant for another machine. Exit code 0 when it is valid, 1 when it is not. Nothing is started and nothing is
    connected to.
    """
    if schema:
        from thoughtgate.config.json_schema import json_schema  # only this option needs it

        sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
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
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    if problems:
        raise typer.Exit(EXIT_CONFIG)
    sys.stderr.write("Config is valid.\n")


def _check(config: str | None) -> tuple[str | None, tuple[Problem, ...], tuple[str, ...]]:
    """Return the file, what is wrong with it, and what is doubtful."""
    try:
        path = find_config(config, os.environ, str(Path.cwd()))
        if path is None:
            return (
                None,
                (Problem("", "no config file found; name one with -c, or run 'thoughtgate init'"),),
                (),
            )
        loaded = load_configuration(path, os.environ, str(Path.cwd()))
    except ConfigError as error:
        return config, error.problems, ()
    missing = missing_requirements(loaded.settings, os.environ, loaded.path or "")
    return loaded.path, (), (*loaded.warnings, *map(str, missing))
