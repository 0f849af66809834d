"""The agent's own prompt as an approval channel: its text, and the identity of the reviewer.

The agent's program shows the prompt to the person who uses it. ``core.elicitation`` handles
the MCP messages.
"""

from typing import Final

from thoughtgate.channels.local_user import login_name
from thoughtgate.core.approval import (
    ELICITATION_CHANNEL,
    SHOWN_AT_MOST,
    Approval,
    is_shown_whole,
    shown_lines,
    where_shown,
)
from thoughtgate.errors import visible

NAME: Final = ELICITATION_CHANNEL


def identity(principal: str = "") -> str:
    """Return the reviewer's identity: the caller's principal, or else the local user."""
    return f"{NAME}:{principal or login_name()}"


def prompt_text(approval: Approval) -> str:
    """Return the prompt's text, with invisible characters from agents and servers written out."""
    shown = "\n".join(shown_lines(approval))
    # Nobody may approve what they cannot see, so a long call can only be denied here.
    if not is_shown_whole(approval, NAME):
        shown = (
            f"{shown[: SHOWN_AT_MOST[NAME]]}…\n"
            "The call is too long for this prompt, which can only deny it. "
            f"Approve it {where_shown(approval)}"
        )
    why = visible(approval.reason or approval.rule or "the default")
    return "\n".join(
        ["ThoughtGate: let this call run?", f"Reason: {why}", shown, f"Approval {approval.id}"]
    )
