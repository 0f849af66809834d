"""Characters that people do not see: zero width, direction, tags, private use, terminal escapes.

A character is judged by its neighbours, because most of these have honest uses: joiners in emoji
and in Indic and Arabic scripts, direction marks in right-to-left text, colours in logs.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from thoughtgate.policy.inspection.checks import ARGUMENTS, DEFINITION, ESCAPES, HIDDEN, RESULT
from thoughtgate.policy.inspection.finding import HARD, SOFT
from thoughtgate.policy.inspection.normal import beyond_ascii

_TAGS: Final = "\U000e0000-\U000e007f"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_PRIVATE: Final = "\ue000-\uf8ff\U000f0000-\U0010ffff"
_WIDTHLESS: Final = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2064\u206a-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb"
)
_DIRECTION: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"

_SUSPECT: Final = re.compile(f"[{_WIDTHLESS}{_DIRECTION}{_SELECTORS}{_TAGS}{_PRIVATE}]+")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]+")
_ESCAPE: Final = re.compile(
    "(?:\x1b\\[|\x9b)(?P<arguments>[0-9;:?<=>]{0,64})[ -/]{0,4}(?P<final>[@-~])?"
    "|\x1b\\](?P<osc>[^\x07\x1b\x9c\n]{0,512})"
    "|\x1b(?P<other>[PX^_NO]?)"
)
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_JOINING: Final = re.compile("[\u0600-\u0fff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefe]")
"""Scripts in which joiners change how letters are drawn."""

_FLAG: Final = "\U0001f3f4"
_END_OF_FLAG: Final = "\U000e007f"
_LONG_FLAG: Final = 7
_STEGANOGRAPHY: Final = 3
"""Widthless characters in a row that no honest text has."""
_MANY_PRIVATE: Final = 8


class Hidden(NamedTuple):
    """A run of characters that people do not see."""

    check: str
    tier: str
    start: int
    end: int
    what: str
    message: str = ""
    """The text that the run spells, if it spells one."""


_ORDINARY: Final = bytes(
    byte for byte in range(128) if (byte >= 32 and byte != 127) or byte in b"\t\n\r\f"
)
"""Bytes of ASCII text that are no control characters."""


def find_hidden(text: str, kind: str) -> Iterator[Hidden]:
    """Yield the hidden characters of a text that have no honest use where they are."""
    if text.encode("ascii", "replace").translate(None, _ORDINARY):
        yield from _controls(text, kind)
    beyond = beyond_ascii(text)
    if not beyond:
        return
    if _CONTROL.search(beyond):
        yield from _controls(text, kind)
    if not _SUSPECT.search(beyond):
        return
    right_to_left = bool(_RIGHT_TO_LEFT.search(text))
    for match in _SUSPECT.finditer(text):
        found = _judge(text, match.start(), match.end(), kind, right_to_left=right_to_left)
        if found is not None:
            yield found


def read_tags(run: str) -> str:
    """Return the text that tag characters or variation selectors spell; empty if none."""
    codes = [ord(character) for character in run]
    tags = "".join(chr(code - 0xE0000) for code in codes if 0xE0020 <= code < 0xE007F)
    if tags:
        return tags
    selected = [_selected_byte(code) for code in codes]
    return bytes(one for one in selected if one is not None).decode("utf-8", "ignore")


def _selected_byte(code: int) -> int | None:
    """Return the byte that a variation selector stands for where text is hidden in selectors."""
    if 0xFE00 <= code <= 0xFE0F:
        return code - 0xFE00
    return code - 0xE0100 + 16 if 0xE0100 <= code <= 0xE01EF else None


def _judge(text: str, start: int, end: int, kind: str, *, right_to_left: bool) -> Hidden | None:
    run = text[start:end]
    before = text[start - 1] if start else ""
    selectors = sum(_selected_byte(ord(one)) is not None for one in run)
    if any(0xE0000 <= ord(one) <= 0xE007F for one in run):
        flag = before == _FLAG and run[-1] == _END_OF_FLAG and len(run) <= _LONG_FLAG
        found = (HARD, "invisible tag characters", read_tags(run)) if not flag else None
    elif any(one in "\u202d\u202e" for one in run) and not right_to_left:
        found = HARD, "characters that override the direction of text", ""
    elif selectors > 1:  # one belongs to the character before it
        found = HARD, "a run of variation selectors", read_tags(run)
    elif selectors:
        honest = not before.isascii() or before in "#*0123456789" or not before
        found = None if honest else (SOFT, "a variation selector after an ordinary character", "")
    elif any(_is_private(one) for one in run):
        return _judge_private(run, start, kind)
    else:
        around = before, text[end : end + 1]
        return _judge_widthless(run, around, start, kind, right_to_left=right_to_left)
    return Hidden(HIDDEN, found[0], start, end, found[1], found[2]) if found else None


def _is_private(character: str) -> bool:
    code = ord(character)
    return 0xE000 <= code <= 0xF8FF or code >= 0xF0000


def _judge_private(run: str, start: int, kind: str) -> Hidden | None:
    if kind != DEFINITION and len(run) < _MANY_PRIVATE:
        return None  # icons in the output of terminals
    tier = HARD if len(run) >= _MANY_PRIVATE else SOFT
    return Hidden(HIDDEN, tier, start, start + len(run), "private-use characters")


def _judge_widthless(
    run: str, around: tuple[str, str], start: int, kind: str, *, right_to_left: bool
) -> Hidden | None:
    before, after = around
    marks = right_to_left and all(one in _RTL_MARKS for one in run)
    if marks or _is_joining(before, after, run) or (run == "\ufeff" and start == 0):
        return None
    if run == "\u00ad" and kind != DEFINITION:
        return None  # where a word may be divided; the words are read without it
    inside = before.isalnum() and after.isalnum() and before.isascii() and after.isascii()
    if len(run) >= _STEGANOGRAPHY:
        tier, what = HARD, "a run of invisible characters"
    elif inside:
        soft = run == "\u00ad" or kind != DEFINITION
        tier, what = SOFT if soft else HARD, "invisible characters inside a word"
    elif kind == DEFINITION:
        tier, what = SOFT, "invisible characters"
    else:
        return None
    return Hidden(HIDDEN, tier, start, start + len(run), what)


_RTL_MARKS: Final = frozenset(
    "\u061c\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
)


def _is_joining(before: str, after: str, run: str) -> bool:
    """Tell whether a joiner stands where emoji or a script needs it."""
    if run not in {"\u200c", "\u200d"}:
        return False
    beside = before + after
    return bool(_JOINING.search(beside)) or (
        run == "\u200d" and any(ord(one) > 0x2000 for one in beside)
    )


def _controls(text: str, kind: str) -> Iterator[Hidden]:
    for match in _ESCAPE.finditer(text):
        tier = _escape_tier(match, kind)
        if tier:
            what = "a terminal escape sequence"
            yield Hidden(ESCAPES, tier, match.start(), match.end(), what)
    for match in _CONTROL.finditer(text):
        run = match.group()
        if run in {"\x1b", "\x9b", "\x07"}:
            continue
        tier = HARD if kind == DEFINITION else SOFT
        yield Hidden(ESCAPES, tier, match.start(), match.end(), "control characters")


_CONCEALING: Final = re.compile(r"(?:^|;)8(?:;|$)|(?:^|;)30;(?:.*;)?40(?:;|$)|37;47|97;107|38;5;0")
_ERASING: Final = frozenset("KGABCDEF")
"""Final letters of sequences that progress bars use."""


def _escape_tier(match: re.Match[str], kind: str) -> str:
    """Return the tier of an escape sequence; empty if it is harmless."""
    if kind == DEFINITION:
        return HARD
    if match["final"] == "m":
        concealing = _CONCEALING.search(match["arguments"] or "")
        if concealing:
            return HARD
        return SOFT if kind == ARGUMENTS else ""
    if match["final"] in _ERASING:
        return SOFT
    return HARD if kind == RESULT or match["osc"] else SOFT
