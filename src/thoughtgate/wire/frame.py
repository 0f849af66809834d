"""Strict parsing of one frame to an unambiguous message, or to a fault.

The gate must judge what the server will read. JSON parsers differ on duplicate keys, keys that
differ only by case, lone surrogates, NaN, and which characters end a line; a frame on which they
could differ is refused. All other frames are forwarded byte for byte, except that the three line
separators on which some parsers split are escaped, which does not change the meaning.
"""

import json
import re
from collections.abc import Callable
from itertools import accumulate
from json.scanner import make_scanner
from typing import Any, Final, NoReturn, TypeAlias

from thoughtgate.wire.lines import HEAD, MAX_LINE, TAIL, Oversized
from thoughtgate.wire.message import NOTIFICATION, REQUEST, RESPONSE, Fault, Message, RequestId
from thoughtgate.wire.unchecked import unchecked

MAX_DEPTH: Final = 128
"""Maximum nesting, which every parser supports; deeper text is an attack on recursive parsers."""

MAX_ID: Final = 256
"""Maximum length of a string id; ids are kept while a request is open and repeated in errors."""

MAX_NUMBER_ID: Final = 2**53 - 1
"""The largest integer that is exact everywhere. Beyond it, JavaScript cannot distinguish two ids,
and could take the response to one request for the response to the other."""

MAX_METHOD: Final = 256
"""Maximum length of a method name; the longest known ones have about forty characters."""

INEXACT: Final = "inexact_number"
"""The check for numbers that decimal readers and those with doubles read differently."""

_SURE_LENGTH: Final = 16
"""A number of up to 15 digits and a point, without exponent, is the same in all readers: a double
keeps 15 significant decimal digits."""

_TOKENS: Final = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[{}\[\]]'
"""A string, possibly unterminated at the end (possessive, so that it never backtracks),
or a bracket outside of strings; compiled when it is first used, since few frames need it."""
_LAST_ID: Final = re.compile(
    rb'[,{][ \t\r]*"id"[ \t\r]*:[ \t\r]*(-?[0-9]{1,20}|"(?:[^"\\]|\\.){0,256}")[ \t\r]*\}[ \t\r]*\Z'
)
"""An ``id`` that is the last member of the object that ends the text."""
_ROUND: Final = bytes.maketrans(b"{[}]", b"(())")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"{[}]"))
_STEPS: Final = bytes.maketrans(b"()", b"\x01\xff")
"""Turns a bracket into what it adds to the depth, as a signed byte."""
_DEPTH_CHUNK: Final = 65_536
"""Bytes whose brackets are counted at once; bounds the memory that counting takes."""
_FLAT_PASSES: Final = 4
"""Innermost levels of brackets that are removed before counting; few messages have more of them
between two strings."""
_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
UNREAD: Final = frozenset(
    {
        "too_large",
        "raw_cr",
        "invalid_utf8",
        "malformed_json",
        "duplicate_key",
        "not_a_number",
        "lone_surrogate",
        "too_deep",
    }
)
"""Checks that fail before it is known whether the frame is a request or a response."""
_SEPARATORS: Final = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)
_JUDGED: Final = {
    "": frozenset(
        {
            "_meta",
            "argument",
            "arguments",
            "capabilities",
            "clientInfo",
            "context",
            "cursor",
            "inputResponses",
            "name",
            "notifications",
            "progressToken",
            "protocolVersion",
            "ref",
            "requestId",
            "requestState",
            "task",
            "taskId",
            "uri",
        }
    ),
    "_meta": frozenset(
        {
            "io.modelcontextprotocol/clientCapabilities",
            "io.modelcontextprotocol/clientInfo",
            "io.modelcontextprotocol/logLevel",
            "io.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/related-task",
            "io.modelcontextprotocol/subscriptionId",
            "progressToken",
            "traceparent",
        }
    ),
    "notifications": frozenset(
        {
            "promptsListChanged",
            "resourceSubscriptions",
            "resourcesListChanged",
            "taskIds",
            "toolsListChanged",
        }
    ),
    "ref": frozenset({"name", "type", "uri"}),
    "task": frozenset({"pollInterval", "taskId", "ttl"}),
}
"""Members that a verdict or the protocol depends on: those of params, and those of nested objects
by name. In both eras: from 2026-07-28 on, ``_meta`` says what ``initialize`` said before."""
_REQUEST_MEMBERS: Final = 4
"""The version, the id, the method and its params."""
_RESULT_MEMBERS: Final = 3
"""The version, the id and the result."""
_PLAIN_PARAMS: Final = frozenset({"name", "arguments", "uri", "_meta"})
"""Members of params that need no further check, except for the keys of ``_meta``."""


def fold_key(key: str) -> str:
    """Return the form that a key shares with all keys that some parser takes for the same.

    Go compares by Unicode case folding, so U+212A is a ``k`` and U+017F an ``s``; Java compares
    letter by letter, so that both Turkish letters ``i`` are an ``i``. In C, U+0000 ends a string.
    """
    if "\0" in key:
        key = key.partition("\0")[0]
    if key.isascii():
        return key.lower()
    return key.casefold().replace("\u0131", "i").replace("i\u0307", "i")


_FOLDED: Final = {
    place: frozenset(fold_key(name) for name in names) for place, names in _JUDGED.items()
}


_Scan: TypeAlias = Callable[[str, int], tuple[Any, int]]


class _TwoReadings(ValueError):  # noqa: N818 - says what the text has
    """JSON parsers would interpret the text differently."""

    def __init__(self, check: str, reason: str) -> None:
        super().__init__(reason)
        self.check = check


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise _TwoReadings("duplicate_key", "an object has the same key twice")
    return built


def _constant(_: str) -> NoReturn:
    raise _TwoReadings("not_a_number", "NaN and Infinity are not JSON")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _TwoReadings("not_a_number", "a number is too large to be read alike everywhere")
    return value


def _exact_float(text: str) -> float:
    """Read a number that decimal readers and those with doubles understand in the same way."""
    value = _float(text)
    may_differ = len(text) > _SURE_LENGTH or "e" in text or "E" in text
    if may_differ and _digits(text) != _digits(repr(value)):
        raise _TwoReadings(INEXACT, "a number has more digits than every reader keeps")
    return value


def _digits(text: str) -> tuple[str, int]:
    """Return the significant digits of a number, without its sign, and their power of ten."""
    mantissa, _, power = text.lower().partition("e")
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept or len(power) > _SURE_LENGTH:
        return kept, 0  # zero, or so small that doubles read it as zero
    return kept, int(power or 0) - len(fraction) + len(digits) - len(kept)


def _scanner(parse_float: Callable[[str], float]) -> _Scan:
    decoder: Any = json.JSONDecoder(
        object_pairs_hook=_object, parse_constant=_constant, parse_float=parse_float
    )
    return make_scanner(decoder)


_SCAN: Final = _scanner(_exact_float)
_SCAN_ROUNDED: Final = _scanner(_float)
_PLAIN: Final = json.JSONDecoder()


def parse_strict(data: bytes, *, rounded: bool = False) -> Any:
    """Parse JSON that every parser interprets in the same way.

    With ``rounded``, numbers may have more digits than a double keeps, and are rounded.

    Raises:
        ValueError: the data is not JSON, or is ambiguous; the text says why.
    """
    text = data.decode("utf-8")
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and is_deeper_than(MAX_DEPTH, data):
        raise _TwoReadings("too_deep", f"the nesting is deeper than {MAX_DEPTH}, or unbalanced")
    start = len(text) - len(text.lstrip(" \t\n\r")) if text[:1] in {" ", "\t", "\n", "\r"} else 0
    try:
        value, end = (_SCAN_ROUNDED if rounded else _SCAN)(text, start)
    except StopIteration:
        raise ValueError("it is not JSON") from None
    if end != len(text) and text[end:].strip(" \t\n\r"):
        raise ValueError("something follows the JSON value")
    # Only an escape can produce half of a pair, because UTF-8 decoding rejects the raw form.
    if b"\\u" in data and (b"\\ud" in data or b"\\uD" in data):
        _refuse_lone_surrogates(value)
    return value


def is_deeper_than(limit: int, data: bytes) -> bool:
    """Tell whether a JSON text nests deeper than a limit, or its brackets do not match up.

    Linear in the size of the text, whatever it holds, and a text that is far too deep is not read
    to its end. Text that is not JSON may get either answer.
    """
    if b"\\" in data:
        # Only inside strings; what is left are quotes that begin or end a string.
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    depth, in_string = 0, False
    for start in range(0, len(data), _DEPTH_CHUNK):
        parts = data[start : start + _DEPTH_CHUNK].split(b'"')
        brackets = b"".join(parts[in_string::2]).translate(_ROUND, _NOT_BRACKETS)
        in_string ^= len(parts) % 2 == 0
        depth = _depth_after(brackets, depth, limit)
        if depth < 0:
            return True
    return depth != 0


def _depth_after(brackets: bytes, depth: int, limit: int) -> int:
    """Return the depth after some brackets; -1 if it exceeds the limit or is negative meanwhile."""
    rest, removed = brackets, 0
    while removed < _FLAT_PASSES and b"()" in rest:
        rest, removed = rest.replace(b"()", b""), removed + 1
    opened = rest.count(b"(")
    closed = len(rest) - opened
    if closed <= depth and depth + removed + opened <= limit:
        return depth + opened - closed  # true for nearly all messages, and cheap
    steps = memoryview(brackets.translate(_STEPS)).cast("b")
    depths = list(accumulate(steps, initial=depth))
    return -1 if max(depths) > limit or min(depths) < 0 else depths[-1]


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise _TwoReadings("lone_surrogate", "a string holds half of a surrogate pair") from None


def escape_separators(line: bytes) -> bytes:
    """Escape the non-ASCII characters that some readers treat as a line end.

    In JSON they can only occur inside strings, so replacing their bytes is enough.
    """
    if b"\xe2\x80" in line or b"\xc2\x85" in line:
        for raw, escaped in _SEPARATORS:
            line = line.replace(raw, escaped)
    return line


def read_frame(line: bytes, limit: int = MAX_LINE) -> Message | Fault:
    """Read one line (without its LF) as a JSON-RPC message of at most ``limit`` bytes."""
    if isinstance(line, Oversized) or len(line) > limit:
        return Fault(
            "invalid_request", f"the message is over {limit} bytes", "too_large", find_id(line)
        )
    if line.endswith(b"\r"):
        line = line[:-1]
    # Some readers also split lines at CR, and would see several messages.
    if b"\r" in line:
        return Fault("invalid_request", "the message contains a raw CR", "raw_cr", find_id(line))
    try:
        body, inexact = _parse(line)
    except UnicodeDecodeError:
        return Fault("parse_error", "the message is not UTF-8", "invalid_utf8", find_id(line))
    except _TwoReadings as error:
        return Fault("invalid_request", str(error), error.check, find_id(line))
    except (ValueError, RecursionError):
        return Fault("parse_error", "the message is not JSON", "malformed_json")
    message = read_message(body, line if line.isascii() else escape_separators(line))
    is_refused = inexact and isinstance(message, Message) and message.shape == REQUEST
    return Fault("invalid_request", inexact, INEXACT, message.id) if is_refused else message


def _parse(line: bytes) -> tuple[Any, str]:
    """Parse a frame; also return what is wrong with its numbers, which matters in requests only.

    Rules compare them, and reviewers see them; many servers return long decimal fractions.
    """
    try:
        return parse_strict(line), ""
    except _TwoReadings as error:
        if error.check != INEXACT:
            raise
        return parse_strict(line, rounded=True), str(error)


def read_message(body: Any, raw: bytes) -> Message | Fault:
    """Classify a parsed value as a JSON-RPC message."""
    if type(body) is not dict:
        if type(body) is list:
            return Fault("invalid_request", "batches are not accepted here", "batch")
        return Fault("invalid_request", "the message is not an object", "not_an_object")
    return read_plain(body, raw) or _read_any(body, raw)


def read_plain(body: dict[str, Any], raw: bytes) -> Message | None:
    """Read an ordinary request or response quickly; None for all other frames."""
    # Most clients number their requests; a string id takes the slower path, with the same result.
    ident = body.get("id")
    if (
        type(ident) is not int
        or not -MAX_NUMBER_ID <= ident <= MAX_NUMBER_ID
        or body.get("jsonrpc") != "2.0"
    ):
        return None
    members = len(body)
    if members == _RESULT_MEMBERS and "result" in body:
        return unchecked(Message, (RESPONSE, ident, "", body, raw))
    if members != _REQUEST_MEMBERS or "method" not in body or "params" not in body:
        return None
    method, params = body["method"], body["params"]
    if type(params) is not dict or type(method) is not str or len(method) > MAX_METHOD:
        return None
    if not _PLAIN_PARAMS.issuperset(params) or (
        "_meta" in params and _has_variant(params["_meta"], "_meta")
    ):
        return None
    return unchecked(Message, (REQUEST, ident, method, body, raw))


def _read_any(body: dict[str, Any], raw: bytes) -> Message | Fault:
    ident = body.get("id")
    method = body.get("method")
    wrong = _ambiguity(body) or _bad_envelope(body, ident, method)
    if wrong is not None:
        kind, reason, check = wrong
        # A response must not be answered: the other side would answer the answer.
        answerable = "method" in body or not ("result" in body or "error" in body)
        return Fault(kind, reason, check, _answer_to(ident), answerable)
    if method is None:
        return Message(RESPONSE, ident, "", body, raw)
    if ident is None:
        return Message(NOTIFICATION, None, method, body, raw)
    return Message(REQUEST, ident, method, body, raw)


def _answer_to(ident: Any) -> RequestId | None:
    """Return an id if it is valid; None if it is too long or of a wrong type."""
    if type(ident) is int:
        return ident if -MAX_NUMBER_ID <= ident <= MAX_NUMBER_ID else None
    return ident if type(ident) is str and len(ident) <= MAX_ID else None


_Wrong: TypeAlias = tuple[str, str, str]
"""The kind, the reason and the check of a fault."""


def _ambiguity(body: dict[str, Any]) -> _Wrong | None:
    """Refuse keys that a case-insensitive parser (Go's encoding/json) takes for others."""
    if not body.keys() <= _MEMBERS:
        for key in body:
            if key not in _MEMBERS and fold_key(key) in _MEMBERS:
                reason = (
                    "a member's name differs from a JSON-RPC member only by case or after a NUL"
                )
                return "invalid_request", reason, "ambiguous_key"
    params = body.get("params")
    if type(params) is not dict:
        return None
    if any(_has_variant(params.get(place) if place else params, place) for place in _JUDGED):
        reason = "a parameter's name differs from a known one only by case or after a NUL"
        return "invalid_request", reason, "ambiguous_key"
    return None


def _has_variant(members: Any, place: str) -> bool:
    if type(members) is not dict:
        return False
    exact, folded = _JUDGED[place], _FOLDED[place]
    return any(key not in exact and fold_key(key) in folded for key in members)


def _bad_envelope(body: dict[str, Any], ident: Any, method: Any) -> _Wrong | None:
    if body.get("jsonrpc") != "2.0":
        check = "wrong_version" if "jsonrpc" in body else "missing_version"
        return "invalid_request", 'jsonrpc must be "2.0"', check
    if "id" in body and _answer_to(ident) is None and (ident is not None or "method" in body):
        reason = (
            f"an id is an integer of at most 53 bits or a string of at most {MAX_ID} characters"
        )
        return "invalid_request", reason, "wrong_id"
    if "method" in body:
        return _bad_request(body, method)
    return _bad_response(body, ident)


def _bad_request(body: dict[str, Any], method: Any) -> _Wrong | None:
    if type(method) is not str or len(method) > MAX_METHOD:
        reason = f"a method is a string of at most {MAX_METHOD} characters"
        return "invalid_request", reason, "wrong_method"
    # One reader could take it for a request, another for a response.
    if "result" in body or "error" in body:
        return "invalid_request", "a request has no result", "two_shapes"
    # An approval is bound to params, and the record shows them; the server would get this as well.
    if "id" in body and not body.keys() <= _MEMBERS:
        reason = "a request has a member besides jsonrpc, id, method and params"
        return "invalid_request", reason, "extra_member"
    params = body.get("params")
    if params is not None and type(params) is not dict:
        return "invalid_params", "params must be an object", "wrong_params"
    return None


def _bad_response(body: dict[str, Any], ident: Any) -> _Wrong | None:
    if "result" in body and "error" in body:
        return "invalid_request", "an answer has a result or an error", "two_shapes"
    if "result" not in body and "error" not in body:
        return "invalid_request", "neither a request nor an answer", "unclassifiable"
    # JSON-RPC: an error has a null id if the id of the request could not be read.
    if ident is None and "error" not in body:
        return "invalid_request", "a result needs an id", "wrong_id"
    return None


def find_id(line: bytes) -> RequestId | None:
    """Guess the id of a frame that cannot be parsed, so that its sender gets an answer.

    Only a single top-level ``id`` member counts; in any doubt the result is None, and the
    refusal is sent with a null id. In a long frame, only the two ends are searched.
    """
    found = _ids_in(line[:HEAD].decode("utf-8", "replace"))
    if len(line) > HEAD and not found:
        last = _LAST_ID.search(line[-TAIL:])
        if last is not None:
            # Read like a member at the start, so that both ends accept the same ids.
            found = _ids_in('{"id":' + last.group(1).decode("utf-8", "replace"))
    if len(found) != 1 or (type(found[0]) is str and not _is_sure(found[0])):
        return None
    return found[0]


def _is_sure(ident: str) -> bool:
    """Tell whether an id is unambiguous and can be encoded again."""
    try:
        ident.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\ufffd" not in ident


def _ids_in(text: str) -> list[RequestId]:
    """Return the values of the top-level ``id`` members of a possibly truncated text."""
    found: list[RequestId] = []
    depth = 0
    for token in re.finditer(_TOKENS, text, re.DOTALL):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        elif depth == 1 and token[0] == '"id"':
            found += _scalar_after_colon(text, token.end())
    return found


def _scalar_after_colon(text: str, start: int) -> list[RequestId]:
    # Six characters per character of the id (``\u0041``), and some white space.
    rest = text[start : start + MAX_ID * 6 + 64].lstrip(" \t\r")
    if not rest.startswith(":"):
        return []
    try:
        value, _ = _PLAIN.raw_decode(rest[1:].lstrip(" \t\r"))
    except ValueError:
        return []
    ident = _answer_to(value)
    return [] if ident is None else [ident]
