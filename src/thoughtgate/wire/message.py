"""The results of parsing a frame: a message, or a fault. MCP methods are in ``wire.methods``."""

from typing import Any, Final, NamedTuple, TypeAlias

Json: TypeAlias = Any
"""A JSON value as Python reads it."""

RequestId: TypeAlias = str | int

REQUEST: Final = "request"
RESPONSE: Final = "response"
NOTIFICATION: Final = "notification"


class Message(NamedTuple):
    """One unambiguous JSON-RPC message."""

    shape: str
    """``request``, ``response`` or ``notification``."""
    id: RequestId | None
    """The id of a request or a response; None for a notification, or for an error without id."""
    method: str
    """The method; empty for a response."""
    body: dict[str, Json]
    """The whole object."""
    raw: bytes
    """The bytes to forward, without line end: as received, except for escaped line separators."""


class Fault(NamedTuple):
    """Why a frame was refused."""

    kind: str
    """A kind from the registry in ``errors``: parse_error, invalid_request or invalid_params."""
    reason: str
    """What is wrong, without quoting the frame."""
    check: str
    """The failed check as a stable word: ``duplicate_key``, ``raw_cr``, ``too_large`` ..."""
    id: RequestId | None = None
    """The id for the error response, if it could be read."""
    answerable: bool = True
    """False for a frame without a waiting sender: a response or a notification."""
