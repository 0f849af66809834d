"""The entries that ``wrap`` gives to an agent: our own command and the run's key.

They stay the same from run to run, because agents identify servers by their command lines, and
some ask for trust again when one changes. They are the same whether they are written into the
agent's files or given to it at its start.
"""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.entry_environment import ENTRY_OPTION
from thoughtgate.agents.rewrite import Rewrite, rewrite
from thoughtgate.gate.run_file import run_path, runs_directory
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.process.own_command import own_command
from thoughtgate.wrap.remote_servers import Remotes
from thoughtgate.wrap.remotes_file import remotes_path
from thoughtgate.wrap.server_variables import ServerVariables

KEY_LENGTH: Final = 16

_OPTIONS: Final = frozenset({"--server-id", "--run", "--skip", ENTRY_OPTION})


def run_key(plan: Plan) -> str:
    """Return the key of a run, which is the same whenever an agent is wrapped in the same place."""
    where = "\0".join([plan.agent.type, str(plan.search.cwd), str(plan.search.config_path or "")])
    return sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:KEY_LENGTH]


def is_our_entry(argv: Sequence[Any], environ: Mapping[str, str]) -> bool:
    """Tell whether a command line runs our own shim with a run of this state directory.

    Its name alone proves nothing: any program can be called ``thoughtgate``, and a shim can be
    given another service or policy with its options.
    """
    own = [*own_command(), "shim"]
    words = list(argv[len(own) :])
    if list(argv[: len(own)]) != own or "--" not in words:
        return False
    options = words[: words.index("--")]
    given = dict(zip(options[::2], options[1::2], strict=False))
    run = given.get("--run")
    return (
        len(options) == 2 * len(given)
        and given.keys() <= _OPTIONS
        and isinstance(run, str)
        and os.path.dirname(run) == runs_directory(environ)  # noqa: PTH120 - as the shim has it
    )


def make_rewrite(
    plan: Plan,
    environ: Mapping[str, str],
    variables: ServerVariables,
    remotes: Remotes | None = None,
    key: str = "",
    *,
    runs: Mapping[Path, str] = MappingProxyType({}),
) -> Rewrite:
    """Put every entry of a plan behind a shim of this run; remote entries if a proxy can reach them.

    Args:
        plan: what was discovered.
        environ: determines the state directory.
        variables: the variables that go to the servers alone.
        remotes: the remote servers that a proxy can reach.
        key: the run's key, if it is not the only run of this agent in this directory.
        runs: the run files that the entries of files shared with another wrap name, by the real
            paths of those files.
    """
    own = own_command()
    # An absolute path: otherwise the shim would look for it with variables that others can set.
    own_run = run_path(key or run_key(plan), environ)

    def shim(entry: ServerEntry) -> list[str]:
        words = ["shim", "--server-id", entry.id, "--run", runs.get(entry.layer.real, own_run)]
        if entry.skipped:
            words += ["--skip", str(entry.skipped)]
        if chosen := variables.key_of(entry):
            words += [ENTRY_OPTION, chosen]
        return [*words, "--"]

    def proxy(entry: ServerEntry) -> tuple[str, list[str]] | None:
        name = remotes.name_of(entry) if remotes is not None else None
        if name is None:
            return None
        run = Path(runs.get(entry.layer.real, own_run))
        place = str(remotes_path(run.stem, environ))
        # The shim's service records; a second record would count each call twice.
        words = ["proxy", "--stdio", "-c", place, "--server", name, "--audit", os.devnull]
        words += ["--state-dir", state_directory(environ)]
        return own[0], [*own[1:], *shim(entry), *own, *words]

    return rewrite(plan, own, shim, proxy)
