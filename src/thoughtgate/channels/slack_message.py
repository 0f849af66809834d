"""Slack messages for approval requests, and parsing of the replies to them.

Tool names and arguments come from agents, so they are escaped, made visible, kept from closing
the code block around them, and truncated to Slack's limits.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from thoughtgate.core.approval import (
    APPROVED,
    DENIED,
    EXPIRED,
    SHOWN_AT_MOST,
    USED,
    WITHDRAWN,
    Approval,
    is_shown_whole,
    shown_lines,
    where_shown,
)
from thoughtgate.errors import visible

MAX_HEADER: Final = 150
MAX_FIELD: Final = 300
"""Slack allows 2,000 characters; nobody reads a longer field than this."""
_FENCE: Final = re.compile("`(?=``)")
"""A backtick that begins three: they would end a code block."""

Block = dict[str, Any]

_OUTCOMES: Final = {
    APPROVED: ":white_check_mark: Approved",
    USED: ":white_check_mark: Approved",
    DENIED: ":no_entry: Denied",
    EXPIRED: ":hourglass: Nobody answered in time",
    WITHDRAWN: ":leftwards_arrow_with_hook: Withdrawn",
}

_YES: Final = frozenset({"approve", "approved", "yes", "ok", "lgtm"})
_NO: Final = frozenset({"deny", "denied", "no", "reject", "rejected", "refuse"})


def request_text(approval: Approval) -> str:
    """Return the one-line text that Slack shows in a notification."""
    # Cut before it is escaped, so that no "&amp;" is cut in half.
    tool, server = _cut(visible(approval.tool), 120), _cut(visible(approval.server), 60)
    return f"Approval {approval.id}: {escape(tool)} on {escape(server)}"


def request_blocks(
    approval: Approval, mention: Sequence[str], approve: str, deny: str
) -> list[Block]:
    """Return the blocks of the message that asks for approval."""
    people = " ".join(f"<@{each}>" for each in mention)
    needs = f", {approval.required} people must agree" if approval.required > 1 else ""
    # Slack shows the time in each reader's own zone.
    until = f"<!date^{int(approval.expires_at)}^{{time_secs}}|in time>"
    how = (
        f"React with :{approve}: to approve or :{deny}: to deny, or reply here with "
        f"*approve* or *deny* and a reason, before {until}{needs}. {people}"
    )
    if not is_shown_whole(approval, "slack"):
        how = (
            f"This call is too long to show here, so it can only be denied here: react with "
            f":{deny}:, or reply *deny* and a reason. Approve it before {until}{needs} "
            f"{where_shown(approval)}. {people}"
        )
    return [*_call_blocks(approval), {"type": "context", "elements": [_mrkdwn(how.strip())]}]


def outcome_blocks(approval: Approval) -> list[Block]:
    """Return the blocks that replace the request once it is settled."""
    return [*_call_blocks(approval), {"type": "section", "text": _mrkdwn(outcome_text(approval))}]


def outcome_text(approval: Approval) -> str:
    """Return the outcome of a request, and who decided it."""
    word = _OUTCOMES.get(approval.status, f":heavy_minus_sign: {approval.status.capitalize()}")
    decider = approval.decider
    if decider is None:
        return f"{word}: {escape(approval.closed_reason)}" if approval.closed_reason else word
    channel, _, name = decider.by.partition(":")
    by = f"<@{name}>" if channel == "slack" and name.isalnum() else escape(decider.by)
    reason = f": {escape(_cut(decider.reason, MAX_FIELD))}" if decider.reason else ""
    return f"{word} by {by}{reason}"


def parse_reply(text: str) -> tuple[bool, str] | None:
    """Parse a reply in the thread as approve or deny plus a reason; None for any other text."""
    word, _, rest = text.strip().partition(" ")
    said = word.strip(".,:;!*_`").lower()
    if said in _YES:
        return True, rest.strip()
    if said in _NO:
        return False, rest.strip()
    return None


def escape(text: str) -> str:
    """Escape text so that Slack shows it literally: no mentions, links or invisible characters."""
    return (
        visible(text, kept="\n\t").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )


def _call_blocks(approval: Approval) -> list[Block]:
    tool, server = visible(approval.tool), visible(approval.server)
    title = f"{_cut(tool, 80)} on {_cut(server, 40)}"[:MAX_HEADER]
    fields = [
        ("Requested by", approval.principal),
        ("Says it is", approval.client),
        ("Reason", approval.reason or approval.rule or "the default"),
        ("Rule", approval.rule),
        ("Approval", approval.id),
    ]
    return [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
        {
            "type": "section",
            "fields": [
                # On one line: the agent chose some of them, and a second line could name a field.
                _mrkdwn(f"*{name}*\n{escape(_cut(visible(value), MAX_FIELD))}")
                for name, value in fields
                if value
            ],
        },
        {"type": "section", "text": _mrkdwn(_call(approval))},
    ]


def _call(approval: Approval) -> str:
    """Return the whole call in a code block, or its beginning and a note."""
    # Behind the end of the code block, the rest would look like our own text.
    shown = escape(_FENCE.sub("` ", "\n".join(shown_lines(approval))))
    if is_shown_whole(approval, "slack"):
        return f"```{shown}```"
    cut = shown[: SHOWN_AT_MOST["slack"]]
    # Do not cut an escape sequence such as "&amp;" in half.
    cut = cut[: cut.rfind("&")] if "&" in cut[-5:] else cut
    return f"```{cut}```\n_Only the beginning is shown. The whole call: `thoughtgate approvals show {approval.id}`_"


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
