"""``thoughtgate servers``: list, add and remove servers in a config."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Final

from typer import Argument, Option

from thoughtgate.cli.options import (
    HELP_NAMES,
    ConfigOption,
    JsonOption,
    command_app,
    examples,
    read_config,
)
from thoughtgate.cli.output import write_report
from thoughtgate.cli.server_entries import MAX_PASTED, ServerFile, known_fields, parse_pasted
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import ConfigError, Problem, UsageError
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import config_digest, find_config
from thoughtgate.gate.policy_files.trusted_files import is_trusted, trust_file
from thoughtgate.gate.state_directory import state_directory

_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

app = command_app(
    "List, add and remove servers in a config.",
    examples("thoughtgate servers list", "thoughtgate servers add --id git -- uvx mcp-server-git"),
)


@app.command("list", epilog=examples("thoughtgate servers list", "thoughtgate servers list --json"))
def list_command(*, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """List the servers in the config without starting them."""
    settings = read_config(config).settings
    found: list[dict[str, Any]] = [
        {
            "id": server.id,
            "name": server.name or server.id,
            "kind": "http" if server.url else "stdio",
            "target": server.url or server.command,
            "enabled": server.enabled,
            "eager": server.eager,
            "namespaces": [name for name, ids in settings.namespaces.items() if server.id in ids],
        }
        for ident, server in settings.servers.items()
        if ident != "*"
    ]
    if not found and not json_:
        sys.stderr.write("No servers are configured; add one with: thoughtgate servers add\n")
    width = max((len(one["id"]) for one in found), default=0)
    lines = (
        f"{one['id']:<{width}}  {one['kind']:<5}  {one['target']}"
        + ("" if one["enabled"] else "  (disabled)")
        for one in found
    )
    write_report(found, lines, as_json=json_)


@app.command(
    "add",
    epilog=examples(
        "thoughtgate servers add --id git -- uvx mcp-server-git",
        "thoughtgate servers add --id search --url https://example.com/mcp",
        "thoughtgate servers add --from ~/.cursor/mcp.json",
        "pbpaste | thoughtgate servers add --from -",
    ),
    options_metavar="[OPTIONS] [--]",
    context_settings={
        "ignore_unknown_options": False,
        "allow_interspersed_args": False,
        "help_option_names": HELP_NAMES,
    },
)
def add_command(
    command: Annotated[
        list[str] | None, Argument(metavar="COMMAND", help="Command of a stdio server.")
    ] = None,
    *,
    config: ConfigOption = None,
    ident: Annotated[
        str, Option("--id", metavar="ID", help="Id of the server. Default: a generated one.")
    ] = "",
    name: Annotated[str, Option(metavar="TEXT", help="Display name of the server.")] = "",
    url: Annotated[str, Option(metavar="URL", help="URL of an HTTP server.")] = "",
    env: Annotated[
        list[str] | None,
        Option(metavar="NAME=VALUE", help="Environment variable for the server; can be repeated."),
    ] = None,
    source: Annotated[
        str,
        Option(
            "--from", metavar="FILE|-", help="File with an mcpServers block to import; - for stdin."
        ),
    ] = "",
    replace: Annotated[
        bool, Option("--replace", help="Replace existing entries with the same id.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Add a server to the config file, or import the servers of an agent's config.

    Comments and layout of the config file are kept.
    """
    given = [bool(command), bool(url), bool(source)]
    if sum(given) != 1:
        raise UsageError("give exactly one of: -- COMMAND, --url URL, --from FILE")
    if ident and not _ID.fullmatch(ident):
        raise UsageError(f"--id must be 1 to 64 letters, digits, '-', '_' or '.' (got {ident!r})")
    file = _open(config)
    if source:
        added = [_take(file, *one, replace=replace) for one in parse_pasted(_read(source)).items()]
    else:
        added = [file.add(ident, _entry(command or [], name, url, env or []), replace=replace)]
    _save(file)
    report = {"file": str(file.path), "added": added}
    write_report(report, (f"Added {one} to {file.path}" for one in added), as_json=json_)


@app.command("remove", epilog=examples("thoughtgate servers remove git"))
def remove_command(
    ident: Annotated[str, Argument(metavar="ID", help="Id of the server.")],
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Remove a server from the config file and from its namespaces."""
    file = _open(config)
    spaces = file.remove(ident)
    _save(file)
    report = {"file": str(file.path), "removed": ident, "namespaces": spaces}
    left = f" and from the namespaces {', '.join(spaces)}" if spaces else ""
    write_report(report, [f"Removed {ident} from {file.path}{left}"], as_json=json_)


def _open(config: str | None) -> ServerFile:
    path = find_config(config, os.environ, str(Path.cwd()))
    if path is None:
        message = (
            "no config file of yours found; run 'thoughtgate init', trust the one in this"
            " directory with 'thoughtgate trust', or name a file with -c"
        )
        raise ConfigError([Problem("", message)])
    return ServerFile(Path(path), os.environ)


def _save(file: ServerFile) -> None:
    """Write the file; a project's file that was trusted before stays trusted."""
    state, path = state_directory(os.environ), str(file.path)
    was_trusted = is_trusted(state, path, config_digest(path, os.environ))
    file.save()
    if was_trusted:
        trust_file(state, path, config_digest(path, os.environ), render_time(now()))


def _take(file: ServerFile, ident: str, entry: dict[str, Any], *, replace: bool) -> str:
    """Add a pasted entry, and report fields that ThoughtGate does not use."""
    kept, left = known_fields(entry)
    if left:
        sys.stderr.write(f"Ignored unsupported fields of {ident}: {', '.join(left)}\n")
    return file.add(ident, kept, replace=replace)


def _entry(command: list[str], name: str, url: str, env: list[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name} if name else {}
    if url:
        entry["url"] = url
    else:
        entry["command"] = command[0]
        if command[1:]:
            entry["args"] = command[1:]
    variables = {}
    for pair in env:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--env needs NAME=VALUE (got {pair!r})")
        variables[key] = value
    return {**entry, "env": variables} if variables else entry


def _read(source: str) -> str:
    try:
        if source == "-":
            return sys.stdin.read(MAX_PASTED)
        with Path(source).expanduser().open(encoding="utf-8") as file:
            return file.read(MAX_PASTED)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {source}: {reason}") from None
