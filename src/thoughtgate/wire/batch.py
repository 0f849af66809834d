"""JSON-RPC batches: taking an array apart, and putting the answers together.

Only revision 2025-03-26 and callers without a revision may send them. Each element is
read and judged like a message of its own; the bytes of an element are rendered anew,
since inside an array it has no line of its own.
"""

import json
from typing import Final

from thoughtgate.wire.frame import escape_separators, parse_strict, read_message
from thoughtgate.wire.message import Fault, Message
from thoughtgate.wire.replies import render

MAX_ELEMENTS: Final = 100
"""Messages in one batch; an array is otherwise a way round every limit that counts requests."""

_WHITE: Final = b" \t\r\n"


def is_batch(body: bytes) -> bool:
    """Tell whether a body is an array rather than one message."""
    return body.lstrip(_WHITE)[:1] == b"["


def split_batch(body: bytes, limit: int = MAX_ELEMENTS) -> list[Message | Fault] | Fault:
    """Read the elements of a batch, or say why it is refused as a whole."""
    try:
        elements = parse_strict(body)
    except UnicodeDecodeError:
        return Fault("parse_error", "the message is not UTF-8", "invalid_utf8")
    except (ValueError, RecursionError) as error:
        check = getattr(error, "check", None)
        if check is not None:
            return Fault("invalid_request", str(error), check)
        return Fault("parse_error", "the message is not JSON", "malformed_json")
    if type(elements) is not list or not elements:
        return Fault("invalid_request", "a batch has at least one message", "empty_batch")
    if len(elements) > limit:
        return Fault("invalid_request", f"a batch has at most {limit} messages", "too_large")
    return [read_message(element, escape_separators(_raw(element))) for element in elements]


def join_replies(replies: list[bytes]) -> bytes:
    """Put the answers to a batch into one array."""
    return b"[" + b",".join(replies) + b"]"


def one_line(body: bytes) -> bytes:
    """Return a JSON text without raw line ends, as any line-based peer needs it.

    A text that cannot be read is returned as it is: reading it again says why.
    """
    if b"\n" not in body and b"\r" not in body:
        return body
    try:
        return _raw(parse_strict(body))
    except (ValueError, RecursionError):
        return body


def _raw(value: object) -> bytes:
    if type(value) is dict:
        return render(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
