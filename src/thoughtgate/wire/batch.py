"""JSON-RPC batches: splitting an array into messages, and joining the responses.

Only revision 2025-03-26 and callers without a revision may send them. Each element is read and
judged like a separate message; its bytes are rendered again, because it has no line of its own.
"""

import json
from typing import Final

from thoughtgate.wire.frame import escape_separators, parse_strict, read_message
from thoughtgate.wire.message import Fault, Message
from thoughtgate.wire.replies import render

MAX_ELEMENTS: Final = 100
"""Maximum messages per batch; otherwise an array would bypass limits on requests."""

_WHITE: Final = b" \t\r\n"


def is_batch(body: bytes) -> bool:
    """Tell whether a body is an array rather than one message."""
    return body.lstrip(_WHITE)[:1] == b"["


def split_batch(body: bytes, limit: int = MAX_ELEMENTS) -> list[Message | Fault] | Fault:
    """Read the elements of a batch, or return why the whole batch is refused."""
    try:
        elements = parse_strict(body, rounded=True)  # sent on as rounded, too
    except UnicodeDecodeError:
        return Fault("parse_error", "the message is not UTF-8", "invalid_utf8")
    except (ValueError, RecursionError) as error:
        # Set only if parsers could read the text differently; otherwise it is not JSON at all.
        check = getattr(error, "check", None)
        if check is not None:
            return Fault("invalid_request", str(error), check)
        return Fault("parse_error", "the message is not JSON", "malformed_json")
    if type(elements) is not list or not elements:
        return Fault("invalid_request", "a batch has at least one message", "empty_batch")
    if len(elements) > limit:
        return Fault("invalid_request", f"a batch has at most {limit} messages", "too_large")
    return [_read(element) for element in elements]


def _read(element: object) -> Message | Fault:
    message = read_message(element, escape_separators(_raw(element)))
    if isinstance(message, Message) and message.method == "initialize":
        # 2025-03-26: a session cannot begin within a batch.
        reason = "initialize is not part of a batch"
        return Fault("invalid_request", reason, "batched_initialize", message.id)
    return message


def join_replies(replies: list[bytes]) -> bytes:
    """Join the responses to a batch into one array."""
    return b"[" + b",".join(replies) + b"]"


def one_line(body: bytes) -> bytes:
    """Return a JSON text without raw line breaks, as line-based peers require.

    A text that cannot be parsed is returned unchanged; its reader then reports the reason.
    """
    # `in` would take four times as long: for bytes, it raises and clears an exception inside.
    if body.find(b"\n") < 0 and body.find(b"\r") < 0:
        return body
    try:
        return _raw(parse_strict(body, rounded=True))  # sent on as rounded, too
    except (ValueError, RecursionError):
        return body


def _raw(value: object) -> bytes:
    if type(value) is dict:
        return render(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
