"""One spelling of a text, so that words are found in whatever characters they are written.

Lower case, compatibility forms (fullwidth, mathematical, circled letters) as plain letters, no
invisible characters, and look-alike letters in words of mixed scripts as Latin ones. Text that
needs none of this, which is almost all text, keeps its positions.
"""

import re
import unicodedata
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_SPECIAL: Final = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\ufe00-\ufe0f\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef"  # invisible
    "\u0300-\u036f\u1d00-\u1d2b\u02b0-\u02b8\u2070-\u209c\u2100-\u214f\u2460-\u24ff\uff01-\uff5e"
    "\U0001d400-\U0001d7ff\U0001f110-\U0001f189\u0250-\u02af\u0131\u2018\u2019\ufb00-\ufb06\u0130]"
)
_MIXED: Final = re.compile("[a-zA-Z][\u0370-\u04ff]|[\u0370-\u04ff][a-zA-Z]")

_CYRILLIC: Final = dict(zip("авеѕіјкмнорсԁтухһԛԝӏьгпё", "abesijkmhopcdtyxhqwlbrne", strict=True))
_GREEK: Final = dict(zip("αβεικνορτυχγη", "abeiknoptuxyn", strict=True))
_LOOK_ALIKES: Final = {**_CYRILLIC, **_GREEK}
_SMALL_CAPITALS: Final = dict(
    zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True)
)
_PLAIN: Final = {
    **_SMALL_CAPITALS,
    "\u2018": "'",
    "\u2019": "'",
    "ı": "i",
    "ɑ": "a",
    "ɡ": "g",
    "ɩ": "i",
}

_WORD: Final = re.compile(r"\w+")
_LATIN: Final = re.compile("[a-z]")
_FOREIGN: Final = re.compile("[\u0370-\u04ff]")
_MIN_MIXED: Final = 4
"""Letters of the shortest mixed word that counts: units such as µm are shorter."""


class Normal(NamedTuple):
    """A text in one spelling, and where each of its characters came from."""

    text: str
    offsets: Sequence[int] | None
    """Position in the original of each character; None if the positions are the same."""
    mixed: tuple[tuple[int, int], ...] = ()
    """Spans of the original whose words mix scripts."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that a span of this text came from."""
        if self.offsets is None:
            return start, end
        last = len(self.offsets) - 1
        return self.offsets[min(start, last)], self.offsets[min(end - 1, last)] + 1


_ASCII: Final = bytes(range(128))


def beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII; few, and cheap to look at."""
    if text.isascii():
        return ""
    return text.encode("utf-8", "replace").translate(None, _ASCII).decode("utf-8", "replace")


def normalise(text: str) -> Normal:
    """Return a text in one spelling; fast for text without special characters."""
    if text.isascii():
        return Normal(text.lower(), None)
    beyond = beyond_ascii(text)
    special = _SPECIAL.search(beyond)
    mixed = find_mixed(text) if _FOREIGN.search(beyond) else ()
    if not special and not mixed:
        if beyond == beyond.lower():
            # Lowers ASCII only, which is all that is left to do, and much faster.
            return Normal(text.encode("utf-8", "replace").lower().decode("utf-8"), None)
        # No other letter than the dotted capital I, which is special, changes its length.
        return Normal(text.lower(), None)
    return _slowly(text, mixed)


def find_mixed(text: str) -> tuple[tuple[int, int], ...]:
    """Return the words that mix Latin letters with Cyrillic or Greek ones that look alike."""
    spans: list[tuple[int, int]] = []
    for match in _MIXED.finditer(text):
        if spans and match.start() < spans[-1][1]:
            continue
        start, end = _word_around(text, match.start())
        word = text[start:end].lower()
        alike = all(one in _LOOK_ALIKES for one in _FOREIGN.findall(word))
        if alike and len(word) >= _MIN_MIXED:
            spans.append((start, end))
    return tuple(spans)


_MAX_WORD: Final = 64


def _word_around(text: str, position: int) -> tuple[int, int]:
    start = position
    while start > 0 and position - start < _MAX_WORD and text[start - 1].isalpha():
        start -= 1
    end = position + 1
    while end < len(text) and end - position < _MAX_WORD and text[end].isalpha():
        end += 1
    return start, end


def _slowly(text: str, mixed: tuple[tuple[int, int], ...]) -> Normal:
    pieces: list[str] = []
    offsets = array("I")
    replaced = list(text)
    for start, end in mixed:
        for at in range(start, end):
            replaced[at] = _LOOK_ALIKES.get(text[at].lower(), text[at])
    for at, character in enumerate(replaced):
        folded = character.lower() if character.isascii() else _fold(character)
        if folded:
            pieces.append(folded)
            offsets.extend([at] * len(folded))
    if not pieces:
        return Normal("", None, mixed)
    return Normal("".join(pieces), offsets, mixed)


@lru_cache(maxsize=4096)
def _fold(character: str) -> str:
    if _is_invisible(character):
        return ""
    return (_PLAIN.get(character) or unicodedata.normalize("NFKC", character)).lower()


_FILLERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u034f")


def _is_invisible(character: str) -> bool:
    if character in _FILLERS or 0xFE00 <= ord(character) <= 0xFE0F or ord(character) >= 0xE0000:
        return True
    return unicodedata.category(character) in {"Cf", "Mn"}
