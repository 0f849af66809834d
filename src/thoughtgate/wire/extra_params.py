"""What ``params`` carry beyond the call itself: answers to a server, ``_meta``, unknown members.

The server gets them too, so they belong to the call: approvals are bound to them, reviewers see
them and the record shows them. Bookkeeping members are the exception, because an honest client
changes them when it repeats a call. ``BOOKKEEPING`` lists them with the values that they need; any
other value could carry something else, and counts as part of the call.

Every shim loads this module, so it stays small.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import COMPLETE, GATED, INPUT_REQUIRED, LISTEN, SERVER_REQUESTS
from thoughtgate.wire.revisions import CAPABILITIES_KEY, CLIENT_KEY, META, VERSION_KEY

ROUND_TRIP: Final = frozenset({"requestState", "inputResponses"})
"""MCP 2026-07-28, multi round-trip requests: what a repeated call adds to answer the server."""

TASK: Final = "task"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"

MAX_OBJECT: Final = 4096
"""Maximum characters of keys and strings in a bookkeeping object; agents' capabilities take
about 500."""
MAX_PARTS: Final = 256
"""Maximum number of keys and values in a bookkeeping object."""
MAX_NUMBER: Final = 2**53 - 1
"""Larger integers are not exact everywhere, and no bookkeeping needs them."""


class Bookkeeping(NamedTuple):
    """A member of ``_meta`` that may differ when a call is repeated."""

    key: str
    sender: str
    """Who defines it."""
    allows: str
    """The values that are bookkeeping, in words."""
    accepts: Callable[[Any], Any]
    """Whether a value is one of them."""


def _text(expression: str) -> Callable[[Any], Any]:
    matches = re.compile(expression).fullmatch
    return lambda value: type(value) is str and matches(value)


def _is_number(value: Any) -> bool:
    return type(value) is int and -MAX_NUMBER <= value <= MAX_NUMBER


class _SmallObjects:
    """Accepts objects with a few short texts of printable ASCII.

    It remembers the last one, because a client sends the same object with every request.
    """

    def __init__(self) -> None:
        self._accepted: dict[str, Any] = {}

    def __call__(self, value: Any) -> bool:
        """Tell whether a value is such an object."""
        if type(value) is not dict:
            return False
        if value != self._accepted:
            if not _is_small(value):
                return False
            self._accepted = value
        return True


def _is_small(value: dict[str, Any]) -> bool:
    left: list[Any] = [value]
    parts = size = 0
    while left:
        one = left.pop()
        kind = type(one)
        parts += 1
        if kind is dict:
            left += one.keys()
            left += one.values()
        elif kind is list:
            left += one
        elif kind is str:
            size += len(one)
            if not (one.isascii() and one.isprintable()):
                return False
        elif kind is int and not _is_number(one):
            return False
        if size > MAX_OBJECT or parts + len(left) > MAX_PARTS:
            return False
    return True


_token = _text("[!-~]{1,256}")
_call_id = _text("[A-Za-z0-9_.:/+=-]{1,128}")
_CALL_ID: Final = "letters, digits and `_.:/+=-`, at most 128"
_OBJECT: Final = f"an object with at most {MAX_OBJECT} characters of printable ASCII"
_MCP: Final = "MCP"
_W3C: Final = "W3C trace context"

BOOKKEEPING: Final[dict[str, Bookkeeping]] = {
    one.key: one
    for one in (
        Bookkeeping(
            "progressToken",
            _MCP,
            "an integer of at most 53 bits, or at most 256 printable ASCII characters",
            lambda value: _is_number(value) or _token(value),
        ),
        Bookkeeping(
            VERSION_KEY,
            _MCP,
            "letters, digits, `.` and `-`, at most 32",
            _text("[0-9A-Za-z.-]{1,32}"),
        ),
        Bookkeeping(CAPABILITIES_KEY, _MCP, _OBJECT, _SmallObjects()),
        Bookkeeping(CLIENT_KEY, _MCP, _OBJECT, _SmallObjects()),
        Bookkeeping(LOG_LEVEL_KEY, _MCP, "lower-case letters, at most 16", _text("[a-z]{1,16}")),
        Bookkeeping(
            "traceparent",
            _W3C,
            "hexadecimal digits and `-`, at most 128",
            _text("[0-9a-f-]{1,128}"),
        ),
        Bookkeeping("tracestate", _W3C, "printable ASCII, at most 512", _text("[ -~]{0,512}")),
        Bookkeeping("baggage", _W3C, "printable ASCII, at most 1024", _text("[ -~]{0,1024}")),
        Bookkeeping("claudecode/toolUseId", "Claude Code", _CALL_ID, _call_id),
        Bookkeeping("callId", "Codex", _CALL_ID, _call_id),
        Bookkeeping("vscode.conversationId", "Visual Studio Code", _CALL_ID, _call_id),
        Bookkeeping("vscode.requestId", "Visual Studio Code", _CALL_ID, _call_id),
        Bookkeeping("ai.opencode/sessionID", "OpenCode", _CALL_ID, _call_id),
        Bookkeeping("antigravity.google/conversation_id", "Antigravity", _CALL_ID, _call_id),
    )
}
"""The members of ``_meta`` that are not part of a call, by key."""

_NAMED_BY: Final = {
    method: frozenset({gated.member, "arguments"}) for method, gated in GATED.items()
}
"""Members that the gates judge, and that therefore are the call itself, by method."""

_NONE: Final[frozenset[str]] = frozenset()
_LISTENED: Final = frozenset(
    {
        "resourceSubscriptions",
        "toolsListChanged",
        "promptsListChanged",
        "resourcesListChanged",
    }
)
_REFERRED: Final = frozenset({"type", "name", "uri"})


def extra_params(method: str, params: dict[str, Json]) -> dict[str, Json] | None:
    """Return what the params of a gated request carry beyond the call; None if nothing."""
    if method in SERVER_REQUESTS or method == INPUT_REQUIRED:
        # All params of a server's request are its arguments.
        params = {META: params[META]} if META in params else {}
    named = _NAMED_BY.get(method, _NONE)
    if named.issuperset(params):  # true for almost all calls, and this check is cheap
        return None
    return _extra(method, params, named) or None


def repeated_params(params: dict[str, Json]) -> dict[str, Json]:
    """Return the part of params that stays the same when a client repeats a call with answers."""
    kept = {name: value for name, value in params.items() if name not in ROUND_TRIP}
    meta = kept.pop(META, None)
    rest = _without_bookkeeping(meta) if type(meta) is dict else meta
    return {**kept, META: rest} if rest else kept


def _extra(method: str, params: dict[str, Json], named: frozenset[str]) -> dict[str, Json]:
    extra = {}
    for name, value in params.items():
        if name in named or _is_known(method, name, value):
            continue
        if name == META and type(value) is dict:
            value = _without_bookkeeping(value)  # noqa: PLW2901 - what is left of the same value
            if not value:
                continue
        extra[name] = value
    return extra


def bookkeeping_of(meta: dict[str, Json]) -> dict[str, Json]:
    """Return the part of ``_meta`` that is not part of the call."""
    rest = _without_bookkeeping(meta)
    return {key: value for key, value in meta.items() if key not in rest}


def _without_bookkeeping(meta: dict[str, Json]) -> dict[str, Json]:
    rest = {}
    for key, value in meta.items():
        known = BOOKKEEPING.get(key)
        if known is None or not known.accepts(value):
            rest[key] = value
    return rest


def _is_known(method: str, name: str, value: Json) -> bool:
    """Tell whether a member says only what the gates judge, or how the answer is to be returned."""
    if type(value) is not dict:
        return False
    if name == TASK:
        # The gate itself offers tasks, and does not send the member on when it makes one.
        return all(key == "ttl" and _is_number(one) for key, one in value.items())
    if method == COMPLETE and name == "ref":
        return value.keys() <= _REFERRED
    return (
        method == LISTEN
        and name == "notifications"
        and value.keys() <= _LISTENED
        and all(type(one) is bool for key, one in value.items() if key != "resourceSubscriptions")
    )
