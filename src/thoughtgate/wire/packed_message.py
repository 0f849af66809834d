"""Storing large messages that wait as bytes only; the body is parsed again when it is needed.

A parsed body takes many times the memory of its bytes, and a person may take long to decide.
"""

import json
from typing import Any, Final

from thoughtgate.wire.message import REQUEST, Message

MAX_PARSED: Final = 65_536
"""Messages up to this size keep their parsed body while they wait."""


class PackedBody(dict[str, Any]):
    """Stands for the body of a packed message: the params that differ from those in its bytes.

    ``serve`` renames the target of a request for its server, and keeps the client's bytes.
    """


def pack(message: Message) -> Message:
    """Return a large message without its parsed body; unchanged if its bytes differ too much."""
    if len(message.raw) <= MAX_PARSED:
        return message
    said = _parse(message)
    if message.shape != REQUEST:
        return message._replace(body=PackedBody()) if message.body == said else message
    params, own = message.body.get("params"), said.get("params")
    if type(params) is not dict or type(own) is not dict or params.keys() != own.keys():
        return message
    changed = {name: value for name, value in params.items() if own[name] != value}
    if len(json.dumps(changed)) > MAX_PARSED or {**message.body, "params": own} != said:
        return message
    return message._replace(body=PackedBody(changed))


def unpack(message: Message) -> Message:
    """Return a message with its parsed body."""
    changed = message.body
    if type(changed) is not PackedBody:
        return message
    said = _parse(message)
    if changed:
        said["params"].update(changed)
    return message._replace(body=said)


def _parse(message: Message) -> dict[str, Any]:
    # The frame was checked when it arrived; its bytes have not changed since.
    said: dict[str, Any] = json.loads(message.raw)
    return said
