"""Proposes a strict policy based on observed calls, as a commented config to review.

Only calls that were observed are proposed; everything else stays denied. Calls that a cautious
policy would hold, or that were held, are proposed with ``action: approve``. Denied calls are
listed but not proposed.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from thoughtgate.analysis.replay import BLOCK_WORD, HOLD_WORD, THROTTLE_WORD, RecordedCall
from thoughtgate.core.record_events import NOWHERE
from thoughtgate.errors import visible
from thoughtgate.policy.call import APPROVE, DENY, TOOL
from thoughtgate.policy.evaluation import evaluate
from thoughtgate.policy.names import is_masked
from thoughtgate.policy.policy import Policy
from thoughtgate.wire.canonical import canonical_json

MAX_NAMES: Final = 2000
"""Maximum number of proposed names; a server with more probably generates its names."""


_LAST_OF_FOUR_DIGITS: Final = 0xFFFF


class Seen(NamedTuple):
    """How one tool, resource or prompt was used."""

    server: str
    kind: str
    name: str
    calls: int
    held: int
    refused: int
    cautious: bool
    """Whether a cautious policy would require approval."""


def observe(calls: Iterable[RecordedCall], cautious: Policy) -> list[Seen]:
    """Summarise recorded calls per tool, resource or prompt."""
    sums: dict[tuple[str, str, str], list[Any]] = {}
    for recorded in calls:
        call = recorded.call
        if is_masked(call.name):
            continue  # a rule for the masked name would never match the real one
        found = sums.setdefault((call.server, call.kind, call.name), [0, 0, 0, False])
        found[0] += 1
        found[1] += recorded.decision == HOLD_WORD
        found[2] += recorded.decision in {BLOCK_WORD, THROTTLE_WORD}
        found[3] = found[3] or evaluate(call, cautious, recorded.at).action in {APPROVE, DENY}
    return [Seen(*key, *found) for key, found in sorted(sums.items())][:MAX_NAMES]


def propose(seen: Iterable[Seen], since: str) -> str:
    """Return a config that forwards the observed calls and no others."""
    listed = list(seen)
    servers = sorted({one.server for one in listed if one.server not in {"", NOWHERE}})
    lines = [
        "# Proposed from what was observed" + (f" since {since}" if since else "") + ".",
        "# Review every line: this shows what was used, not what should be allowed.",
        "# Try it on the record with: thoughtgate policy replay -c FILE",
        "",
        "schema: 1",
        "profile: production",
        "",
        "# What was never seen is denied.",
        "default: deny",
        "",
        *_servers(servers, listed),
        *_rules(listed),
    ]
    return "\n".join(lines) + "\n"


def _servers(servers: list[str], listed: list[Seen]) -> list[str]:
    if not servers:
        return []
    lines = ["# Tools beyond these are hidden from the agent."]
    lines.append("servers:")
    for server in servers:
        names = sorted({one.name for one in listed if one.server == server and _is_used(one)})
        shown = ", ".join(_quoted(name) for name in names)
        lines.append(f"  {_line(server)}: {{expose: {{allow: [{shown}]}}}}")
    return [*lines, ""]


def _rules(listed: list[Seen]) -> list[str]:
    refused = [one for one in listed if not _is_used(one)]
    lines = ["# The first rule that matches decides."]
    rules = []
    for one in listed:
        if _is_used(one):
            rules.append(f"  # {_told(one)}")
            rules.append(f"  - {_rule(one)}")
    lines += ["rules:", *rules] if rules else ["rules: []"]
    if refused:
        lines += ["", "# Refused whenever it was tried, and therefore not proposed:"]
        lines += [
            f"#   {_line(one.server)}: {one.kind} {_line(one.name)}, {_calls(one)}"
            for one in refused
        ]
    return lines


def _rule(one: Seen) -> str:
    asks = one.held or one.cautious
    action = "approve" if asks else "forward"
    member = one.kind if one.kind in {TOOL, "resource", "prompt"} else TOOL
    server = f"server: {_quoted(one.server)}, " if one.server else ""
    return f"{{{member}: {_quoted(one.name)}, {server}action: {action}}}"


def _told(one: Seen) -> str:
    parts = [_calls(one)]
    if one.held:
        parts.append(f"{one.held} held for a person")
    if one.refused:
        parts.append(f"{one.refused} refused")
    if one.cautious and not one.held:
        parts.append("the name says that it changes things, so a person is asked")
    return ", ".join(parts)


def _calls(one: Seen) -> str:
    return f"{one.calls} call{'s' * (one.calls != 1)}"


def _is_used(one: Seen) -> bool:
    return one.refused < one.calls


def _quoted(name: str) -> str:
    """Return a name as a YAML string and as a pattern that matches only this name."""
    literal = "".join(f"[{char}]" if char in "*?[" else char for char in name)
    return _line(literal).replace("${", "$${")


def _line(name: str) -> str:
    """Return a quoted name on one line, in which every character is visible.

    YAML has line breaks that JSON does not escape, and a person reviews the proposal.
    """
    return "".join(
        char if visible(char) == char else _escape(char) for char in canonical_json(name)
    )


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\U{code:08x}" if code > _LAST_OF_FOUR_DIGITS else f"\\u{code:04x}"
