"""Changing the id of a response, and nothing else where that is possible.

A reply that only needs another id keeps its bytes: SDKs write the id first or last, where it can
be replaced without parsing the rest. Any other reply is rendered again, which changes no value.
"""

import json
from typing import Any, Final

from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.replies import render

_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


def with_id(reply: Message, ident: RequestId) -> Message:
    """Return a response with another id."""
    body = {**reply.body, "id": ident}
    raw = _exchanged(reply.raw, _literal(reply.id), _literal(ident))
    return reply._replace(id=ident, body=body, raw=raw if raw is not None else render(body))


def with_result(reply: Message, ident: RequestId, result: dict[str, Any]) -> Message:
    """Return a response with another id and another result."""
    body = {**reply.body, "id": ident, "result": result}
    return reply._replace(id=ident, body=body, raw=render(body))


def _literal(ident: RequestId | None) -> bytes:
    return b"%d" % ident if type(ident) is int else _encode(ident).encode()


def _exchanged(raw: bytes, old: bytes, new: bytes) -> bytes | None:
    """Replace the id where it can only be the message's own.

    The reader rejects messages with two ids, so the first member, or the last before the
    closing brace, is the id; the same text inside a string would have escaped quotes.
    """
    head = b'{"jsonrpc":"2.0","id":' + old + b","
    if raw.startswith(head):
        return b'{"jsonrpc":"2.0","id":' + new + raw[len(head) - 1 :]
    tail = b',"id":' + old + b"}"
    if raw.endswith(tail):
        return raw[: -len(tail)] + b',"id":' + new + b"}"
    return None
