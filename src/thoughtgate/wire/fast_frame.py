"""Fast reading of frames with orjson, which is loaded everywhere except in a wrapped shim.

orjson does not detect duplicate keys and parses large numbers inexactly. So its result is used
only if it would write exactly the same bytes again: such a text is compact, has no duplicate
keys, and no number or string with another spelling. All other texts go to the strict reader; the
result is the same.
"""

import json
from typing import Any, Final

import orjson

from thoughtgate.wire.canonical import canonical_json, has_float
from thoughtgate.wire.frame import (
    MAX_DEPTH,
    escape_separators,
    read_frame,
    read_message,
    read_plain,
)
from thoughtgate.wire.lines import MAX_LINE
from thoughtgate.wire.message import Fault, Message

_HEAD: Final = 512
_SPACED: Final = b'": '
"""If this occurs early in a text, it has spaces between tokens, so orjson cannot be used."""


def read_quickly(line: bytes, limit: int = MAX_LINE) -> Message | Fault:
    """Read one frame as ``wire.frame.read_frame`` does."""
    if type(line) is not bytes or len(line) > limit or line.find(_SPACED, 0, _HEAD) >= 0:
        # Also for the placeholder for an oversized line, which is not valid JSON.
        return read_frame(line, limit)
    try:
        body = orjson.loads(line)
        if orjson.dumps(body) != line:
            return read_frame(line, limit)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return read_frame(line, limit)
    # Too deep nesting needs at least that many brackets, and counting them is fast.
    may_be_deep = len(line) > 2 * MAX_DEPTH and line.count(b"{") + line.count(b"[") > MAX_DEPTH
    if may_be_deep and _is_deep(body):
        return read_frame(line, limit)
    raw = line if line.isascii() else escape_separators(line)
    # Nearly every frame is plain, and this saves a call.
    return (read_plain(body, raw) if type(body) is dict else None) or read_message(body, raw)


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
    """Return the canonical text of a JSON value, as ``wire.canonical.canonical_json`` does.

    Raises:
        NotCanonical: the value has no canonical form.
    """
    if has_float(value):  # orjson writes NaN as null, and floats differently from ECMAScript
        return canonical_json(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        return canonical_json(value)


def load_quickly(data: bytes) -> Any:
    """Parse JSON as ``json.loads`` does.

    Raises:
        ValueError: the data is not JSON.
    """
    try:
        value = orjson.loads(data)
        # orjson would turn integers beyond 64 bits into floats.
        return value if orjson.dumps(value) == data else json.loads(data)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return json.loads(data)


def dump_quickly(value: Any) -> bytes:
    """Render JSON, including what orjson rejects: large integers and lone surrogates."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")
