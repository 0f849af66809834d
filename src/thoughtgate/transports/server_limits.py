"""The limits of an HTTP server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits on what a client may send, and how slowly."""

    max_body: int = 1_048_576
    head_timeout_s: float = 10.0
    """From a request's first byte to the end of its head."""
    body_timeout_s: float = 30.0
    """From the end of the head to the end of the body."""
    keep_alive_s: float = 60.0
    stall_timeout_s: float = 30.0
    """How long a client may leave its response unread."""
