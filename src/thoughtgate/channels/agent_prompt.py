"""The agent's own prompt as a channel: what is asked there, and in whose name it is answered.

The prompt is shown by the agent's program to the person in front of it. How it travels is
``core.elicitation``'s business.
"""

import json
import os
import pwd
from typing import Final

from thoughtgate.core.approval import ELICITATION_CHANNEL, Approval

NAME: Final = ELICITATION_CHANNEL

MAX_ARGUMENTS: Final = 1500
"""Characters of arguments in a prompt: clients show it in a small box."""


def identity(principal: str = "") -> str:
    """Return who sits in front of an agent: on this machine, unless it came with a name."""
    if principal:
        return f"{NAME}:{principal}"
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid-{uid}"
    return f"{NAME}:{name}"


def prompt_text(approval: Approval) -> str:
    """Return the question; text of agents and servers cannot move a terminal's cursor in it."""
    pretty = json.dumps(json.loads(approval.arguments), indent=2, ensure_ascii=False)
    shown = pretty if len(pretty) <= MAX_ARGUMENTS else pretty[:MAX_ARGUMENTS] + "…"
    why = approval.reason or approval.rule or "the default"
    lines = [
        f"ThoughtGate: let {approval.tool} on {approval.server} run?",
        f"Because of: {why}",
        f"Arguments: {shown}",
        f"Approval {approval.id}",
    ]
    return "".join(
        each
        if each.isprintable() or each == "\n"
        else each.encode("unicode_escape").decode("ascii")
        for each in "\n".join(lines)
    )
