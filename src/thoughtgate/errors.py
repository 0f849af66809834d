"""The exceptions, all of them, and the registry of error kinds.

A refusal is a value, not an exception: what a caller is told is a *kind* from the
registry below, and the number follows from the kind. Exceptions are for what the
gate itself cannot go on from: a wrong config, a gone peer, a record that cannot be
written. ``exit_code`` is the one place where an exception becomes an exit code.
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
    "server_start_failed": -32000,
    "upstream_timeout": -32001,
    "tool_call_timeout": -32001,
    "policy_denied": -32003,
    "task_expired": -32005,
    "task_cancelled": -32006,
    "approval_rejected": -32007,
    "approval_timeout": -32008,
    "approval_withdrawn": -32008,
    "rate_limited": -32009,
    "budget": -32009,
    "duplicate": -32009,
    "breaker": -32009,
    "policy_drift": -32011,
    "service_unavailable": -32013,
    "server_not_running": -32013,
    "governance_denied": -32014,
    "not_exposed": -32015,
}
"""Every kind of error a caller can be told, with its number before 2026-07-28."""

_STANDARD_CODES: Final = range(-32768, -32599)
"""Codes that JSON-RPC itself defines; they are the same in every revision."""

_MODERN_SHIFT: Final = 1000
"""From 2026-07-28 on the range -32099 to -32000 is the specification's, so ours move out of it."""


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
"""Characters that Unicode counts as printable and that show nothing."""

MAX_MARKS: Final = 4
"""Combining marks shown on one character: no script needs more, and a pile hides its neighbours."""


def code_of(kind: str, *, modern: bool = False) -> int:
    """Return the JSON-RPC number of a kind, for a modern or a legacy caller."""
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
    """The file it stands in, as the operator named it."""
    line: int = 0
    """One-based line, 0 when unknown."""

    def __str__(self) -> str:
        place = self.file + (f":{self.line}" if self.line else "")
        parts = (visible(place), visible(self.key), visible(self.message, "\n"))
        return ": ".join(part for part in parts if part)


def visible(text: str, kept: str = "") -> str:
    """Return a text in which every character can be seen; agents, servers and files choose texts.

    Characters that a terminal or a browser would not show, or would obey, are written as
    ``[U+200B]``: control and format characters, spaces other than the ASCII one, unassigned
    characters, characters that look empty, and combining marks piled on one character. The
    characters in ``kept`` stay as they are.
    """
    if text.isprintable() and text.isascii():
        return text
    from unicodedata import category  # 1 MB, and most texts are plain ASCII

    marks = 0
    parts: list[str] = []
    for char in text:
        marks = marks + 1 if char > "\u02ff" and category(char)[0] == "M" else 0
        is_shown = char.isprintable() and char not in _LOOKS_EMPTY and marks <= MAX_MARKS
        parts.append(char if is_shown or char in kept else f"[U+{ord(char):04X}]")
    return "".join(parts)


class ThoughtGateError(Exception):
    """Base of what this package raises on purpose; carries its exit code."""

    exit_code = EXIT_FAILURE


class ConfigError(ThoughtGateError):
    """The configuration is wrong. Nothing was started."""

    exit_code = EXIT_CONFIG

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class UsageError(ThoughtGateError):
    """The command line is wrong, or asks for what cannot be done."""


class PeerError(ThoughtGateError):
    """The other end broke the protocol; ``kind`` says how."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class PeerGone(ThoughtGateError):  # noqa: N818 - a peer that left is a fact, not an error
    """The other end is not there, or left."""


class ServerExited(PeerGone):
    """The server's process ended."""

    before_answer: Final = "the server exited before it answered"
    """What the callers of its open requests are told."""


class RecordError(ThoughtGateError):
    """The record could not be written, so nothing may be forwarded."""


class StoreError(ThoughtGateError):
    """A store could not be opened, read or written."""


class Conflict(ThoughtGateError):  # noqa: N818 - names what happened
    """Somebody else was there first: a lock is held, a decision was already made."""


def exit_code(error: BaseException) -> int:
    """Return the process exit code for an exception that ended a command."""
    if isinstance(error, ThoughtGateError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return 130
    return EXIT_FAILURE
