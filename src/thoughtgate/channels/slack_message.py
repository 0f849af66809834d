"""What stands in a Slack message about an approval, and what an answer in its thread says.

Texts come from agents: they are escaped, made visible, kept from closing the code block
that they stand in, and cut to Slack's limits.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from thoughtgate.core.approval import (
    APPROVED,
    DENIED,
    EXPIRED,
    USED,
    WITHDRAWN,
    Approval,
)

MAX_HEADER: Final = 150
MAX_FIELD: Final = 300
"""Slack's limit is 2,000; a field of more than this is not read."""
MAX_ARGUMENTS: Final = 2_800
"""Slack's limit for the text of a section is 3,000, after escaping."""
MAX_TEXT: Final = 300
"""Characters of the text in a notification."""

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


def question_text(approval: Approval) -> str:
    """Return the line that a notification shows."""
    return f"Approval {approval.id}: {_cut(approval.tool, 120)} on {_cut(approval.server, 60)}"[
        :MAX_TEXT
    ]


def question_blocks(
    approval: Approval, mention: Sequence[str], approve: str, deny: str
) -> list[Block]:
    """Return the message that asks."""
    people = " ".join(f"<@{each}>" for each in mention)
    needs = f", {approval.required} people must agree" if approval.required > 1 else ""
    until = f"<!date^{int(approval.expires_at)}^{{time_secs}}|in time>"
    how = (
        f"React with :{approve}: to approve or :{deny}: to deny, or reply here with "
        f"*approve* or *deny* and a reason, before {until}{needs}. {people}"
    )
    return [*_call_blocks(approval), {"type": "context", "elements": [_mrkdwn(how.strip())]}]


def outcome_blocks(approval: Approval) -> list[Block]:
    """Return the message once the question has ended: nothing in it asks any more."""
    return [
        *_call_blocks(approval),
        {"type": "section", "text": _mrkdwn(outcome_text(approval))},
    ]


def outcome_text(approval: Approval) -> str:
    """Return how a question ended."""
    word = _OUTCOMES.get(approval.status, f":heavy_minus_sign: {approval.status.capitalize()}")
    decider = approval.decider
    if decider is None:
        return f"{word}: {escape(approval.closed_reason)}" if approval.closed_reason else word
    channel, _, name = decider.by.partition(":")
    by = f"<@{name}>" if channel == "slack" and name.isalnum() else escape(decider.by)
    reason = f": {escape(_cut(decider.reason, MAX_FIELD))}" if decider.reason else ""
    return f"{word} by {by}{reason}"


def parse_reply(text: str) -> tuple[bool, str] | None:
    """Read a reply in the thread: yes or no, and why; None for other talk."""
    word, _, rest = text.strip().partition(" ")
    said = word.strip(".,:;!*_`").lower()
    if said in _YES:
        return True, rest.strip()
    if said in _NO:
        return False, rest.strip()
    return None


def escape(text: str) -> str:
    """Return text that Slack shows as it is: no mentions, no links, no marks that hide."""
    shown = "".join(
        each
        if each.isprintable() or each in "\n\t"
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _call_blocks(approval: Approval) -> list[Block]:
    title = f"{_cut(approval.tool, 80)} on {_cut(approval.server, 40)}"[:MAX_HEADER]
    fields = [
        ("Asked by", approval.principal),
        ("Because of", approval.reason or approval.rule or "the default"),
        ("Rule", approval.rule),
        ("Approval", approval.id),
    ]
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
        {"type": "section", "text": _mrkdwn(_arguments(approval))},
    ]


def _arguments(approval: Approval) -> str:
    pretty = json.dumps(json.loads(approval.arguments), indent=2, ensure_ascii=False)
    # Three backticks would end the block, and what follows would be read as our words.
    shown = escape(pretty.replace("```", "` ` `"))
    note = "\n_Long values are folded._" if approval.folded else ""
    if len(shown) > MAX_ARGUMENTS:
        cut = shown[:MAX_ARGUMENTS]
        # Not in the middle of an escaped character.
        shown = cut[: cut.rfind("&")] if "&" in cut[-5:] else cut
        note = f"\n_Cut: {len(pretty):,} characters. All of it: `thoughtgate approvals show {approval.id}`_"
    return f"```{shown}```{note}"


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
