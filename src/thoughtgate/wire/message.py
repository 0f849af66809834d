"""The shapes a frame can have once it was read: a message, or a fault.

Nothing here knows MCP methods; ``wire.methods`` does.
"""

from typing import Any, Final, NamedTuple, TypeAlias

Json: TypeAlias = Any
"""A JSON value as Python reads it."""

RequestId: TypeAlias = str | int

REQUEST: Final = "request"
RESPONSE: Final = "response"
NOTIFICATION: Final = "notification"


class Message(NamedTuple):
    """One JSON-RPC message with exactly one reading."""

    shape: str
    """``request``, ``response`` or ``notification``."""
    id: RequestId | None
    """The id of a request or a response; None for a notification, or for an error without id."""
    method: str
    """The method; empty for a response."""
    body: dict[str, Json]
    """The whole object."""
    raw: bytes
    """The bytes to send on, without line end: as received, but for escaped line separators."""


class Fault(NamedTuple):
    """Why a frame was refused."""

    kind: str
    """A kind from the registry in ``errors``: parse_error, invalid_request or invalid_params."""
    reason: str
    """What is wrong, in words that quote nothing of the frame."""
    check: str
    """The check that failed, one stable word: ``duplicate_key``, ``raw_cr``, ``too_large`` ..."""
    id: RequestId | None = None
    """The id to answer to, when it could be read."""
    answerable: bool = True
    """False for a frame that nobody waits for: a response, or a notification."""
