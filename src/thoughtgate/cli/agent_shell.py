"""Refusing commands that approve calls in a shell that a governed agent started."""

import os

from thoughtgate.errors import UsageError
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.status.started_by_agent import is_inside_agent


def refuse_in_agent_shell(command: str) -> None:
    """Refuse to run a command from a shell that a governed agent started.

    Raises:
        UsageError: an agent started this shell; it must not approve its own calls.
    """
    if is_inside_agent(os.environ, state_directory(os.environ)):
        raise UsageError(
            "this shell was started by a governed agent, which cannot approve its own calls; "
            f"run 'thoughtgate {command}' in another terminal"
        )
