"""The demo's script: the config, the Cedar policy, and the messages that the agent sends.

This module holds only data; ``cli.demonstration.demo_run`` runs it.
"""

from typing import Any, Final, NamedTuple

SERVER: Final = "sample"

CONFIG: Final = """\
# The config of `thoughtgate demo`. For each rule, the demo makes at least one call.
schema: 1
profile: production
default: deny

servers:
  "*":
    expose: {block: [env]}

rules:
  - {id: reading, tool: [echo, add, read_note], action: forward}
  - {id: large-transfers, tool: transfer, when: {amount: {gt: 100}}, action: deny,
     reason: transfers over 100 are not for agents}
  - {id: small-transfers, tool: transfer, action: forward}
  - {id: deletions, tool: "delete_*", action: approve, approval: owner,
     reason: deleting needs a person}
  - {id: writing, tool: write_note, action: policy}

cedar: {policies: [demo.cedar]}

limits:
  - {id: echoes, tool: echo, rate: 2/m}

approval:
  owner: {channel: console, timeout: 20s, on_timeout: deny}
"""

CEDAR: Final = """\
@id("drafts-only")
permit (principal, action == Action::"call_tool", resource == Tool::"sample/write_note")
when { context.arguments.name like "draft*" };
"""

FORWARDED: Final = "forwarded"
FILTERED: Final = "filtered"
HIDDEN: Final = "hidden"
DENIED: Final = "denied"
LIMITED: Final = "limited"
APPROVED: Final = "held, approved"
DENIED_BY_PERSON: Final = "held, denied"
UNANSWERED: Final = "held, no answer"
REJECTED: Final = "rejected"


class Step(NamedTuple):
    """One message that the agent sends, and the expected outcome."""

    title: str
    message: dict[str, Any]
    """The message in the format that the scripted agent reads."""
    expected: str


def _call(tool: str, expected: str, **arguments: Any) -> Step:
    shown = ", ".join(f"{key}={value}" for key, value in arguments.items())
    params = {"name": tool, "arguments": arguments}
    return Step(f"{tool}({shown})", {"method": "tools/call", "params": params}, expected)


_AMBIGUOUS: Final = (
    '{"jsonrpc":"2.0","id":ID,"method":"tools/call",'
    '"params":{"name":"read_note","name":"delete_note","arguments":{"name":"budget"}}}'
)
"""A parser that keeps the first name sees a harmless call; one that keeps the last sees a deletion."""

STEPS: Final = (
    Step("tools/list", {"method": "tools/list"}, FILTERED),
    _call("read_note", FORWARDED, name="welcome"),
    _call("add", FORWARDED, a=2, b=3),
    _call("env", HIDDEN),
    _call("transfer", FORWARDED, amount=50),
    _call("transfer", DENIED, amount=5000),
    _call("write_note", FORWARDED, name="draft-2", text="a new draft"),
    _call("write_note", DENIED, name="welcome", text="overwritten"),
    _call("echo", FORWARDED, text="one"),
    _call("echo", FORWARDED, text="two"),
    _call("echo", LIMITED, text="three"),
    _call("delete_note", APPROVED, name="draft"),
    _call("delete_note", DENIED_BY_PERSON, name="budget"),
    Step("read_note and delete_note in one frame", {"raw": _AMBIGUOUS}, REJECTED),
)

DECISIONS: Final = {"draft": (True, "an old draft"), "budget": (False, "we need the budget")}
"""The decisions about the two held calls, by the note that they would delete."""
