"""Text in other encodings, decoded so that it can be inspected like plain text."""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote


class Decoded(NamedTuple):
    """A run of encoded text, and what it says."""

    start: int
    end: int
    text: str
    encoding: str


MIN_RUN: Final = 24
"""Characters of the shortest run that is decoded: 18 bytes in base64."""
MAX_RUNS: Final = 2000
"""Runs of one text that are decoded; bounds the work for files of keys and hashes."""


def _run_table() -> bytes:
    table = bytearray(b" " * 256)
    for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-=":
        table[byte] = ord("a")
    return bytes(table)


_RUN: Final = _run_table()
_SHAPE: Final = b"a" * MIN_RUN
_HEX: Final = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2}){10,})")
_BASE32: Final = re.compile(r"[A-Z2-7]{24,}={0,6}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_WORDS: Final = re.compile(r"[a-z]{3,}|[A-Z]?[a-z]{2,}")
_PERCENT: Final = re.compile(r"%[0-9a-fA-F]{2}(?:[^%\s]{0,80}%[0-9a-fA-F]{2}){3,}[^%\s]{0,200}")
_ENTITY: Final = re.compile(
    r"&#x?[0-9a-fA-F]{2,6};(?:[^&\n]{0,12}&#x?[0-9a-fA-F]{2,6};){3,}[^&\n]{0,80}"
)
_ESCAPE: Final = re.compile(
    r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})(?:[^\\\n]{0,8}\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})){5,}[^\\\n]{0,40}"
)
_CODES: Final = re.compile(r"(?<![0-9.])[0-9]{2,3}(?:[, ]{1,2}[0-9]{2,3}){14,}(?![0-9.])")
_HEX_PAIRS: Final = re.compile(
    r"(?<![0-9a-fA-F])[0-9a-fA-F]{2}(?:[ :][0-9a-fA-F]{2}){11,}(?![0-9a-fA-F])"
)
_BITS: Final = re.compile(r"(?<![01])[01]{8}(?: ?[01]{8}){7,}(?![01])")

_ROTATED: Final = tuple(
    codecs.encode(word, "rot13")
    for word in (
        "ignore",
        "previous",
        "instruct",
        "password",
        "system prompt",
        "disregard",
        "credential",
        "secret",
        "reveal",
        "do not tell",
        " the ",
        "user",
        "your ",
    )
)
_REVERSED: Final = tuple(
    word[::-1]
    for word in (
        "ignore ",
        "previous",
        "instruction",
        "password",
        "system prompt",
        "disregard",
        "credential",
    )
)
DISGUISE_MARKS: Final = {**dict.fromkeys(_ROTATED, "rot13"), **dict.fromkeys(_REVERSED, "reversed")}
"""Telling words in disguise -> how they are disguised."""

_AROUND: Final = 240


def find_encoded(text: str) -> Iterator[Decoded]:
    """Yield the runs of a text that are other text in an encoding."""
    yield from _base_runs(text)
    if "%" in text:
        for match in _PERCENT.finditer(text):
            start = _word_start(text, match.start())
            plain = unquote(text[start : match.end()])
            yield Decoded(start, match.end(), plain, "percent encoding")
    if "&#" in text:
        for match in _ENTITY.finditer(text):
            yield Decoded(*match.span(), html.unescape(match.group()), "HTML entities")
    if "\\u" in text or "\\x" in text:
        for match in _ESCAPE.finditer(text):
            yield Decoded(*match.span(), _unescape(match.group()), "escapes")


_MAX_WORD: Final = 60


def _word_start(text: str, position: int) -> int:
    """Return where the word before the first encoded character begins."""
    start = position
    while start > max(0, position - _MAX_WORD) and not text[start - 1].isspace():
        start -= 1
    return start


MAX_NUMBERS: Final = 3000
"""Characters of a text in which lists of character codes are looked for; longer texts are data."""


def find_codes(text: str) -> Iterator[Decoded]:
    """Yield lists of character codes in a short text: decimal, hexadecimal or binary."""
    if len(text) > MAX_NUMBERS:
        return
    for match in _CODES.finditer(text):
        codes = [int(one) for one in re.split("[, ]+", match.group())]
        if all(9 <= code < 127 for code in codes):
            yield Decoded(*match.span(), "".join(map(chr, codes)), "character codes")
    for match in _HEX_PAIRS.finditer(text):
        plain = _as_text(bytes.fromhex(re.sub("[ :]", "", match.group())))
        if plain:
            yield Decoded(*match.span(), plain, "hexadecimal")
    for match in _BITS.finditer(text):
        bits = match.group().replace(" ", "")
        plain = _as_text(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)))
        if plain:
            yield Decoded(*match.span(), plain, "binary")


def undisguise(text: str, start: int, end: int, disguise: str) -> Decoded:
    """Return the text around a disguised word without its disguise."""
    first, last = max(0, start - _AROUND), min(len(text), end + _AROUND)
    part = text[first:last]
    plain = codecs.encode(part, "rot13") if disguise == "rot13" else part[::-1]
    return Decoded(start, end, plain, disguise)


def _base_runs(text: str) -> Iterator[Decoded]:
    mask = text.encode("ascii", "replace").translate(_RUN)
    at, runs = mask.find(_SHAPE), 0
    while at >= 0 and runs < MAX_RUNS:
        end = mask.find(b" ", at)
        end = _lines_end(mask, len(text) if end < 0 else end, at)
        decoded = _decode_run(text[at:end])
        runs += 1
        if decoded:
            yield Decoded(at, end, *decoded)
        at = mask.find(_SHAPE, end)


def _lines_end(mask: bytes, end: int, start: int) -> int:
    """Return the end of a run that goes on in the next lines, as wrapped base64 does."""
    width = end - start
    while width >= 60 and mask[end + 1 : end + 9] == b"a" * 8:
        following = mask.find(b" ", end + 1)
        following = len(mask) if following < 0 else following
        if following - end - 1 > width:
            break
        last = following - end - 1 < width
        end = following
        if last:
            break
    return end


def _decode_run(run: str) -> tuple[str, str] | None:
    compact = run.replace("\n", "").replace(" ", "")
    match = None if "-" in compact else _HEX.fullmatch(compact)
    if compact.islower() and not match:
        return None  # base64 and base32 have capitals
    if match:
        plain = _as_text(bytes.fromhex(match[1]))
        return (plain, "hexadecimal") if plain else None
    if _BASE32.fullmatch(compact):
        plain = _try(
            lambda: base64.b32decode(compact.rstrip("=") + "=" * (-len(compact.rstrip("=")) % 8))
        )
        if plain:
            return plain, "base32"
    return _decode_base64(compact)


def _decode_base64(compact: str) -> tuple[str, str] | None:
    value = compact.lstrip("=-_/").partition("=")[0] if "=" in compact[:-2] else compact.rstrip("=")
    if "=" in compact[:-2]:  # a name before it: data=aWdub3Jl...
        value = max(compact.split("="), key=len)
    if not _BASE64.fullmatch(value) or not (
        any(map(str.isupper, value)) and any(map(str.islower, value))
    ):
        return None
    standard = value.replace("-", "+").replace("_", "/")
    for shift in (0,) if "/" not in value else (0, value.rfind("/") + 1):
        part = standard[shift:]
        if len(part) % 4 == 1:
            part = part[:-1]
        plain = _try(lambda part=part: base64.b64decode(part + "=" * (-len(part) % 4)))  # type: ignore[misc]
        if plain:
            return plain, "base64"
    return None


def _try(decode: Callable[[], bytes]) -> str:
    try:
        return _as_text(decode())
    except (ValueError, binascii.Error):
        return ""


def _as_text(data: bytes) -> str:
    """Return bytes as text; empty if they are not readable text."""
    for encoding in ("utf-8", "utf-16-le"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        readable = sum(one.isalnum() or one in " .,:;=_-/@'\"\n{}()" for one in text[:400])
        if (
            readable >= 0.9 * len(text[:400])
            and text.isprintable() | ("\n" in text)
            and len(text) >= 8
        ):
            letters = sum(one.isascii() and one.isalpha() for one in text[:400])
            if encoding == "utf-8" or letters > 0.6 * len(text[:400]):
                return text
    return ""


def _unescape(text: str) -> str:
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))",
        lambda one: chr(int(one[1] or one[2], 16)),
        text,
    )


# Words that are taken apart, or spelled with digits.

_STEMS: Final = (
    "ignor",
    "disreg",
    "previou",
    "instruc",
    "system",
    "promp",
    "passw",
    "secre",
    "credent",
    "overr",
    "bypas",
    "forget",
    "revea",
)
SPACED_MARKS: Final = tuple(
    separator.join(stem[:5])
    for stem in _STEMS
    for separator in (" ", ".", "-", "_", "*", "|", "/", "+", "~", "\u00b7")
)
"""Telling words with something between their letters."""
_LEET: Final = {"i": "i1!", "o": "o0", "e": "e3", "a": "a4@", "s": "s5$", "t": "t7", "l": "l1"}
_PLAIN: Final = str.maketrans("013457@$!|", "oieastasil")
_SPACED: Final = re.compile(r"(?:[a-z0-9@$!][ .\-_*|/+~\u00b7]{1,3}){3,400}[a-z0-9@$!]")
_COLLAPSED: Final = (
    *("ignore", "disregard", "forget", "override", "bypass", "previous", "prior", "instruction", "system", "prompt", "password", "secret"),
    *("credential", "reveal", "rules", "donottell", "user", "send", "token", "above", "allthe", "apikey", "safety", "execute"),
)  # fmt: skip


def _leet_spellings(word: str) -> Iterator[str]:
    spellings = [""]
    for letter in word:
        spellings = [start + one for start in spellings for one in _LEET.get(letter, letter)]
    for one in spellings:
        if one != word and sum(a != b for a, b in zip(one, word, strict=True)) <= 4:
            yield one


LEET_MARKS: Final = tuple(
    spelling
    for stem in (
        "ignore",
        "previo",
        "instru",
        "system",
        "passwo",
        "secret",
        "disreg",
        "overri",
        "prompt",
    )
    for spelling in _leet_spellings(stem)
)
"""Telling words with digits in place of letters."""


def collapse(text: str, start: int) -> Decoded | None:
    """Return the words that are spelled letter by letter at a place, if they say something."""
    match = _SPACED.match(text, start)
    if match is None:
        return None
    letters = re.sub(r"[^a-z]", "", match.group().translate(_PLAIN))
    said = [stem for stem in _COLLAPSED if stem in letters]
    if (len(said) < 2 and len(letters) > 10) or not said:
        return None
    return Decoded(*match.span(), " ".join(said), "letters with separators")


def unleet(text: str, start: int, end: int) -> Decoded:
    """Return the text around a word that is spelled with digits, in letters."""
    first, last = max(0, start - _AROUND), min(len(text), end + _AROUND)
    return Decoded(start, end, text[first:last].translate(_PLAIN), "digits in place of letters")
