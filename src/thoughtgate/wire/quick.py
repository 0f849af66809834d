"""Reading frames quickly where orjson is loaded: everywhere but in a shim that asks a service.

orjson does not see duplicate keys and reads large numbers loosely. So it is trusted only
with a text that it would write in exactly the same bytes: such a text is compact, has no
key twice, and no number or string with a second spelling. Every other text takes the
strict reader's way; the result is the same.
"""

import json
from typing import Any, Final

import orjson

from thoughtgate.wire.canonical import canonical_json, has_float
from thoughtgate.wire.frame import MAX_DEPTH, escape_separators, read_frame, read_message
from thoughtgate.wire.message import Fault, Message

MAX_QUICK: Final = 65_536
"""Bytes up to which trying is worth while; longer texts mostly hold what orjson writes otherwise."""


def read_quickly(line: bytes) -> Message | Fault:
    """Read one frame as ``wire.frame.read_frame`` does."""
    if type(line) is not bytes or len(line) > MAX_QUICK:
        return read_frame(line)  # what stands for a longer line is no line itself
    # What nests deeper than it may has as many brackets that open, and that close.
    if len(line) > 2 * MAX_DEPTH and line.count(b"{") + line.count(b"[") > MAX_DEPTH:
        return read_frame(line)
    try:
        body = orjson.loads(line)
        if orjson.dumps(body) != line:
            return read_frame(line)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return read_frame(line)
    return read_message(body, line if line.isascii() else escape_separators(line))


def canonical_quickly(value: Any) -> str:
    """Return the one text of a JSON value, as ``wire.canonical.canonical_json`` does.

    Raises:
        NotCanonical: it has none.
    """
    if has_float(value):  # orjson writes NaN as null, and floats otherwise than ECMAScript
        return canonical_json(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        return canonical_json(value)


def load_quickly(data: bytes) -> Any:
    """Parse JSON as ``json.loads`` does.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        value = orjson.loads(data)
        # Integers beyond 64 bits would have become fractions.
        return value if orjson.dumps(value) == data else json.loads(data)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return json.loads(data)


def dump_quickly(value: Any) -> bytes:
    """Render JSON, also what orjson does not: large integers and halves of surrogate pairs."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")
