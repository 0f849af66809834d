"""The environment of a gate that an agent starts: ``shim``, ``proxy --stdio``, ``serve --stdio``.

Whoever writes an entry of an agent's config chooses that environment, so it must not decide which
policy applies or where approvals and the record are kept. Those come from the command line, or
from the account's home directory in the password database.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from thoughtgate.config.document import Document, dotted
from thoughtgate.config.environment import without_loosening
from thoughtgate.config.substitution import references, variable_names
from thoughtgate.errors import Problem, UsageError
from thoughtgate.gate.policy_files.parsed_documents import ParsedDocuments
from thoughtgate.gate.state_directory import account_home, state_directory

STATE_VARIABLE = "THOUGHTGATE_STATE_DIR"

_SERVERS = frozenset({"servers", "mcpServers"})
_EXPOSE = "expose"
_TELEMETRY = "telemetry"


class AgentStarted(NamedTuple):
    """The environment and the directories that such a gate uses."""

    environ: dict[str, str]
    """The environment without variables that could loosen the gate, and with the state directory.
    ``HOME`` stays as it is, because servers inherit it."""
    config_home: str
    """The directory of the user's config files; empty if the command line names the file."""
    warnings: tuple[str, ...]
    """Names the variables that were ignored."""


def agent_started(
    environ: Mapping[str, str], *, config: str = "", state_dir: str = ""
) -> AgentStarted:
    """Return the environment of a gate that an agent starts; the options are from its command line.

    Raises:
        UsageError: the state directory is not an absolute path.
        StoreError: a directory is not on the command line, and the account has no home.
    """
    if state_dir and not Path(state_dir).is_absolute():
        raise UsageError(f"--state-dir must be an absolute path (got {state_dir!r})")
    trusted, ignored = without_loosening(environ)
    state = state_dir or state_directory({"HOME": account_home()})
    home = "" if config else str(Path(account_home(), ".config"))
    if STATE_VARIABLE in ignored and state_directory(environ) == state:
        ignored.remove(STATE_VARIABLE)
    if not state_dir and STATE_VARIABLE not in ignored and state_directory(environ) != state:
        ignored.append("XDG_STATE_HOME" if environ.get("XDG_STATE_HOME") else "HOME")
    if home and config_directory(environ) != home:
        ignored.append("XDG_CONFIG_HOME" if environ.get("XDG_CONFIG_HOME") else "HOME")
    trusted[STATE_VARIABLE] = state
    return AgentStarted(trusted, home, _warnings(dict.fromkeys(ignored)))


def find_chosen_values(
    text: str, file: str, environ: Mapping[str, str], documents: ParsedDocuments
) -> Iterator[Problem]:
    """Yield the values of a policy that variables of the environment would decide.

    What servers are started with and where telemetry goes decides nothing about a call.
    """
    if "${" not in text and "\\" not in text:  # parsing a large policy again takes time
        return
    document = documents.parse(text, file=file)
    for path in references(document.data):
        if path[0] == _TELEMETRY or (path[0] in _SERVERS and _EXPOSE not in path[2:3]):
            continue
        for name in sorted(variable_names(_value_at(document, path)) & environ.keys()):
            words = (
                f"refers to the variable {name}, but an agent starts this gate and could set it to"
                " anything; write the value itself"
            )
            yield Problem(dotted(path), words, file, document.lines.get(path, 0))


def _value_at(document: Document, path: tuple[str | int, ...]) -> Any:
    value: Any = document.data
    for key in path:
        value = value[key]
    return value


def config_directory(environ: Mapping[str, str]) -> str:
    """Return the directory of the user's config files, as the environment has it."""
    if configured := environ.get("XDG_CONFIG_HOME"):
        return configured
    return str(Path(environ.get("HOME") or Path.home()) / ".config")


def _warnings(ignored: Mapping[str, None]) -> tuple[str, ...]:
    if not ignored:
        return ()
    words = (
        f"ignored {', '.join(ignored)}: an agent starts this gate, so its environment cannot choose"
        " the policy or the state directory; use -c, --profile and --state-dir instead"
    )
    return (words,)
