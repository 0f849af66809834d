"""The environment variables of an entry that would reach the gate's own process.

An agent starts the shim with the variables of the entry, and anybody who can write to a repository
can write an entry. Variables that change how a program is loaded, where it looks for files or what
the gate does are therefore emptied in the rewritten entry. The shim gives their values to the
server, and to nothing else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents import env_file
from thoughtgate.agents.catalog import Agent
from thoughtgate.agents.entries import KeyPath, ServerEntry
from thoughtgate.agents.entry_shapes import ENV_KEYS, lookup
from thoughtgate.agents.expansion import SIGNS, expand, undefined_variables

PREFIXES: Final = (
    *("LD_", "DYLD_", "PYTHON", "_PYI_", "PYINSTALLER_", "OPENSSL_", "SSL_CERT_"),
    *("THOUGHTGATE_", "SUB_", "XDG_"),
)
"""Beginnings of names: the dynamic loaders (``LD_``, ``DYLD_``), the Python interpreter, the loader of
the self-contained folder (``_PYI_``, ``PYINSTALLER_``), OpenSSL's modules and certificates, the
gate's own settings (``THOUGHTGATE_``, ``SUB_``), and the user's directories (``XDG_``)."""

NAMES: Final = frozenset(
    {"HOME", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES", "__PYVENV_LAUNCHER__", "__proto__"}
)
"""Whole names: the user's home, the variables with which the C library loads converters, and the one
by which Python on macOS finds its packages. An agent written in JavaScript that copies ``__proto__``
gives the process all variables in its value."""

ENTRY_OPTION: Final = "--entry"
"""The shim's option that selects the variables of its entry in the run file."""

OWN_PREFIXES: Final = ("THOUGHTGATE_", "SUB_")
"""Beginnings of names that a shim keeps from its server."""

_NOT_IN_NAMES: Final = "=\0${"
"""Characters with which the agent or the system may read another name than the one written."""

_EDITOR_FOLDERS: Final = (".vscode", ".cursor")


@dataclass(frozen=True, slots=True)
class MovedVariables:
    """The variables of one entry that go to its server alone."""

    values: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    """Why the values cannot be known; the server must not start then."""


def reaches_gate(name: str) -> bool:
    """Tell whether a variable of this name would reach the gate's own process."""
    plain = name.strip()
    odd = any(character in name for character in _NOT_IN_NAMES)
    return odd or plain in NAMES or plain.startswith(PREFIXES)


def moved_keys(entry: Mapping[str, Any]) -> Iterator[KeyPath]:
    """Return the keys of an entry's variables that must not reach the gate."""
    for keys in ENV_KEYS:
        table = lookup(entry, keys)
        if isinstance(table, Mapping):
            yield from ((*keys, name) for name in table if reaches_gate(name))


def sets_environment(entry: Mapping[str, Any], *, filled: bool = False) -> bool:
    """Tell whether an entry sets variables that must not reach the gate.

    With ``filled``, empty variables do not count: an installation leaves those behind.
    """
    return env_file.KEY in entry or any(
        not filled or lookup(entry, keys) for keys in moved_keys(entry)
    )


def moved_variables(
    entry: ServerEntry, agent: Agent, environ: Mapping[str, str]
) -> MovedVariables | None:
    """Return what the server gets in place of the emptied variables; None if none were emptied.

    References are expanded as the agent would do it, with the environment that the agent gets.
    """
    named = {name: value for name, value in entry.env.items() if reaches_gate(name)}
    file = entry.raw.get(env_file.KEY)
    if not named and file is None:
        return None
    values, problem = _from_file(file, entry, agent, environ) if file is not None else ({}, "")
    for name, written in named.items():
        value = _with_workspace(written, entry)
        problem = problem or _problem(name, value, agent, environ)
        if not problem:
            values[name] = expand(value, agent.syntax, environ)
    if problem:
        return MovedVariables(problem=problem)
    if entry.skipped:
        # The shim that was in the entry is left out, and would have kept these from its server.
        values = {name: text for name, text in values.items() if not name.startswith(OWN_PREFIXES)}
    return MovedVariables(values)


def _from_file(
    written: Any, entry: ServerEntry, agent: Agent, environ: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """Return the variables of the file that an entry names, or the reason why they are unknown."""
    named = _with_workspace(written, entry)
    problem = _problem(env_file.KEY, named, agent, environ)
    if problem:
        return {}, problem
    path = Path(expand(named, agent.syntax, environ))
    if not path.is_absolute():
        return {}, f"{env_file.KEY} is not an absolute path"
    found, problem = env_file.read_env_file(path)
    # The entry's own variables take precedence over those in the file.
    return {name: value for name, value in found.items() if name not in entry.env}, problem


def _with_workspace(value: Any, entry: ServerEntry) -> Any:
    """Fill in the folder that an editor has open, if the entry is in a file of that folder."""
    folder = entry.layer.path.parent
    if not isinstance(value, str) or folder.name not in _EDITOR_FOLDERS:
        return value
    if entry.layer.scope != "project":
        return value
    return value.replace("${workspaceFolder}", str(folder.parent))


def _problem(name: str, value: Any, agent: Agent, environ: Mapping[str, str]) -> str:
    """Return why the value that the agent would pass on is unknown; empty if it is known."""
    if any(character in name for character in _NOT_IN_NAMES):
        return f"the name of the variable {name!r} is not valid"
    if not isinstance(value, str) or "\0" in value:
        return f"the value of the variable {name} is not a text"
    missing = undefined_variables(value, agent.syntax, environ)
    if missing:
        return f"the variable {name} refers to {missing[0]}, which is not set"
    # Whether an agent that is not in the catalog expands references is unknown.
    expands = agent.syntax != "none" or agent.type == "custom"
    if expands and any(sign in expand(value, agent.syntax, environ) for sign in SIGNS):
        return f"the variable {name} has a reference that only the agent can expand"
    return ""
