"""HTTP headers that repeat parts of a message's body, and the check that both agree.

From revision 2026-07-28 on, a request also has its revision, method and target in headers, so
that intermediaries can route it without reading the body. A request whose headers and body
differ must be refused: the gate judges the body, and a server that trusts the headers would run
something else.
"""

import base64
import binascii
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeGuard

from thoughtgate.wire.message import Json
from thoughtgate.wire.revisions import meta_of, traceparent

VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
PARAM: Final = b"mcp-param-"
SESSION: Final = b"mcp-session-id"
LAST_EVENT: Final = b"last-event-id"
TRACE: Final = b"traceparent"
COMPANIONS: Final = ("tracestate", "baggage")
"""W3C headers that accompany a trace context, as members of ``_meta`` and as headers."""

MAX_COMPANION: Final = 8192
"""Maximum characters of such a header; W3C does not require propagating more."""

NAMED_BY: Final[dict[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The member of params that ``Mcp-Name`` repeats."""

HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that apply to a single connection (RFC 9110, 7.6.1)."""

MAX_SCHEMA_DEPTH: Final = 32
"""Maximum nesting of ``properties`` that is searched for annotated parameters."""

_SENTINEL: Final = re.compile(rb"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=")
_PLAIN: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_INTEGER: Final = re.compile(r"-?[0-9]{1,40}(?:\.0{1,20})?")


class Mismatch(NamedTuple):
    """A header that is missing, malformed, or different from the body."""

    header: str
    reason: str


class ParamHeader(NamedTuple):
    """An argument that a tool's schema requires in a header too."""

    header: bytes
    """The full header name in lower case."""
    path: tuple[str, ...]
    """Keys that lead from the arguments to the value."""


def encode_value(value: str) -> bytes:
    """Return the header form of a string: unchanged if possible, or else base64."""
    # A plain value that looks like an encoded one must be encoded, or it would be decoded.
    if _PLAIN.fullmatch(value) and not _SENTINEL.fullmatch(value.encode()):
        return value.encode("ascii")
    return b"=?base64?%b?=" % base64.b64encode(value.encode("utf-8"))


def decode_value(value: bytes) -> str | None:
    """Decode a header value; None if it is malformed."""
    value = value.strip(b" \t")
    found = _SENTINEL.fullmatch(value)
    try:
        if found is not None:
            return base64.b64decode(found[1], validate=True).decode("utf-8")
        # Malformed base64 is not plain text: readers could disagree about its meaning.
        if value.startswith(b"=?base64?") and value.endswith(b"?="):
            return None
        return value.decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None


def scalar_text(value: Json) -> str | None:
    """Return the text of an argument whose type is allowed in a header; None for others."""
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    return None


def check_method(value: bytes | None, method: str, *, required: bool) -> Mismatch | None:
    """Compare ``Mcp-Method`` with the body."""
    return _check_text("Mcp-Method", value, method, required=required)


def check_name(
    value: bytes | None, method: str, params: Mapping[str, Json], *, required: bool
) -> Mismatch | None:
    """Compare ``Mcp-Name`` with the body.

    Not checked for a method without a target: the revision gives the header no meaning there,
    and ``Mcp-Method``, which must match, tells every reader that there is no target.
    """
    member = NAMED_BY.get(method)
    if member is None:
        return None
    named = params.get(member)
    if type(named) is not str:
        # The method's own check refuses a request that names nothing in either place.
        return Mismatch("Mcp-Name", "has no matching parameter") if value else None
    return _check_text("Mcp-Name", value, named, required=required)


def check_params(
    wanted: Iterable[ParamHeader],
    headers: Mapping[bytes, bytes],
    arguments: Mapping[str, Json],
    *,
    required: bool = True,
) -> Mismatch | None:
    """Compare the ``Mcp-Param`` headers of a call with its arguments.

    A header that the tool's schema does not declare is wrong: the server may read it, and there
    is no argument to compare it with.
    """
    wanted = tuple(wanted)
    undeclared = stray_param(headers, {entry.header for entry in wanted})
    if undeclared:
        return Mismatch(undeclared, "is not declared by the tool")
    for entry in wanted:
        value = argument_at(arguments, entry.path)
        given = headers.get(entry.header)
        if given is not None and type(value) is float and value.is_integer():
            value = int(value)  # 5.0 and 5 are the same number in JSON
        text = scalar_text(value)
        name = entry.header.decode()
        # Null, fractions and objects have no header form, so only a stray header can be wrong.
        if text is None:
            if given is not None:
                return Mismatch(name, "has no matching argument")
            continue
        # A client may write 5 as "5" or "5.0".
        if type(value) is int and given is not None:
            if not _same_integer(given, value):
                return Mismatch(name, "differs from the body")
            continue
        mismatch = _check_text(name, given, text, required=required)
        if mismatch is not None:
            return mismatch
    return None


def stray_param(headers: Iterable[bytes], declared: Container[bytes] = ()) -> str:
    """Return the name of an ``Mcp-Param`` header that is not declared; empty if there is none."""
    found = (one for one in headers if one.startswith(PARAM) and one not in declared)
    return next(found, b"").decode("latin-1")


def argument_at(arguments: Mapping[str, Json], path: tuple[str, ...]) -> Json:
    """Return the argument at a path, or None."""
    value: Any = arguments
    for key in path:
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value


def param_headers_of(schema: Json) -> tuple[ParamHeader, ...] | None:
    """Return the annotated parameters of a tool's input schema; None if they are invalid.

    Only parameters reached through ``properties`` count. The header names must be tokens,
    unique regardless of case, and the parameters strings, integers or booleans (2026-07-28,
    custom headers).
    """
    found: list[ParamHeader] = []
    names: set[bytes] = set()
    for path, entry in _properties(schema, (), 0):
        name = entry.get("x-mcp-header")
        if name is None:
            continue
        if type(name) is not str or not _TOKEN.fullmatch(name):
            return None
        header = PARAM + name.lower().encode()
        if header in names or entry.get("type") not in {"string", "integer", "boolean"}:
            return None
        names.add(header)
        found.append(ParamHeader(header, path))
    return tuple(found)


def mirrored(
    method: str, params: Mapping[str, Json], version: str, wanted: Iterable[ParamHeader] = ()
) -> list[tuple[bytes, bytes]]:
    """Return the headers that a request must have."""
    headers = [(VERSION, version.encode()), (METHOD, encode_value(method))]
    named = params.get(NAMED_BY.get(method, ""))
    if type(named) is str:
        headers.append((NAME, encode_value(named)))
    arguments = params.get("arguments")
    if type(arguments) is dict:
        for entry in wanted:
            text = scalar_text(argument_at(arguments, entry.path))
            if text is not None:
                headers.append((entry.header, encode_value(text)))
    return headers


def trace_headers(params: Json) -> list[tuple[bytes, bytes]]:
    """Return the header for the W3C trace context in a request's ``_meta``, if any."""
    trace = traceparent(params)
    return [(TRACE, trace.encode())] if trace else []


def companion_headers(params: Json) -> list[tuple[bytes, bytes]]:
    """Return the headers for the companions of the trace context in a request's ``_meta``."""
    meta = meta_of(params)
    found = [(name, meta.get(name)) for name in COMPANIONS]
    return [(name.encode(), text.encode()) for name, text in found if is_companion(text)]


def is_companion(text: Json) -> TypeGuard[str]:
    """Tell whether a value can be sent as a companion header."""
    return type(text) is str and len(text) <= MAX_COMPANION and _PLAIN.fullmatch(text) is not None


def is_mirrored(name: bytes) -> bool:
    """Tell whether a header (in lower case) repeats the body."""
    return name.startswith(b"mcp-") and (name in {VERSION, METHOD, NAME} or name.startswith(PARAM))


def _properties(
    schema: Json, path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], dict[str, Json]]]:
    properties = schema.get("properties") if type(schema) is dict else None
    if type(properties) is not dict or depth > MAX_SCHEMA_DEPTH:
        return
    for key, entry in properties.items():
        if type(entry) is dict:
            yield (*path, key), entry
            yield from _properties(entry, (*path, key), depth + 1)


def _check_text(
    header: str, value: bytes | None, expected: str, *, required: bool
) -> Mismatch | None:
    if value is None:
        return Mismatch(header, "is missing") if required else None
    decoded = decode_value(value)
    if decoded is None:
        return Mismatch(header, "cannot be decoded")
    return None if decoded == expected else Mismatch(header, "differs from the body")


def _same_integer(given: bytes, value: int) -> bool:
    text = decode_value(given)
    if text is None or not _INTEGER.fullmatch(text):
        return False
    return int(text.partition(".")[0]) == value
