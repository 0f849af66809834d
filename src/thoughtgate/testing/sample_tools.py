"""The tools, resources and prompt of the sample server.

Plain data and plain functions; the server turns requests into replies. A tool is a function of
its arguments that returns text. Tools that need the server itself (time, the client, a crash)
are implemented there, by name.
"""

import json
import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

Arguments: TypeAlias = dict[str, Any]

MAX_BIG: Final = 64 * 1024 * 1024
"""Maximum bytes that ``big`` returns, so that a wrong argument does not exhaust the memory."""


class ToolFailed(Exception):  # noqa: N818 - a failed tool is a result with isError, not an error
    """The tool ran and did not succeed."""


class Tool(NamedTuple):
    """One tool as the server lists and runs it."""

    description: str
    properties: dict[str, str]
    """JSON types by argument; all arguments are required except those in ``optional``."""
    run: Callable[[Arguments, dict[str, str]], str] | None
    """Returns text for arguments and notes; None if the server itself must act."""
    annotations: dict[str, bool]
    optional: tuple[str, ...] = ()

    def entry(self, name: str) -> dict[str, Any]:
        """Return the tool as ``tools/list`` shows it."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in self.properties.items()},
            "required": [key for key in self.properties if key not in self.optional],
        }
        entry: dict[str, Any] = {
            "name": name,
            "description": self.description,
            "inputSchema": schema,
        }
        if self.annotations:
            entry["annotations"] = self.annotations
        return entry


def first_notes() -> dict[str, str]:
    """Return the notes of a new server."""
    return {
        "welcome": "This note is served by the ThoughtGate sample server.",
        "budget": "The budget for the third quarter is 12,000.",
        "draft": "An old draft that nobody needs any more.",
    }


def _echo(arguments: Arguments, _: dict[str, str]) -> str:
    return str(arguments.get("text", json.dumps(arguments, sort_keys=True)))


def _add(arguments: Arguments, _: dict[str, str]) -> str:
    return str(arguments.get("a", 0) + arguments.get("b", 0))


def _read_note(arguments: Arguments, notes: dict[str, str]) -> str:
    name = str(arguments.get("name"))
    if name not in notes:
        raise ToolFailed(f"there is no note {name!r}")
    return notes[name]


def _write_note(arguments: Arguments, notes: dict[str, str]) -> str:
    notes[str(arguments.get("name"))] = str(arguments.get("text"))
    return "written"


def _delete_note(arguments: Arguments, notes: dict[str, str]) -> str:
    name = str(arguments.get("name"))
    if notes.pop(name, None) is None:
        raise ToolFailed(f"there is no note {name!r}")
    return f"deleted {name}"


def _transfer(arguments: Arguments, _: dict[str, str]) -> str:
    return f"transferred {arguments.get('amount')} to {arguments.get('to', 'somebody')}"


def _fail(_: Arguments, __: dict[str, str]) -> str:
    raise ToolFailed("this tool always fails")


def _big(arguments: Arguments, _: dict[str, str]) -> str:
    return "x" * min(int(arguments.get("bytes", 0)), MAX_BIG)


def _env(_: Arguments, __: dict[str, str]) -> str:
    return json.dumps(dict(os.environ), sort_keys=True)


_READS: Final = {"readOnlyHint": True}
_DESTROYS: Final = {"readOnlyHint": False, "destructiveHint": True}

TOOLS: Final[dict[str, Tool]] = {
    "echo": Tool("Return the text it is given", {"text": "string"}, _echo, _READS),
    "add": Tool("Add two numbers", {"a": "number", "b": "number"}, _add, _READS),
    "read_note": Tool("Read one note", {"name": "string"}, _read_note, _READS),
    "write_note": Tool("Write one note", {"name": "string", "text": "string"}, _write_note, {}),
    "delete_note": Tool("Delete one note for good", {"name": "string"}, _delete_note, _DESTROYS),
    "transfer": Tool(
        "Transfer money", {"amount": "number", "to": "string"}, _transfer, {}, optional=("to",)
    ),
    "slow": Tool("Take a while, telling how far it is", {"seconds": "number"}, None, _READS),
    "fail": Tool("Fail", {}, _fail, {}),
    "big": Tool("Return that many bytes", {"bytes": "integer"}, _big, _READS),
    "env": Tool("Return the server's environment", {}, _env, _READS),
    "sample": Tool("Ask the client's model", {"prompt": "string"}, None, {}),
    "roots": Tool("Ask the client for its roots", {}, None, _READS),
    "elicit": Tool("Ask the client's user", {"question": "string"}, None, {}),
    "grow": Tool("Offer one more tool and say so", {"name": "string"}, None, {}),
}
"""The tools of a server that is started without ``--tools``."""

NEEDS_CLIENT: Final[dict[str, str]] = {
    "sample": "sampling/createMessage",
    "roots": "roots/list",
    "elicit": "elicitation/create",
}
"""Tools that send the client a request before they can answer, with that request's method."""


def plain_tool(name: str) -> Tool:
    """Return a tool of any name that answers with its arguments."""
    return Tool(f"The tool {name}", {"text": "string"}, _echo, {}, optional=("text",))


def question_for(tool: str, arguments: Arguments) -> dict[str, Any]:
    """Return the params of the request that a tool sends to the client."""
    if tool == "sample":
        text = str(arguments.get("prompt", "hello"))
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"messages": [message], "maxTokens": 16}
    if tool == "elicit":
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
        return {"message": str(arguments.get("question", "Yes?")), "requestedSchema": schema}
    return {}


def resources(notes: dict[str, str]) -> list[dict[str, Any]]:
    """Return the notes as ``resources/list`` shows them."""
    return [{"uri": f"note:///{name}", "name": name, "mimeType": "text/plain"} for name in notes]


PROMPTS: Final[list[dict[str, Any]]] = [
    {
        "name": "summarise",
        "description": "Ask for a summary of a note",
        "arguments": [{"name": "note", "required": True}],
    }
]

TEMPLATES: Final[list[dict[str, Any]]] = [{"uriTemplate": "note:///{name}", "name": "a note"}]
