"""The demo's play: the config, the Cedar policy, and what the scripted agent does.

Data only. ``cli.demo_run`` performs it.
"""

from typing import Any, Final, NamedTuple

SERVER: Final = "sample"

CONFIG: Final = """\
# The config of `thoughtgate demo`. Each rule is there to be met by one call of the script.
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
REFUSED: Final = "held, refused"
UNANSWERED: Final = "held, no answer"
UNREADABLE: Final = "refused unread"


class Scene(NamedTuple):
    """One thing the agent does, and what must become of it."""

    title: str
    step: dict[str, Any]
    """The step as the scripted agent reads it."""
    expected: str


def _call(tool: str, expected: str, **arguments: Any) -> Scene:
    shown = ", ".join(f"{key}={value}" for key, value in arguments.items())
    params = {"name": tool, "arguments": arguments}
    return Scene(f"{tool}({shown})", {"method": "tools/call", "params": params}, expected)


_TWO_READINGS: Final = (
    '{"jsonrpc":"2.0","id":ID,"method":"tools/call",'
    '"params":{"name":"read_note","name":"delete_note","arguments":{"name":"budget"}}}'
)
"""A reader that keeps the first name sees a harmless call; one that keeps the last deletes."""

SCENES: Final = (
    Scene("tools/list", {"method": "tools/list"}, FILTERED),
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
    _call("delete_note", REFUSED, name="budget"),
    Scene("read_note and delete_note in one frame", {"raw": _TWO_READINGS}, UNREADABLE),
)

ANSWERS: Final = {"draft": (True, "an old draft"), "budget": (False, "we need the budget")}
"""What the demo says to the two held calls, by the note they would delete."""
