"""The self-contained folder, built once for all tests of a run."""

import fcntl
import os
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.support.channel_packages import install_from_guide
from tests.support.commands import ROOT

INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}

_BUILD_S: Final = 540


def build_folder(places: pytest.TempPathFactory) -> Path:
    """Return the program of the folder, which contains the channel of the guide.

    The first process of a parallel run builds it, and the others wait for that.
    """
    base = places.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    program = shared / "folder" / "thoughtgate" / "thoughtgate"
    with (shared / "folder.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the test's own time limit ends the wait
        if not program.exists():
            channel = install_from_guide(shared / "channel")
            environ = {**os.environ, "PYTHONPATH": str(channel), "PIP_NO_INPUT": "1"}
            command = ["make", "folder", f"FOLDER={shared / 'folder'}"]
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environ,
                capture_output=True,
                text=True,
                timeout=_BUILD_S,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    return program
