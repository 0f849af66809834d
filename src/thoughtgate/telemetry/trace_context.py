"""W3C trace context where MCP carries it: in HTTP headers and in ``params._meta``.

Pure look-ups on values that peers wrote: what is not a trace context is left out, so a
malformed one begins a new trace instead of breaking a request.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = ("traceparent", "tracestate", "baggage")

MAX_FIELD: Final = 8192
"""Longest value taken over; W3C asks for 512 characters of tracestate and 8,192 bytes of baggage."""

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_VALUE: Final = re.compile(r"[\x20-\x7e]*")


def context_in_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the trace context of an HTTP request, whose header names are in lower case."""
    return _context(headers)


def context_in_meta(params: Any) -> dict[str, str]:
    """Return the trace context of a JSON-RPC request's params."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return _context(meta) if isinstance(meta, dict) else {}


def with_meta_context(params: dict[str, Any], carrier: Mapping[str, str]) -> dict[str, Any]:
    """Return params whose ``_meta`` carries a trace context; the params themselves stay."""
    if not carrier:
        return params
    meta = params.get("_meta")
    kept = meta if isinstance(meta, dict) else {}
    return {**params, "_meta": {**kept, **carrier}}


def _context(fields: Mapping[str, Any]) -> dict[str, str]:
    parent = fields.get("traceparent")
    if not isinstance(parent, str) or not _TRACEPARENT.fullmatch(parent):
        return {}
    found = {"traceparent": parent}
    for name in FIELDS[1:]:
        value = fields.get(name)
        if isinstance(value, str) and len(value) <= MAX_FIELD and _VALUE.fullmatch(value):
            found[name] = value
    return found
