"""The terminal as an approval channel: rendering of requests and parsing of answers.

This module only handles text; ``gate.approvals.terminal_prompt`` reads keys and owns the
terminal. Names and arguments come from agents and servers, so everything that could move the
cursor, change colours or reverse text is escaped.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from thoughtgate.channels.local_user import login_name
from thoughtgate.core.approval import Approval, extra_json
from thoughtgate.core.grant import EXACT, SESSION, TOOL, Grant, Remember
from thoughtgate.errors import visible
from thoughtgate.wire.json_text import lay_out_part, pretty_json

NAME: Final = "terminal"

CHOICES: Final = """
  y  approve this call
  n  deny it; a reason may follow: n not today
  s  approve, and the same call again until the session ends
  t  approve, and any call of this tool until the session ends
  w  show the whole call
  l  decide later
Type a letter and press Enter: """

MAX_LINES: Final = 40
"""Maximum lines of arguments in a prompt; the answer ``w`` and ``approvals show`` print all."""
MAX_CELL: Final = 60
"""Maximum characters of arguments in a table."""


class Answer(NamedTuple):
    """What a person typed at an approval prompt."""

    approve: bool
    reason: str = ""
    remember: Remember | None = None


_ANSWERS: Final = {
    "yes": Answer(approve=True),
    "no": Answer(approve=False),
    "session": Answer(approve=True, remember=Remember(SESSION, EXACT)),
    "tool": Answer(approve=True, remember=Remember(SESSION, TOOL)),
}
"""The answers by their words; the first letter of a word is enough."""


def identity() -> str:
    """Return the identity of the terminal's user: the login that this process runs as."""
    return f"{NAME}:{login_name()}"


def parse_answer(line: str) -> Answer | None:
    """Parse a line typed at an approval prompt; None when it is not an answer."""
    word, _, rest = line.strip().partition(" ")
    for name, answer in _ANSWERS.items():
        if word.lower() in {name, name[0]}:
            return answer._replace(reason=rest.strip())
    return None


def render_question(approval: Approval, now: float, *, whole: bool = False) -> str:
    """Return an approval request as a block of lines."""
    session = f", session {approval.session}" if approval.session else ""
    facts = [
        (approval.kind, f"{approval.tool} on {approval.server}"),
        ("status", approval.status),
        ("asked by", approval.principal + session),
        ("says it is", approval.client),
        ("workflow", approval.workflow + (f" ({approval.rule})" if approval.rule else "")),
        ("why", approval.reason),
        ("time left", render_left(approval, now)),
        ("needs", _needs(approval)),
        ("decided", _decided(approval)),
    ]
    lines = [f"Approval {approval.id}"]
    lines += [f"  {name:<10} {visible(value)}" for name, value in facts if value]
    lines += ["  arguments", *_argument_lines(approval, whole=whole)]
    extra = extra_json(approval)
    if extra:
        lines += ["  other parameters", *(f"    {line}" for line in pretty_json(extra).split("\n"))]
    lines += [f"  digest     {approval.digest}"] if approval.digest else []
    return "\n".join(lines) + "\n"


def render_whole(parts: Iterable[str]) -> Iterable[str]:
    """Return the whole arguments, stored in parts, as text to print."""
    yield "  arguments, complete\n"
    for part in parts:
        yield lay_out_part(part)
    yield "\n"


def approval_rows(approvals: list[Approval], now: float) -> list[dict[str, str]]:
    """Return approvals as rows of a table, by column."""
    return [
        {
            "id": each.id,
            "status": each.status,
            "server": each.server,
            "tool": each.tool,
            "left": render_left(each, now),
            "arguments": _cut(visible(each.arguments)),
        }
        for each in approvals
    ]


def grant_rows(grants: list[Grant], now: float) -> list[dict[str, str]]:
    """Return grants as rows of a table, by column."""
    return [
        {
            "id": each.id,
            "server": each.server,
            "tool": each.tool,
            "allows": "any arguments" if each.scope == TOOL else "the same arguments",
            "until": _until(each, now),
            "by": each.by,
            "uses": str(each.uses),
        }
        for each in grants
    ]


def render_left(approval: Approval, now: float) -> str:
    """Return the time left to answer, such as ``4:05``."""
    if approval.status != "pending":
        return ""
    return render_countdown(approval.expires_at - now)


def render_countdown(seconds: float) -> str:
    """Return a countdown such as ``4:05``."""
    hours, rest = divmod(max(0, round(seconds)), 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _argument_lines(approval: Approval, *, whole: bool) -> list[str]:
    lines = [f"    {line}" for line in pretty_json(approval.arguments).split("\n")]
    where = f"thoughtgate approvals show {approval.id}"
    more = [f"    (long values are shortened; all of it: {where})"] if approval.folded else []
    if whole or len(lines) <= MAX_LINES:
        return [*lines, *more]
    hidden = len(lines) - MAX_LINES
    return [*lines[:MAX_LINES], f"    ... {hidden} more lines: {where}"]


def _needs(approval: Approval) -> str:
    people = f"{approval.required} people" if approval.required > 1 else ""
    listed = f"one of {', '.join(approval.approvers)}" if approval.approvers else ""
    so_far = f"{len(approval.votes)} so far" if people and approval.votes else ""
    return "; ".join(part for part in (people, listed, so_far) if part)


def _decided(approval: Approval) -> str:
    decider = approval.decider
    if decider is None:
        return approval.closed_reason
    return f"by {decider.by}" + (f": {decider.reason}" if decider.reason else "")


def _until(grant: Grant, now: float) -> str:
    if grant.lifetime == SESSION:
        return f"session {grant.session.rpartition('/')[2]} ends"
    if grant.lifetime == "once":
        return "used once"
    minutes = max(0, round((grant.expires_at - now) / 60))
    hours, rest = divmod(minutes, 60)
    return f"{hours}h{rest:02d}m more" if hours else f"{rest}m more"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"
