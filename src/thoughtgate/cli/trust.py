"""``thoughtgate trust``: accept a policy file that was found in a working directory."""

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from typer import Argument, Exit, Option

from thoughtgate.analysis.rule_changes import PolicyChange
from thoughtgate.cli.options import JsonOption, command_app, examples
from thoughtgate.cli.output import write_report
from thoughtgate.cli.policy.diff import change_lines
from thoughtgate.config.parse import parse
from thoughtgate.config.secrets import secret_names
from thoughtgate.config.substitution import variable_names
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import ConfigError, Problem, UsageError, visible
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import (
    Loaded,
    config_digest,
    load_configuration,
)
from thoughtgate.gate.policy_files.agent_started import config_directory
from thoughtgate.gate.policy_files.sources import find_in
from thoughtgate.gate.policy_files.trusted_files import (
    distrust_file,
    list_trusted,
    place_of,
    trust_file,
)
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.status.policy_trial import changes_between

app = command_app()

_EXAMPLES = examples(
    "thoughtgate trust",
    "thoughtgate trust ~/work/thoughtgate.yaml --yes",
    "thoughtgate trust --list",
    "thoughtgate trust --remove ~/work/thoughtgate.yaml",
)


@app.command(epilog=_EXAMPLES)
def trust(
    file: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            help="File to trust. Default: the one in the working directory.",
            show_default=False,
        ),
    ] = None,
    *,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask; for scripts.")] = False,
    list_: Annotated[bool, Option("--list", help="List the files that you have trusted.")] = False,
    remove: Annotated[
        Path | None, Option(metavar="FILE", help="No longer trust this file.", show_default=False)
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Trust a policy file that was found in a working directory.

    Until you trust it, such a file can only tighten your own policy. A trusted file replaces
    your policy in that directory. Trust covers the content of the file and of the policy files
    that it names: after a change to any of them, the file has to be trusted again.
    """
    state = state_directory(os.environ)
    if list_:
        found = [_entry(path, one.digest, one.at) for path, one in list_trusted(state).items()]
        lines = (visible(f"{one['path']}  {one['status']}, {one['at']}") for one in found)
        write_report(found, lines, as_json=json_)
        return
    if remove is not None:
        if not distrust_file(state, str(remove)):
            raise UsageError(f"{remove} is not trusted; see: thoughtgate trust --list")
        report = {"path": place_of(str(remove)), "trusted": False}
        write_report(report, [f"No longer trusted: {visible(str(remove))}"], as_json=json_)
        return
    offer = _read(_find(file))
    if not json_:
        sys.stdout.writelines(f"{visible(line)}\n" for line in offer.lines())
    accepted = yes or (not json_ and _ask())
    if accepted:
        trust_file(state, offer.path, offer.digest, render_time(now()))
    outcome = "Trusted" if accepted else "Not trusted"
    line = visible(f"{outcome}: {offer.path}")
    write_report({**offer.as_json(), "trusted": accepted}, [line], as_json=json_)
    if not accepted and not json_:
        raise Exit(1)


class _Offer(NamedTuple):
    """What the user is asked to trust."""

    path: str
    digest: str
    changes: list[PolicyChange]
    """What changes compared with the policy that applies without the file."""
    commands: dict[str, str]
    """The commands and URLs of its servers, by id."""
    variables: list[str]
    """The environment variables that it uses."""

    def lines(self) -> Iterator[str]:
        yield f"{self.path} (sha256 {self.digest})"
        for ident, command in self.commands.items():
            yield f"  server {ident}: {command}"
        if self.variables:
            yield f"  uses the variables {', '.join(self.variables)}"
        yield "Compared with the policy that applies without it:"
        for line in change_lines(self.changes):
            yield f"  {line}"

    def as_json(self) -> dict[str, Any]:
        changes = [change._asdict() for change in self.changes]
        return {**self._asdict(), "path": place_of(self.path), "changes": changes}


def _find(file: Path | None) -> str:
    place = file if file is not None else Path.cwd()
    if not place.is_dir():
        return str(place.absolute())
    found = find_in(str(place))
    if not found:
        raise ConfigError(
            [
                Problem(
                    "",
                    "there is no config file to trust; name one, or run 'thoughtgate init'",
                    str(place),
                )
            ]
        )
    return found


def _read(path: str) -> _Offer:
    after = load_configuration(path, os.environ, str(Path.cwd()))
    settings = after.settings
    commands = {
        server.id: server.url or shlex.join([server.command, *server.args])
        for server in settings.servers.values()
        if server.url or server.command
    }
    # From the text that was loaded: if the file were read again, it could have changed since.
    document = parse(after.own_file.texts[after.own_file.path], file=path)
    variables = secret_names(settings) | variable_names(document.data)
    changes = changes_between(_without_project(), after, (), os.environ, now())
    return _Offer(path, after.sources[0].digest, changes, commands, sorted(variables))


def _without_project() -> Loaded:
    """Load the policy that applies in a directory without a config file."""
    # The variable must not name a file, and the directory below has none of a project.
    environ = {**os.environ, "THOUGHTGATE_CONFIG": ""}
    own = Path(config_directory(environ), "thoughtgate")
    return load_configuration(None, environ, str(own))


def _ask() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("this is not a terminal; to trust the file without a question, use --yes")
    sys.stderr.write("Trust this file? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _entry(path: str, digest: str, at: str) -> dict[str, str]:
    try:
        status = "trusted" if config_digest(path, os.environ) == digest else "changed since"
    except ConfigError:
        status = "cannot be read"
    return {"path": path, "status": status, "digest": digest, "at": at}
