"""Personal data that can be validated: card numbers, bank accounts, social security numbers.

The places to look at are found in a mask of the text, in which every digit is ``0`` and every
capital ``A``: one translation and a few searches, whatever the text is.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.finding import HARD, SOFT


class Personal(NamedTuple):
    """A number that identifies a person or an account."""

    check: str
    tier: str
    start: int
    end: int
    what: str


def _mask_table() -> bytes:
    table = bytearray(b"." * 256)
    for byte in range(256):
        character = chr(byte)
        if byte < 128 and character.isdigit():
            table[byte] = ord("0")
        elif byte < 128 and character.isupper():
            table[byte] = ord("A")
        elif character in " -":
            table[byte] = byte
    return bytes(table)


_MASK: Final = _mask_table()
_CARD_SHAPES: Final = (
    b"0000000000000",
    b"0000 0000 0000",
    b"0000-0000-0000",
    b"0000 000000 0000",
    b"0000-000000-0000",
)
_CARD: Final = re.compile(r"[0-9](?:[ -]?[0-9]){12,18}")
_CONTEXT: Final = re.compile(
    r"(?i)card|visa|master|amex|cvv|cvc|expir|payment|credit|debit|pan\b|billing|tarjeta|carte|karte|cartão|卡"
)
_NUMBERS: Final = frozenset(
    [
        "4111111111111111",
        "4242424242424242",
        "4012888888881881",
        "4000056655665556",
        "5555555555554444",
        "5105105105105100",
        "378282246310005",
        "371449635398431",
        "6011111111111117",
        "6011000990139424",
        "3530111333300000",
        "3566002020360505",
        "4000000000000002",
        "4000000000009995",
        "2223003122003222",
        "30569309025904",
        "4222222222222",
        "5454545454545454",
        "4007000000027",
    ]
)
"""Numbers that payment services publish for tests."""

_LENGTHS: Final = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28, "CH": 21,
    "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27,
    "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27,
    "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TN": 24, "TR": 26, "UA": 29,
    "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
"""Length of an IBAN by country (SWIFT's registry)."""
_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}")
_KNOWN_IBANS: Final = frozenset(
    {
        "DE89370400440532013000",
        "GB82WEST12345698765432",
        "GB29NWBK60161331926819",
        "FR1420041010050500013M02606",
        "CH9300762011623852957",
        "NL91ABNA0417164300",
        "ES9121000418450200051332",
        "BE68539007547034",
        "GB33BUKB20201555555555",
    }
)
_SSN: Final = re.compile(r"(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![0-9-])")
_SSN_CONTEXT: Final = re.compile(r"(?i)\bssn\b|social[ _-]security|taxpayer|\btin\b|tax id|ssn")
_FAKE_SSN: Final = frozenset({"123-45-6789", "078-05-1120", "219-09-9999"})
_AROUND: Final = 60


def find_personal(text: str) -> Iterator[Personal]:
    """Yield the cards, accounts and identity numbers of a text."""
    mask = text.encode("ascii", "replace").translate(_MASK)
    yield from _cards(text, mask)
    yield from _ibans(text, mask)
    for at in _places(mask, b"000-00-0000"):
        found = _SSN.match(text, at)
        outside = not at or not (text[at - 1].isdigit() or text[at - 1] == "-")
        if found and outside and _SSN_CONTEXT.search(text, max(0, at - _AROUND), at + _AROUND):
            fake = found.group() in _FAKE_SSN
            yield Personal(
                checks.NUMBER, SOFT if fake else HARD, at, found.end(), "a social security number"
            )


def _places(mask: bytes, shape: bytes) -> Iterator[int]:
    at = mask.find(shape)
    while at >= 0:
        yield at
        at = mask.find(shape, at + 1)


def _cards(text: str, mask: bytes) -> Iterator[Personal]:
    done = 0
    for at in sorted({place for shape in _CARD_SHAPES for place in _run_starts(mask, shape)}):
        if at < done:
            continue
        match = _CARD.match(text, at)
        if match is None:
            continue
        done = match.end()
        digits = re.sub("[ -]", "", match.group())
        if not is_card(digits):
            # An expiry date or an amount behind the number is not a part of it.
            digits = match.group().partition(" ")[0]
            match = re.compile(digits).match(text, at) or match
        follows = text[match.end() : match.end() + 1]
        precedes = text[at - 1 : at]
        if (
            follows.isalnum()
            or precedes.isalnum()
            or precedes in {".", "_", "/"}
            or not is_card(digits)
        ):
            continue
        context = _CONTEXT.search(text, max(0, at - _AROUND), match.end() + _AROUND)
        if digits in _NUMBERS and _is_sample(text, at, match.end()):
            continue
        tier = HARD if context and digits not in _NUMBERS else SOFT
        if (
            not context
            and match.group() == digits
            and digits not in _NUMBERS
            and _is_column(text, at)
        ):
            continue
        yield Personal(checks.CARD, tier, at, match.end(), "the number of a payment card")


_SAMPLE: Final = re.compile(
    r"(?i)\btest|example|sample|sandbox|dummy|docs\b|documentation|wikipedia|fixture|e\.g\.|beispiel|ejemplo|exemple"
)


def _is_sample(text: str, start: int, end: int) -> bool:
    """Tell whether the words around a documented number say that it is one."""
    return _SAMPLE.search(text, max(0, start - _AROUND), end + _AROUND) is not None


def _is_column(text: str, at: int) -> bool:
    """Tell whether a number stands in a table of numbers, where one in ten passes the check digit."""
    around = text[max(0, at - _AROUND) : at] + text[at + 19 : at + 19 + _AROUND]
    return len(re.findall("[0-9]{10,}", around)) >= 1


def _run_starts(mask: bytes, shape: bytes) -> Iterator[int]:
    """Yield where runs of a shape begin; within a long run of digits only its start."""
    at = mask.find(shape)
    while at >= 0:
        if at == 0 or mask[at - 1] != 48:
            yield at
            at = mask.find(shape, at + 1)
        else:
            end = at
            while end < len(mask) and mask[end] == 48:
                end += 1
            at = mask.find(shape, end)


def is_card(digits: str) -> bool:
    """Tell whether digits are a card number of a known issuer."""
    return len(digits) in _issuer_lengths(digits) and is_luhn(digits) and len(set(digits)) > 1


def _issuer_lengths(digits: str) -> tuple[int, ...]:
    two, four = int(digits[:2]), int(digits[:4])
    if digits[0] == "4":
        return 13, 16, 19
    if (
        51 <= two <= 55
        or 2221 <= four <= 2720
        or four == 6011
        or two == 65
        or 644 <= four // 10 <= 649
    ):
        return (16,)
    if two in {34, 37}:
        return (15,)
    if 3528 <= four <= 3589 or two == 62:
        return 16, 19
    return (14,) if two in {36, 38} or 300 <= four // 10 <= 305 else ()


def is_luhn(digits: str) -> bool:
    """Tell whether the last digit is the Luhn check digit."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if index % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _ibans(text: str, mask: bytes) -> Iterator[Personal]:
    for at in _places(mask, b"AA00"):
        length = _LENGTHS.get(text[at : at + 2])
        if length is None or (at and text[at - 1].isalnum()):
            continue
        match = _IBAN.match(text, at)
        if match is None:
            continue
        compact = re.sub("[ -]", "", match.group())[:length]
        if len(compact) == length and is_iban(compact):
            if compact in _KNOWN_IBANS and _is_sample(text, at, match.end()):
                continue
            tier = SOFT if compact in _KNOWN_IBANS else HARD
            yield Personal(checks.IBAN, tier, at, match.end(), "a bank account number")


def is_iban(compact: str) -> bool:
    """Tell whether the check digits of an IBAN are right (ISO 7064, mod 97)."""
    number = "".join(str(int(one, 36)) for one in compact[4:] + compact[:4])
    return int(number) % 97 == 1
