"""Slack messages for approval requests, and parsing of the replies to them.

Tool names and arguments come from agents, so they are escaped, made visible, kept from closing
the code block around them, and truncated to Slack's limits.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from thoughtgate.core.approval import APPROVED, DENIED, EXPIRED, USED, WITHDRAWN, Approval
from thoughtgate.errors import visible

MAX_HEADER: Final = 150
MAX_FIELD: Final = 300
"""Slack allows 2,000 characters; nobody reads a longer field than this."""
MAX_ARGUMENTS: Final = 2_800
"""Slack allows 3,000 characters in a section, after escaping."""
MAX_TEXT: Final = 300
"""Maximum characters of the notification text."""

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
    text = f"Approval {approval.id}: {_cut(approval.tool, 120)} on {_cut(approval.server, 60)}"
    return text[:MAX_TEXT]


def request_blocks(
    approval: Approval, mention: Sequence[str], approve: str, deny: str
) -> list[Block]:
    """Return the blocks of the message that asks for approval."""
    people = " ".join(f"<@{each}>" for each in mention)
    needs = f", {approval.required} people must agree" if approval.required > 1 else ""
    until = f"<!date^{int(approval.expires_at)}^{{time_secs}}|in time>"
    how = (
        f"React with :{approve}: to approve or :{deny}: to deny, or reply here with "
        f"*approve* or *deny* and a reason, before {until}{needs}. {people}"
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
    title = f"{_cut(approval.tool, 80)} on {_cut(approval.server, 40)}"[:MAX_HEADER]
    fields = [
        ("Requested by", approval.principal),
        ("Reason", approval.reason or approval.rule or "the default"),
        ("Rule", approval.rule),
        ("Approval", approval.id),
    ]
    shown = [_code(approval, approval.arguments)]
    if approval.extra:
        shown.append(f"*Extra*\n{_code(approval, approval.extra)}")
    return [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
        {
            "type": "section",
            "fields": [
                _mrkdwn(f"*{name}*\n{escape(_cut(value, MAX_FIELD))}")
                for name, value in fields
                if value
            ],
        },
        *({"type": "section", "text": _mrkdwn(text)} for text in shown),
    ]


def _code(approval: Approval, text: str) -> str:
    pretty = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    # Three backticks would end the code block, and the rest would look like our own text.
    shown = escape(pretty.replace("```", "` ` `"))
    note = "\n_Long values are shortened._" if approval.folded else ""
    if len(shown) > MAX_ARGUMENTS:
        cut = shown[:MAX_ARGUMENTS]
        # Do not cut an escape sequence such as "&amp;" in half.
        shown = cut[: cut.rfind("&")] if "&" in cut[-5:] else cut
        note = f"\n_Truncated from {len(pretty):,} characters. To see all: `thoughtgate approvals show {approval.id}`_"
    return f"```{shown}```{note}"


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
