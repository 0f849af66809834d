"""Which commands run in a shell that a governed agent started, and which only a person may run.

Only people may run commands that answer approval requests, accept changes or edit the config. A
command that is not in the table is refused as well, so that a forgotten entry gives an agent nothing.
"""

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

from thoughtgate.gate.approvals.started_by_agent import require_person
from thoughtgate.gate.state_directory import state_directory

PERSON: Final = "person"
ANYBODY: Final = "anybody"

WHO_MAY_RUN: Final = {
    "approvals approve": PERSON,
    "approvals deny": PERSON,
    "approvals grants add": PERSON,
    "approvals grants list": ANYBODY,
    "approvals grants revoke": ANYBODY,  # it only makes the next call need approval again
    "approvals list": ANYBODY,
    "approvals show": ANYBODY,
    "approvals watch": PERSON,
    "audit export": ANYBODY,
    "audit query": ANYBODY,
    "audit show": ANYBODY,
    "audit stats": ANYBODY,
    "audit tail": ANYBODY,
    "audit verify": ANYBODY,
    "completion": PERSON,  # it writes to the startup files of shells
    "console": PERSON,  # it prints a link that signs in anybody who opens it
    "demo": ANYBODY,  # it has its own state directory
    "doctor": ANYBODY,
    "facts clear": PERSON,
    "facts list": ANYBODY,
    "init": PERSON,
    "inspect": ANYBODY,
    "install": PERSON,  # it decides which config and state directory shims use
    "limits list": ANYBODY,
    "limits reset": PERSON,
    "login": PERSON,  # an agent must not choose the account that its calls use
    "logout": PERSON,
    "policy accept": PERSON,
    "policy diff": ANYBODY,
    "policy explain": ANYBODY,
    "policy learn": ANYBODY,
    "policy lint": ANYBODY,
    "policy replay": ANYBODY,
    "policy test": ANYBODY,
    "proxy": ANYBODY,
    "scan": ANYBODY,
    "resume": PERSON,
    "serve": ANYBODY,
    "servers add": PERSON,
    "servers list": ANYBODY,
    "servers remove": PERSON,
    "shim": ANYBODY,
    "status": ANYBODY,
    "tools accept": PERSON,  # an agent must not accept definitions of its own servers
    "tools check": ANYBODY,
    "tools diff": ANYBODY,
    "tools list": ANYBODY,
    "tools lock": ANYBODY,
    "tools refuse": PERSON,
    "stop": ANYBODY,  # it can only refuse calls
    "trust": PERSON,
    "tui": ANYBODY,  # it checks itself who makes a decision
    "uninstall": PERSON,
    "unwrap": PERSON,
    "validate-config": ANYBODY,
    "wrap": ANYBODY,
}
"""Who may run each command in a shell that a governed agent started."""

UNATTENDED: Final = {"unwrap": ("key", "config_path")}
"""The option with which the gate itself runs a command, and one that it never adds to the first.

With the first, ``unwrap`` restores only what a killed wrap left behind; with the second, also a file
without a journal."""


def guard_commands(program: Any, name: str) -> None:
    """Make every command of a typer program first check who runs it."""
    for path, command in walk_commands(program, name):
        if WHO_MAY_RUN.get(path) != ANYBODY:
            command.callback = _guarded(path, command.callback)


def walk_commands(program: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every command of a program that does something, with its full name."""
    below = getattr(program, "commands", None)
    if below is None:
        yield name, program
        return
    for child in below:
        yield from walk_commands(below[child], f"{name} {child}")


def _guarded(path: str, callback: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(callback)
    def run(**parameters: Any) -> Any:
        by_gate, by_person = UNATTENDED.get(path, ("", ""))
        if not parameters.get(by_gate) or parameters.get(by_person):
            require_person(path, os.environ, state_directory(os.environ))
        return callback(**parameters)

    return run
