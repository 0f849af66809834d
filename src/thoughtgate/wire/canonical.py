"""Canonical JSON and the hash of a call's arguments.

Keys are sorted by code point, there is no white space, and strings escape only what JSON
requires. Integers are exact at any size, integral floats are written as integers, and other
floats in the shortest form that reads back, with ECMAScript's thresholds for exponents.
"""

import hashlib
import json
from typing import Any, Final

_string = json.JSONEncoder(ensure_ascii=False).encode

_EXPONENT_FROM: Final = 1e21
"""ECMAScript writes numbers from this size on with an exponent."""


class NotCanonical(ValueError):  # noqa: N818 - says what the value is
    """The value has no canonical form: NaN, Infinity, a lone surrogate or a foreign type."""


def canonical_json(value: Any) -> str:
    """Return the canonical text of a JSON value."""
    text = _render(value) if has_float(value) else _plain(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotCanonical("a lone surrogate has no UTF-8 form") from None
    return text


def args_hash(arguments: dict[str, Any] | None) -> str:
    """Return the SHA-256 of the canonical arguments; absent arguments hash as ``{}``."""
    text = canonical_json(arguments if arguments is not None else {})
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _refuse(value: Any) -> Any:
    raise NotCanonical(f"{type(value).__name__} is not JSON")


_plain = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_refuse
).encode
"""Writes everything in canonical form except floats."""


_EXACT: Final = frozenset({str, int, bool, type(None)})
"""The types of single values that all encoders write in the same way."""


def has_float(value: Any) -> bool:
    """Tell whether a JSON value contains a float, which encoders write in different ways."""
    kind = type(value)
    if kind is not dict and kind is not list:
        return kind is float
    members = value.values() if kind is dict else value
    if _EXACT.issuperset(map(type, members)):  # true for most arguments, and without a loop here
        return False
    for one in members:
        kind = type(one)
        if kind is float or ((kind is dict or kind is list) and has_float(one)):
            return True
    return False


def _render(value: Any) -> str:
    if isinstance(value, dict):
        members = (f"{_string(key)}:{_render(value[key])}" for key in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_render, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value, ensure_ascii=False, default=_refuse)


def _number(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN is the one value unequal to itself
        raise NotCanonical("NaN and Infinity are not JSON")
    if value.is_integer() and abs(value) < _EXPONENT_FROM:
        return str(int(value))
    digits, _, exponent = repr(value).partition("e")
    if not exponent:
        return digits
    power = int(exponent)
    if -7 < power < 0:  # noqa: PLR2004 - ECMAScript writes 1e-6 as 0.000001 and 1e-7 with an exponent
        return _without_exponent(digits, power)
    return f"{digits.removesuffix('.0')}e{power:+d}"


def _without_exponent(digits: str, power: int) -> str:
    sign = "-" if digits.startswith("-") else ""
    whole = digits.lstrip("-").replace(".", "").removesuffix("0") or "0"
    return f"{sign}0.{'0' * (-power - 1)}{whole}"
