"""``thoughtgate validate-config``: check a config file without starting anything."""

import os
import sys
from typing import Annotated

from typer import Argument, Exit, Option

from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples, read_config
from thoughtgate.cli.output import write_json
from thoughtgate.errors import EXIT_CONFIG, ConfigError, Problem, UsageError
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.config_requirements import missing_requirements

app = command_app()


_EXAMPLES = examples(
    "thoughtgate validate-config -c thoughtgate.yaml",
    "thoughtgate validate-config -c thoughtgate.yaml --json",
    "thoughtgate validate-config --schema > thoughtgate.schema.json",
)


@app.command(epilog=_EXAMPLES)
def validate_config(
    file: Annotated[
        str | None, Argument(metavar="[FILE]", help="Config file; the same as with -c.")
    ] = None,
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
    if file is not None and config is not None:
        raise UsageError("name the config once: as FILE or with -c")
    config = config or file
    loaded, problems = _check(config)
    warnings: tuple[str, ...] = ()
    if loaded is not None:
        missing = missing_requirements(loaded.settings, os.environ, loaded.path or "")
        warnings = (*loaded.warnings, *map(str, missing))
    for warning in warnings:
        sys.stderr.write(f"Warning: {warning}\n")
    for problem in problems:
        sys.stderr.write(f"Error: {problem}\n")
    if json_:
        report = {
            "file": loaded.path if loaded is not None else config,
            "sources": [source.as_json() for source in loaded.sources] if loaded else [],
            "valid": not problems,
            "problems": [problem._asdict() for problem in problems],
            "warnings": list(warnings),
        }
        write_json(report)
    if problems or loaded is None:
        raise Exit(EXIT_CONFIG)
    sys.stderr.write(f"The config is valid: {loaded.summary}.\n")


def _check(config: str | None) -> tuple[Loaded | None, tuple[Problem, ...]]:
    """Return the config if it is valid, and its problems if it is not."""
    try:
        loaded = read_config(config)
    except ConfigError as error:
        return None, error.problems
    if not loaded.files:
        message = "no config file found; name one with -c, or run 'thoughtgate init'"
        return None, (Problem("", message),)
    return loaded, ()
