"""Reads a server's answer: the outcome of a call, and the entries of a list to show."""

from typing import Any

from thoughtgate.core.record_events import CANCELLED, ERROR, OK, TIMEOUT
from thoughtgate.wire.message import Message
from thoughtgate.wire.methods import Listing
from thoughtgate.wire.replies import render


def outcome_of(body: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return the status of a call and, for an error, what the record stores about it.

    The server's own message may quote arguments or secrets, so only its code is stored.
    """
    error = body.get("error")
    if error is None:
        return (ERROR if says_error(body) else OK), None
    kept: dict[str, Any] = {
        "class": "upstream_error",
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


def without_hidden(message: Message, listing: Listing, hidden: frozenset[str]) -> bytes:
    """Return a server's list without its hidden entries; the same bytes if none is hidden."""
    entries = message.body["result"][listing.member]
    kept = [entry for entry in entries if is_shown(entry, listing.key, hidden)]
    if len(kept) == len(entries):
        return message.raw
    result = {**message.body["result"], listing.member: kept}
    if "cacheScope" in result:
        # MCP 2026-07-28, caching: a result that was filtered for one caller must not be shared.
        result["cacheScope"] = "private"
    return render({**message.body, "result": result})


def has_failed(status: str, *, is_error: bool) -> bool | None:
    """Tell whether a call that reached a server failed; None if its caller cancelled it."""
    if status == CANCELLED:
        return None
    return is_error or status in {ERROR, TIMEOUT}
