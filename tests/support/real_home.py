"""Keeps tests out of the home directory of the account that runs them.

A gate that an agent starts takes its state directory from the password database, whatever
``HOME`` says, so a test must name one with ``--state-dir`` or use ``isolated_command``.
"""

import os
import pwd
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

REAL_HOME: Final = pwd.getpwuid(os.geteuid()).pw_dir
"""The home directory of the account, which no test may write to."""

FORBIDDEN: Final = tuple(
    os.path.join(REAL_HOME, *parts, "thoughtgate")  # noqa: PTH118 - pathlib opens files, which is what is watched here
    for parts in ((".local", "state"), (".config",), ("Library", "Application Support"))
)
"""The directories of a gate there."""

VIOLATIONS: Final[list[str]] = []
"""What this process was kept from; an exception alone could be caught by the code under test."""

_COMMAND: Final = str(Path(sys.executable).with_name("thoughtgate"))
_MODULES: Final = frozenset({"thoughtgate", "thoughtgate.cli.entry"})
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_HARMLESS: Final = frozenset({"--state-dir", "--run", "--help", "-h"})
"""Options of a gate that does not use the account's own state; a shim of a run asks its service."""


def guard_real_home() -> None:
    """Refuse, from now on, whatever would write to the gate's directories in the account's home."""
    sys.addaudithook(_check)


def is_stray_gate(argv: Sequence[str]) -> bool:
    """Tell whether a command starts a gate on stdio that would use the account's own state."""
    pairs = zip(("", *argv), argv, strict=False)
    found = [one == _COMMAND or (before == "-m" and one in _MODULES) for before, one in pairs]
    if True not in found:
        return False
    rest = list(argv[found.index(True) + 1 :])
    own = rest[: rest.index("--")] if "--" in rest else rest
    is_gate = own[:1] == ["shim"] or (own[:1] in (["proxy"], ["serve"]) and "--stdio" in own)
    return is_gate and _HARMLESS.isdisjoint(own)


def _check(event: str, args: tuple[Any, ...]) -> None:
    stray = ""
    if event == "open":
        path, _, flags = args
        if isinstance(flags, int) and flags & _WRITES and _is_forbidden(path):
            stray = f"writes {path!r}"
    elif event in {"os.mkdir", "sqlite3.connect"}:
        if _is_forbidden(args[0]):
            stray = f"{event} {args[0]!r}"
    elif event == "subprocess.Popen" and isinstance(args[1], list | tuple):
        argv = [os.fsdecode(one) for one in args[1]]
        if is_stray_gate(argv):
            stray = f"starts a gate without --state-dir: {argv}"
    if stray:
        VIOLATIONS.append(stray)
        raise AssertionError(f"a test reaches for the real home directory: it {stray}")


def _is_forbidden(path: object) -> bool:
    if not isinstance(path, str | bytes):
        return False
    name = os.fsdecode(path).removeprefix("file:")
    return name.startswith(FORBIDDEN)
