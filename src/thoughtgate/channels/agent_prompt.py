"""The agent's own prompt as an approval channel: its text and the identity of the reviewer.

The agent's program shows the prompt to the person who uses it. ``core.elicitation`` handles
the MCP messages.
"""

import json
from typing import Final

from thoughtgate.channels.local_user import login_name
from thoughtgate.core.approval import ELICITATION_CHANNEL, Approval
from thoughtgate.errors import visible

NAME: Final = ELICITATION_CHANNEL

MAX_ARGUMENTS: Final = 1500
"""Maximum characters of arguments in a prompt; clients show prompts in a small box."""


def identity(principal: str = "") -> str:
    """Return the reviewer's identity: the caller's principal, or else the local user."""
    return f"{NAME}:{principal or login_name()}"


def prompt_text(approval: Approval) -> str:
    """Return the prompt's text, with control characters from agents and servers escaped."""
    why = approval.reason or approval.rule or "the default"
    lines = [
        f"ThoughtGate: let {approval.tool} on {approval.server} run?",
        f"Reason: {why}",
        f"Arguments: {_pretty(approval.arguments)}",
        *([f"Extra: {_pretty(approval.extra)}"] if approval.extra else []),
        f"Approval {approval.id}",
    ]
    # Many clients print the prompt to a terminal, where escape sequences could hide part of it.
    return visible("\n".join(lines), kept="\n")


def _pretty(text: str) -> str:
    pretty = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return pretty if len(pretty) <= MAX_ARGUMENTS else pretty[:MAX_ARGUMENTS] + "…"
