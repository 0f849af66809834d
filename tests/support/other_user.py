"""Run ``thoughtgate`` as another user: ``UID ARGUMENTS…``. Starts as root.

Everything is imported before the user changes, because the interpreter may be installed where
only root can read.
"""

import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

import thoughtgate
from thoughtgate.stores.engines.sqlite import FILE_NAME

PRELOADED = (
    "uvloop",
    "encodings.idna",
    "encodings.utf_8_sig",
    "encodings.latin_1",
    "encodings.ascii",
    "multiprocessing.util",
    "_strptime",
    "difflib",
    "sqlite3",
)


def main(user: int, arguments: list[str]) -> int:
    """Import everything, become the user, and run the command."""
    for module in pkgutil.walk_packages(thoughtgate.__path__, "thoughtgate."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in PRELOADED:
        importlib.import_module(name)
    become(user)
    if arguments[0] == "try":
        print(json.dumps(attempts(*arguments[1:])))
        return 0
    from thoughtgate.cli import app

    sys.argv = ["thoughtgate", *arguments]
    return app.run(arguments)


def become(user: int) -> None:
    """Give up root for good."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.umask(0o077)


def attempts(state: str, config: str, gate: str) -> dict[str, str]:
    """Try what an agent might try, and return how each attempt ended."""
    tries: dict[str, Callable[[], object]] = {
        "list the state directory": lambda: list(Path(state).iterdir()),
        "read the approvals": lambda: Path(state, FILE_NAME).read_bytes(),
        "write into the state directory": lambda: Path(state, "x").write_text("x"),
        "replace the state directory": lambda: Path(state).rename(f"{state}.old"),
        "read the policy": lambda: Path(config).read_text("utf-8"),
        "write the policy": lambda: Path(config).write_text("schema: 1\ndefault: forward\n"),
        "replace the policy": lambda: Path(config).unlink(),
        "end the gate": lambda: os.kill(int(gate), 9),
        "read the gate's environment": lambda: Path(f"/proc/{gate}/environ").read_bytes(),
    }
    return {what: _outcome(one) for what, one in tries.items()}


def _outcome(one: Callable[[], object]) -> str:
    try:
        one()
    except OSError as error:
        return type(error).__name__
    return "worked"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
