"""Reading a server's answer: the outcome of a call, and the entries of a list to show.

Also reading the reports of ThoughtGate's own proxy to the shim in front of it about a remote
server. That proxy keeps no record of its own. It marks its reports with a key that it shares with
the shim, because the remote server could send messages of the same form.
"""

from operator import is_
from typing import Any, Final

from thoughtgate.core.record_events import (
    CANCELLED,
    ERROR,
    OK,
    SERVER_RECOVERED,
    SERVER_UNREACHABLE,
    TIMEOUT,
    Record,
)
from thoughtgate.core.task import TASK_REVISION, advertise_in_handshake, advertise_tool
from thoughtgate.errors import CAUSES, KINDS
from thoughtgate.wire.message import Message
from thoughtgate.wire.methods import LISTINGS
from thoughtgate.wire.replies import render

UPSTREAM_ERROR: Final = "upstream_error"
"""The class, in the record, of errors that the server answered with."""
INSTRUCTIONS: Final = "instructions"
"""The member with a server's instructions to the model; also the name of their definition."""
MAX_ID: Final = 64
"""Maximum length of a server's id."""
RELAY_KEY: Final = "THOUGHTGATE_RELAY_KEY"
"""The variable with which a shim gives the key to the proxy behind it."""
RELAY: Final = "relay"
"""The member of an error's data, and of a report, that holds the key."""
REPORT: Final = "notifications/thoughtgate/server"
"""The notification with which the proxy reports a change of the remote server's state."""

_RELAYED_EVENTS: Final = frozenset({SERVER_UNREACHABLE, SERVER_RECOVERED})
_FACTS: Final = ("cause", "status", "retry_after", "reason")


def outcome_of(body: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return the status of a call and, for an error, what the record stores about it.

    The server's own message may quote arguments or secrets, so only its code is stored.
    """
    error = body.get("error")
    if error is None:
        return (ERROR if says_error(body) else OK), None
    kept: dict[str, Any] = {
        "class": UPSTREAM_ERROR,
        "message": "the server answered with an error",
    }
    code = error.get("code") if type(error) is dict else None
    if type(code) is int:
        kept["code"] = code
    return ERROR, kept


def says_error(body: dict[str, Any]) -> bool:
    """Tell whether a tool's result says that the tool failed."""
    result = body.get("result")
    return type(result) is dict and result.get("isError") is True


def is_shown(entry: Any, key: str, hidden: frozenset[str]) -> bool:
    """Tell whether an entry is shown; one without a valid name can be neither judged nor called."""
    if type(entry) is not dict:
        return False
    name = entry.get(key)
    return type(name) is str and name not in hidden


def screened(message: Message, method: str, hidden: frozenset[str], revision: Any) -> bytes:
    """Return a server's list or handshake as the agent gets it; the same bytes if nothing changes.

    Where the gate offers to make tasks of held calls, ``revision`` is the one that the agent speaks.
    Otherwise it is None.
    """
    said = message.body["result"]
    listing = LISTINGS.get(method)
    if listing is None:
        shown = advertise_in_handshake(said, method) if revision is not None else said
        if hidden:
            shown = {key: one for key, one in shown.items() if key != INSTRUCTIONS}
        return message.raw if shown is said else render({**message.body, "result": shown})
    entries = said[listing.member]
    kept = [entry for entry in entries if is_shown(entry, listing.key, hidden)]
    is_filtered = len(kept) != len(entries)
    if revision == TASK_REVISION and method == "tools/list":
        kept = [advertise_tool(entry) for entry in kept]
    if not is_filtered and all(map(is_, kept, entries)):
        return message.raw
    result = {**said, listing.member: kept}
    if is_filtered and "cacheScope" in result:
        # MCP 2026-07-28, caching: a result that was filtered for one caller must not be shared.
        result["cacheScope"] = "private"
    return render({**message.body, "result": result})


def introduction(said: Any) -> dict[str, Any]:
    """Return a server's instructions to the model as an entry of a list.

    The server's name and version are no part of it: they change with every release and instruct
    nobody.
    """
    told = {INSTRUCTIONS: said} if type(said) is str and said else {}
    return {"name": INSTRUCTIONS, **told}


def login_instructions(server: str) -> str:
    """Return the instructions that the gate gives if the server itself needs a login first."""
    return f"There are no tools yet: the server needs a login; run: thoughtgate login {server}"


def is_stand_in(entry: dict[str, Any]) -> bool:
    """Tell whether an introduction is the gate's own, given in place of a server's.

    Only the server's name varies in its text, so a server that copies it can add nothing.
    """
    said, _, server = str(entry.get(INSTRUCTIONS, "")).rpartition(" ")
    is_name = 0 < len(server) <= MAX_ID and server.replace("-", "").replace("_", "").isalnum()
    return is_name and server.isascii() and f"{said} {server}" == login_instructions(server)


def has_failed(status: str, *, is_error: bool) -> bool | None:
    """Tell whether a call that reached a server failed; None if its caller cancelled it."""
    if status == CANCELLED:
        return None
    return is_error or status in {ERROR, TIMEOUT}


def relayed_failure(body: dict[str, Any], key: str) -> tuple[str, str, dict[str, Any]] | None:
    """Return the kind, the text and the facts of a failure that our proxy reports; else None."""
    error = body.get("error")
    data = error.get("data") if type(error) is dict else None
    if type(data) is not dict or not _has_key(data, key):
        return None
    kind, cause = data.get("kind"), data.get("cause")
    if kind not in KINDS or cause not in CAUSES:
        return None
    return kind, str(data.get("reason", "")), {name: data[name] for name in _FACTS if name in data}


def relay_change(record: Record, key: str) -> bytes | None:
    """Return the report of a change for the shim; None if the shim sees it by itself."""
    if record.type not in _RELAYED_EVENTS:
        return None
    params = {RELAY: key, "type": record.type, "server": record.body["server"]}
    return render({"jsonrpc": "2.0", "method": REPORT, "params": params})


def relayed_change(body: dict[str, Any], key: str) -> tuple[str, dict[str, Any]] | None:
    """Return the event and the facts of a report of our proxy; None if it is not one."""
    params = body.get("params")
    if type(params) is not dict or not _has_key(params, key):
        return None
    event, facts = params.get("type"), params.get("server")
    return (event, facts) if event in _RELAYED_EVENTS and type(facts) is dict else None


def _has_key(said: dict[str, Any], key: str) -> bool:
    given = said.get(RELAY)
    if type(given) is not str or not key:
        return False
    from hmac import compare_digest  # it loads hashlib, which no other shim needs

    return compare_digest(given.encode(), key.encode())
