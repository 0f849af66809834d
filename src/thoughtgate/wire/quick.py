"""Reading frames quickly where orjson is loaded: everywhere but in a shim that asks a service.

orjson does not see duplicate keys and reads large numbers loosely. So it is trusted only
with a text that it would write in exactly the same bytes: such a text is compact, has no
key twice, and no number or string with a second spelling. Every other text takes the
strict reader's way; the result is the same.
"""

from typing import Final

import orjson

from thoughtgate.wire.frame import MAX_DEPTH, escape_separators, read_frame, read_message
from thoughtgate.wire.message import Fault, Message

MAX_QUICK: Final = 65_536
"""Bytes up to which trying is worth while; longer texts mostly hold what orjson writes otherwise."""


def read_quickly(line: bytes) -> Message | Fault:
    """Read one frame as ``wire.frame.read_frame`` does."""
    if type(line) is not bytes or len(line) > MAX_QUICK:
        return read_frame(line)  # what stands for a longer line is no line itself
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH:
        return read_frame(line)
    try:
        body = orjson.loads(line)
        if orjson.dumps(body) != line:
            return read_frame(line)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return read_frame(line)
    return read_message(body, escape_separators(line))
