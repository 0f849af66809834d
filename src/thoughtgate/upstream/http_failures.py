"""Errors for HTTP responses that are not usable answers: statuses, redirects, times to retry."""

import time
from typing import Final
from urllib.parse import urlsplit

from thoughtgate.errors import MAX_RETRY_AFTER_S, PeerError, upstream_error

NOT_FOUND: Final = 404

_BY_STATUS: Final = {
    401: "status_401",
    403: "status_403",
    407: "status_407",
    429: "rate_limited_by_server",
    503: "unavailable",
}
_REDIRECTS: Final = range(300, 400)
_MAX_ORIGIN: Final = 300
_MAX_DIGITS: Final = 9


def status_error(
    status: int, *, retry_after: bytes = b"", location: bytes = b"", in_session: bool = False
) -> PeerError:
    """Return the error for a response with a status that is not a success.

    A 404 to a request that names a session means that the session has ended.
    """
    if status == NOT_FOUND and in_session:
        return upstream_error("session_lost", status=status)
    if status in _REDIRECTS:
        origin = redirect_origin(location)
        target = f"to {origin}" if origin else "to another path"
        reason = (
            f"the server redirects {target}, and redirects are not followed (HTTP status {status})"
        )
        return upstream_error("redirected", reason, status=status)
    cause = _BY_STATUS.get(status, "status")
    return upstream_error(cause, status=status, retry_after=read_retry_after(retry_after))


def redirect_origin(location: bytes) -> str:
    """Return scheme, host and port of a Location header; empty for a path, or if unreadable.

    The rest is left out of messages, because it may contain credentials or codes.
    """
    try:
        parts = urlsplit(location.decode("ascii").strip())
        port = parts.port
    except ValueError:
        return ""
    host = parts.hostname or ""
    is_plain = all(char.isalnum() or char in "-._:" for char in host)
    if parts.scheme not in {"http", "https"} or not host or not is_plain:
        return ""
    shown = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")
    return origin if len(origin) <= _MAX_ORIGIN else ""


def read_retry_after(value: bytes) -> int:
    """Return the seconds of a Retry-After header, which may be a date; 0 if there is none."""
    value = value.strip()
    if value.isdigit():
        return min(int(value[:_MAX_DIGITS]), MAX_RETRY_AFTER_S)
    if not value:
        return 0
    from email.utils import parsedate_to_datetime  # dates are rare, and the module is large

    try:
        at = parsedate_to_datetime(value[:64].decode("ascii")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0
    return min(max(0, round(at - time.time())), MAX_RETRY_AFTER_S)
