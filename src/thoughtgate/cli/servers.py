"""``thoughtgate servers``: list, add and remove servers in a config."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

from typer import Argument, Option, confirm

from thoughtgate.cli.inspection.pasted_secrets import (
    FILE,
    find_secrets,
    save_variables,
    saved_variables,
)
from thoughtgate.cli.inspection.pasted_secrets import move_secrets as move_found
from thoughtgate.cli.options import (
    HELP_NAMES,
    ConfigOption,
    JsonOption,
    WatchOption,
    command_app,
    examples,
    read_config,
)
from thoughtgate.cli.output import watch_report, write_report
from thoughtgate.cli.server_entries import MAX_PASTED, ServerFile, known_fields, parse_pasted
from thoughtgate.cli.status import STYLES
from thoughtgate.cli.tables import table_lines
from thoughtgate.config.settings import Settings
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import ConfigError, Problem, UsageError, visible
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import config_digest, find_config
from thoughtgate.gate.policy_files.trusted_files import is_trusted, trust_file
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.policy.redaction import Redactor
from thoughtgate.status.overview import gather_gates

NOT_RUNNING: Final = "not running"
DISABLED: Final = "disabled"
_OWN_WORDS: Final = ("--", "--name", "--env", "--replace", "--json", "-c", "--config")
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

app = command_app(
    "List, add and remove servers in a config.",
    examples("thoughtgate servers list", "thoughtgate servers add --id git -- uvx mcp-server-git"),
)


@app.command(
    "list",
    epilog=examples(
        "thoughtgate servers list",
        "thoughtgate servers list --watch",
        "thoughtgate servers list --json",
    ),
)
def list_command(
    *, watch: WatchOption = False, config: ConfigOption = None, json_: JsonOption = False
) -> None:
    """List the servers in the config, what is run for each, and whether it runs.

    No server is started. Secrets are masked; of variables and headers, only the names are shown.
    """
    watch_report(
        lambda: _servers(read_config(config).settings),
        as_json=json_,
        watch=watch,
        nothing="The config has no servers; add one with: thoughtgate servers add."
        " Servers of a wrapped agent are in: thoughtgate status",
    )


def _servers(settings: Settings) -> tuple[list[dict[str, Any]], Iterator[str]]:
    """Return the servers as JSON and as a table."""
    states = _states()
    mask = Redactor()
    found: list[dict[str, Any]] = []
    for ident, server in settings.servers.items():
        if ident == "*":
            continue
        # As a list, because the word before a value may say that it is a secret.
        command = [server.command, *mask.mask_value(list(server.args))]
        found.append(
            {
                "id": server.id,
                "name": server.name or server.id,
                "kind": "http" if server.url else "stdio",
                "target": mask.mask_text(server.url) or server.command,
                "args": command[1:],
                "runs": mask.mask_text(server.url) or shlex.join(command),
                "env": sorted(server.env),
                "headers": sorted(server.headers),
                "enabled": server.enabled,
                "eager": server.eager,
                "namespaces": [
                    name for name, ids in settings.namespaces.items() if server.id in ids
                ],
                "status": states.get(ident, NOT_RUNNING) if server.enabled else DISABLED,
            }
        )
    return found, table_lines(("id", "kind", "status", "runs"), found, STYLES)


def _states() -> dict[str, str]:
    """Return the states of servers, as the gates on this machine report them."""
    gates = gather_gates(state_directory(os.environ))
    return {
        str(one["id"]): str(one["status"]) for gate in gates for one in gate.get("servers") or ()
    }


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
    move_secrets: Annotated[
        bool | None,
        Option(
            "--move-secrets/--keep-secrets",
            help="Move secrets in the entry to a file of variables and refer to them. Default: ask in a terminal.",
        ),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Add a server to the config file, or import the servers of an agent's config.

    Comments and layout of the config file are kept.
    """
    if not ident:
        _refuse_bare_id(command or [])
    given = [bool(command), bool(url), bool(source)]
    if sum(given) != 1:
        raise UsageError("give exactly one of: -- COMMAND, --url URL, --from FILE")
    if ident and not _ID.fullmatch(ident):
        raise UsageError(f"--id must be 1 to 64 letters, digits, '-', '_' or '.' (got {ident!r})")
    file = _open(config)
    if source:
        entries = [(one, _known(one, entry)) for one, entry in parse_pasted(_read(source)).items()]
    else:
        entries = [(ident, _entry(command or [], name, url, env or []))]
    variables = _without_secrets(entries, move=move_secrets)
    added = [file.add(one, entry, replace=replace) for one, entry in entries]
    _save(file, variables)
    report = {"file": str(file.path), "added": added, "variables": sorted(variables)}
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


def _save(file: ServerFile, variables: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write the file; a project's file that was trusted before stays trusted."""
    state, path = state_directory(os.environ), str(file.path)
    was_trusted = is_trusted(state, path, config_digest(path, os.environ))
    if variables:
        place = Path(state, FILE)
        Path(state).mkdir(mode=0o700, parents=True, exist_ok=True)
        # First: if this fails, no config refers to variables whose values were not saved.
        save_variables(place, variables)
    file.save(variables)
    if variables:
        sys.stderr.write(
            f"Wrote {', '.join(sorted(variables))} to {place}. Before you start a gate, run:"
            f" set -a; . {shlex.quote(str(place))}; set +a\n"
        )
    if was_trusted:
        environ = {**os.environ, **variables}
        trust_file(state, path, config_digest(path, environ), render_time(now()))


def _without_secrets(
    entries: list[tuple[str, dict[str, Any]]], *, move: bool | None
) -> dict[str, str]:
    """Warn about secrets in new entries; if the user agrees, replace them by variables.

    Returns the variables with their values.
    """
    found = [(ident, entry, find_secrets(entry)) for ident, entry in entries]
    for ident, _, secrets in found:
        for one in secrets:
            sys.stderr.write(
                f"Warning: {visible(f'{ident}.{one.where}'.lstrip('.'))} contains {one.what};"
                " whoever can read the config can use it.\n"
            )
    if not any(secrets for _, _, secrets in found):
        return {}
    if move is None and sys.stdin.isatty() and sys.stderr.isatty():
        move = confirm("Move the secrets to variables?", default=True, err=True)
    if not move:
        if move is None:
            sys.stderr.write(
                "Run the command with --move-secrets to keep them out of the config.\n"
            )
        return {}
    moved: dict[str, str] = {}
    taken = {**os.environ, **saved_variables(Path(state_directory(os.environ), FILE))}
    for ident, entry, secrets in found:
        moved |= move_found(ident, entry, secrets, {**taken, **moved})
    return moved


def _known(ident: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return a pasted entry with the fields that ThoughtGate uses, and report the others."""
    kept, left = known_fields(entry)
    if left:
        sys.stderr.write(f"Ignored unsupported fields of {ident}: {', '.join(left)}\n")
    return kept


def _refuse_bare_id(words: list[str]) -> None:
    """Refuse an id in front of the options, where other programs expect it.

    Raises:
        UsageError: the words are an id, options of ours and the command.
    """
    if words[1:2] and words[1] in _OWN_WORDS and "--" in words[1:]:
        raise UsageError(
            f"{words[0]!r} stands where the command begins; if it is the server's id, run:"
            f" thoughtgate servers add --id {visible(shlex.join(words))}"
        )


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
