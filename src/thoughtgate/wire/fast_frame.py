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
from thoughtgate.wire.lines import MAX_LINE
from thoughtgate.wire.message import Fault, Message

_HEAD: Final = 512
_SPACED: Final = b'": '
"""Where this stands early in a text, its writer puts spaces between its tokens; orjson does not."""


def read_quickly(line: bytes) -> Message | Fault:
    """Read one frame as ``wire.frame.read_frame`` does."""
    if type(line) is not bytes or len(line) > MAX_LINE or _SPACED in line[:_HEAD]:
        return read_frame(line)  # what stands for a longer line is no line itself
    body = _load(line)
    if body is None:
        return read_frame(line)
    return read_message(body, line if line.isascii() else escape_separators(line))


def _load(line: bytes) -> Any:
    """Return what a text says that can be read in one way only; None leaves it to the strict reader."""
    try:
        value = orjson.loads(line)
        if orjson.dumps(value) != line:
            return None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    # What nests deeper than it may has as many brackets that open, and that close.
    may_be_deep = len(line) > 2 * MAX_DEPTH and line.count(b"{") + line.count(b"[") > MAX_DEPTH
    return None if may_be_deep and _is_deep(value) else value


def _is_deep(value: Any) -> bool:
    """Tell whether a value nests deeper than a message may."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            one
            for outer in level
            for one in (outer.values() if type(outer) is dict else outer)
            if type(one) is dict or type(one) is list
        ]
        if not level:
            return False
    return True


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
