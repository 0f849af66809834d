"""The entries that ``wrap`` writes into an agent's config: our own command and the run's key.

They stay the same from run to run, because agents identify servers by their command lines, and
some ask for trust again when one changes.
"""

import os
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.rewrite import Rewrite, rewrite
from thoughtgate.gate.run_file import run_path
from thoughtgate.wrap.remote_servers import Remotes, remotes_path

KEY_LENGTH: Final = 16

STATE_VARIABLES: Final = ("THOUGHTGATE_STATE_DIR", "XDG_STATE_HOME")
"""Variables that move the state directory. Agents filter variables, so a shim may not see them."""


def run_key(plan: Plan) -> str:
    """Return the key of a run, which is the same whenever an agent is wrapped in the same place."""
    where = "\0".join([plan.agent.type, str(plan.search.cwd), str(plan.search.config_path or "")])
    return sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:KEY_LENGTH]


def shim_command() -> list[str]:
    """Return our own command as an absolute path with symlinks resolved (F-007)."""
    script = Path(sys.argv[0])
    if script.name == "thoughtgate" and script.is_file():
        return [str(script.resolve())]
    beside = Path(sys.executable).parent / "thoughtgate"
    if beside.is_file():
        return [str(beside)]
    return [sys.executable, "-m", "thoughtgate"]


def make_rewrite(plan: Plan, environ: Mapping[str, str], remotes: Remotes | None = None) -> Rewrite:
    """Put every entry of a plan behind a shim of this run; remote entries if a proxy can reach them."""
    key, own = run_key(plan), shim_command()
    moved = any(environ.get(name) for name in STATE_VARIABLES)
    run = run_path(key, environ) if moved else key

    def shim(entry: ServerEntry) -> list[str]:
        return ["shim", "--server-id", entry.id, "--run", run, "--"]

    def proxy(entry: ServerEntry) -> tuple[str, list[str]] | None:
        name = remotes.name_of(entry) if remotes is not None else None
        if name is None:
            return None
        place = str(remotes_path(key, environ))
        carry = ["proxy", "--stdio", "-c", place, "--server", name, "--audit", os.devnull]
        return own[0], [*own[1:], *shim(entry), *own, *carry]

    return rewrite(plan, own, shim, proxy)
