"""All exceptions of the package, and the registry of error kinds.

A refusal is a value, not an exception: the caller gets a *kind* from the registry below,
and the JSON-RPC code follows from the kind. Exceptions are for situations in which the gate
itself cannot continue: a wrong config, a peer that has gone, a record that cannot be written.
``exit_code`` is the only place where an exception becomes an exit code.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

EXIT_OK: Final = 0
EXIT_CONFIG: Final = 1
EXIT_FAILURE: Final = 2

KINDS: Final[dict[str, int]] = {
    "parse_error": -32700,
    "invalid_request": -32600,
    "method_not_found": -32601,
    "invalid_params": -32602,
    "task_not_found": -32602,
    "internal_error": -32603,
    "upstream_connection_failed": -32000,
    "upstream_tls_failed": -32000,
    "upstream_unauthorized": -32000,
    "upstream_bad_response": -32000,
    "server_start_failed": -32000,
    "upstream_timeout": -32001,
    "tool_call_timeout": -32001,
    "policy_denied": -32003,
    "content_blocked": -32003,
    "task_expired": -32005,
    "task_cancelled": -32006,
    "approval_rejected": -32007,
    "approval_timeout": -32008,
    "approval_withdrawn": -32008,
    "rate_limited": -32009,
    "budget": -32009,
    "duplicate": -32009,
    "breaker": -32009,
    "definition_held": -32010,
    "policy_drift": -32011,
    "insufficient_scope": -32012,
    "service_unavailable": -32013,
    "server_not_running": -32013,
    "governance_denied": -32014,
    "not_exposed": -32015,
}
"""Every kind of error that a caller can get, with its JSON-RPC code before 2026-07-28."""

_CONNECTION: Final = "upstream_connection_failed"
_TIMEOUT: Final = "upstream_timeout"
_TLS: Final = "upstream_tls_failed"
_UNAUTHORIZED: Final = "upstream_unauthorized"
_BAD_RESPONSE: Final = "upstream_bad_response"
_START: Final = "server_start_failed"
_NOT_RUNNING: Final = "server_not_running"

LOGIN_REQUIRED: Final = "login_required"
STOPPED_BY_HAND: Final = "stopped_by_hand"

CAUSES: Final[dict[str, tuple[str, str]]] = {
    "dns_failed": (_CONNECTION, "the server's host name cannot be resolved"),
    "connection_refused": (_CONNECTION, "the server's port refused the connection"),
    "network_unreachable": (_CONNECTION, "there is no route to the server"),
    "connection_failed": (_CONNECTION, "the server cannot be reached"),
    "connection_lost": (_CONNECTION, "the server closed the connection before it answered"),
    "stream_ended": (_CONNECTION, "the server ended its stream before it answered"),
    "session_lost": (_CONNECTION, "the server no longer knows the session"),
    "proxy_failed": (_CONNECTION, "the HTTP proxy did not connect to the server"),
    "exited": (_CONNECTION, "the server exited before it answered"),
    "stopped": (_CONNECTION, "the server was stopped"),
    "gate_closing": (_CONNECTION, "the gate is closing"),
    "connect_timeout": (_TIMEOUT, "the server did not accept the connection in time"),
    "answer_timeout": (_TIMEOUT, "the server did not answer in time"),
    "idle_timeout": (_TIMEOUT, "the server's stream was silent for too long"),
    "tls_unknown_ca": (_TLS, "the server's certificate was issued by an unknown authority"),
    "tls_wrong_host": (_TLS, "the server's certificate is for a different host name"),
    "tls_expired": (_TLS, "the server's certificate has expired"),
    "tls_not_yet_valid": (_TLS, "the server's certificate is not valid yet"),
    "tls_client_certificate": (_TLS, "the server did not accept the gate's client certificate"),
    "tls_failed": (_TLS, "no TLS connection to the server could be made"),
    "status_401": (_UNAUTHORIZED, "the server needs a login or refused our credentials"),
    "status_403": (_UNAUTHORIZED, "the server does not permit this with our credentials"),
    "status_407": (_UNAUTHORIZED, "the HTTP proxy refused our credentials"),
    LOGIN_REQUIRED: (_UNAUTHORIZED, "nobody is signed in to the server"),
    "renewal_failed": (_UNAUTHORIZED, "the gate's access to the server could not be renewed"),
    "rate_limited_by_server": (_BAD_RESPONSE, "the server has received too many requests"),
    "unavailable": (_BAD_RESPONSE, "the server is temporarily unavailable"),
    "redirected": (_BAD_RESPONSE, "the server redirects, and redirects are not followed"),
    "status": (_BAD_RESPONSE, "the server answered with an HTTP error"),
    "wrong_type": (_BAD_RESPONSE, "the server's answer is neither JSON nor an event stream"),
    "wrong_encoding": (_BAD_RESPONSE, "the server's answer has an unknown content encoding"),
    "too_large": (_BAD_RESPONSE, "the server's answer is too large"),
    "wrong_id": (_BAD_RESPONSE, "the server's answer has the id of a different request"),
    "not_http": (_BAD_RESPONSE, "the server's answer is not HTTP"),
    "not_json": (_BAD_RESPONSE, "the server's answer is not a valid JSON-RPC message"),
    "no_answer": (_BAD_RESPONSE, "the server's response contains no answer to the request"),
    "start_failed": (_START, "the server could not be started"),
    "start_timeout": (_START, "the server was not ready in time"),
    "bad_handshake": (_START, "the server did not answer the handshake properly"),
    "wrong_revision": (_START, "the server supports no MCP revision that the gate supports"),
    "disabled": (_NOT_RUNNING, "the server is disabled in the config"),
    STOPPED_BY_HAND: (_NOT_RUNNING, "the server was stopped by hand"),
}
"""Why a server cannot be used: the kind of the error and the reason, by cause.

A cause is more precise than a kind. Errors, the record, standard error and ``status`` show it,
together with the HTTP status if the server sent one.
"""

MAX_RETRY_AFTER_S: Final = 86_400
"""The longest ``Retry-After`` of a server that is passed on: one day."""

_STANDARD_CODES: Final = range(-32768, -32599)
"""Codes that JSON-RPC itself defines; they are the same in every revision."""

_MODERN_SHIFT: Final = 1000
"""From 2026-07-28 on, the specification reserves -32099 to -32000, so the gate's codes move out."""


_LOOKS_EMPTY: Final = frozenset(
    map(
        chr,
        (
            0x034F,  # combining grapheme joiner
            0x115F, 0x1160, 0x3164, 0xFFA0,  # Hangul fillers
            0x17B4, 0x17B5,  # Khmer inherent vowels
            *range(0x180B, 0x1810),  # Mongolian variation selectors and vowel separator
            0x2800,  # Braille pattern blank
            *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),  # variation selectors
        ),
    )
)  # fmt: skip
"""Characters that Unicode counts as printable but that show nothing."""

MAX_MARKS: Final = 4
"""Combining marks shown on one character: no script needs more, and a pile hides its neighbours."""


def code_of(kind: str, *, modern: bool = False) -> int:
    """Return the JSON-RPC code of a kind, for a modern or a legacy caller."""
    code = KINDS[kind]
    if modern and code not in _STANDARD_CODES:
        return code + _MODERN_SHIFT
    return code


class Problem(NamedTuple):
    """One thing that is wrong in an operator's input."""

    key: str
    """Dotted path of the key, such as ``servers.search.auth.token_env``; empty for the file itself."""
    message: str
    """What is wrong and what would be right."""
    file: str = ""
    """The file that contains it, as the operator named it."""
    line: int = 0
    """One-based line, 0 when unknown."""

    def __str__(self) -> str:
        place = self.file + (f":{self.line}" if self.line else "")
        parts = (visible(place), visible(self.key), visible(self.message, "\n"))
        return ": ".join(part for part in parts if part)


def visible(text: str, kept: str = "") -> str:
    """Return a text in which every character is visible.

    Agents, servers and files choose what people read, and could hide parts of it. Characters
    that a terminal or a browser would not show, or would interpret, are written as
    ``[U+200B]``: control and format characters, spaces other than the ASCII one, unassigned
    characters, characters that look empty, and combining marks piled on one character. The
    characters in ``kept`` stay as they are.
    """
    if text.isprintable() and text.isascii():
        return text
    from unicodedata import category  # 1 MB, and most texts are plain ASCII

    marks = 0
    parts: list[str] = []
    # No combining mark comes before U+0300, so the slow lookup is skipped for most Latin text.
    for char in text:
        marks = marks + 1 if char > "\u02ff" and category(char)[0] == "M" else 0
        is_shown = char.isprintable() and char not in _LOOKS_EMPTY and marks <= MAX_MARKS
        parts.append(char if is_shown or char in kept else f"[U+{ord(char):04X}]")
    return "".join(parts)


class ThoughtGateError(Exception):
    """Base of all exceptions that this package raises on purpose; carries the exit code."""

    exit_code = EXIT_FAILURE


class ConfigError(ThoughtGateError):
    """The configuration is wrong. Nothing was started."""

    exit_code = EXIT_CONFIG

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class UsageError(ThoughtGateError):
    """The command line is wrong, or asks for something that cannot be done."""


class PeerError(ThoughtGateError):
    """The peer broke the protocol or gave no usable answer; ``kind`` and ``cause`` say how."""

    def __init__(
        self,
        kind: str,
        message: str,
        cause: str = "",
        *,
        status: int = 0,
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.cause = cause
        """A key of ``CAUSES``; empty if the error is not about a server."""
        self.status = status
        """The HTTP status of the server's answer; 0 if there was none."""
        self.retry_after = min(max(retry_after, 0), MAX_RETRY_AFTER_S)
        """Seconds after which the client may try again, as the server says; 0 if it does not."""

    @property
    def facts(self) -> dict[str, str | int]:
        """What an error, a record and ``status`` say about it besides the kind."""
        return _facts(self.cause, str(self), self.status, self.retry_after)


def upstream_error(
    cause: str, reason: str = "", *, status: int = 0, retry_after: int = 0
) -> PeerError:
    """Return the error for a cause; ``reason`` replaces the one of the table."""
    kind, usual = CAUSES[cause]
    if not reason:
        reason = f"{usual} (HTTP status {status})" if status else usual
    return PeerError(kind, reason, cause, status=status, retry_after=retry_after)


class PeerGone(ThoughtGateError):  # noqa: N818 - a peer that left is a fact, not an error
    """The peer cannot be reached, or closed the connection."""

    kind: Final = "upstream_connection_failed"

    def __init__(self, message: str, cause: str = "connection_lost") -> None:
        super().__init__(message)
        self.cause = cause
        """A key of ``CAUSES``."""

    @property
    def facts(self) -> dict[str, str | int]:
        """What an error, a record and ``status`` say about it besides the kind."""
        return _facts(self.cause, str(self), 0, 0)


class ServerExited(PeerGone):
    """The server's process ended."""

    before_answer: Final = "the server exited before it answered"
    """The message for the callers whose requests were still open."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "exited")


def _facts(cause: str, reason: str, status: int, retry_after: int) -> dict[str, str | int]:
    facts: dict[str, str | int] = {"cause": cause} if cause else {}
    if status:
        facts["status"] = status
    if retry_after:
        facts["retry_after"] = retry_after
    return {**facts, "reason": reason} if reason else facts


class RecordError(ThoughtGateError):
    """The record could not be written, so nothing may be forwarded."""


class StoreError(ThoughtGateError):
    """A store could not be opened, read or written."""


class LoginError(ThoughtGateError):
    """Signing in to a server failed; the text says why and what to do, and contains no secret."""


class Conflict(ThoughtGateError):  # noqa: N818 - names what happened
    """Somebody else was first: a lock is held, or a decision was already made."""


def exit_code(error: BaseException) -> int:
    """Return the process exit code for an exception that ended a command."""
    if isinstance(error, ThoughtGateError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return 130  # what shells report for a program ended by SIGINT
    return EXIT_FAILURE
