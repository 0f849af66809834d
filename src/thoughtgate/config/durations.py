"""Durations, rates and sizes as people write them: ``1h30m``, ``PT10M``, ``30/m``, ``64MiB``.

A bare number is not a duration, because it has no unit.
"""

import re
from typing import Final

MAX_SECONDS: Final = 366 * 86_400
"""A year; a longer duration is a mistake."""

_UNITS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
"""Milliseconds."""
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|d|w)")
_PLAIN: Final = re.compile(rf"(?:{_PART.pattern} ?)+")
_NUMBER: Final = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)"
_ISO: Final = re.compile(
    rf"P(?=.)(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=.)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_ISO_UNITS: Final = ("w", "d", "h", "m", "s")
_SECOND: Final = 10**9
"""Durations are added up as whole nanoseconds, so that ``0.1s`` and ``100ms`` are the same."""
_SIZE: Final = re.compile(r"([0-9]{1,15})\s?(B|KiB|MiB|GiB|KB|MB|GB)?")
_SIZE_UNITS: Final = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
}


def parse_duration(text: str) -> float:
    """Return the seconds of ``500ms``, ``10m``, ``1h30m``, ``1h 30m`` or ISO 8601 ``PT10M``.

    Raises:
        ValueError: the text is not a duration, or is longer than a year.
    """
    nanoseconds = _plain(text) if _PLAIN.fullmatch(text) else _iso(text)
    if nanoseconds is None:
        raise ValueError("must be a duration with a unit, such as 500ms, 30s, 10m, 1h30m or PT10M")
    if nanoseconds > MAX_SECONDS * _SECOND:
        raise ValueError("must be at most a year")
    return nanoseconds / _SECOND


def _plain(text: str) -> int:
    return sum(_nanoseconds(count, unit) for count, unit in _PART.findall(text))


def _iso(text: str) -> int | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    counts = zip(match.groups(), _ISO_UNITS, strict=True)
    return sum(_nanoseconds(count, unit) for count, unit in counts if count)


def _nanoseconds(count: str, unit: str) -> int:
    whole, _, decimals = count.partition(".")
    return int(whole + decimals.ljust(6, "0")) * _UNITS[unit]


def render_duration(seconds: float) -> str:
    """Return a duration as ``parse_duration`` reads it, to the millisecond."""
    rest = round(seconds * 1000)
    text = ""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def parse_rate(text: str) -> tuple[int, float]:
    """Return count and seconds of ``30/m``, ``5/s``, ``100/h`` or ``10/30s``.

    Raises:
        ValueError: the text is not a rate.
    """
    count, slash, period = text.partition("/")
    period = period if period[:1].isdigit() else f"1{period}"
    try:
        seconds = parse_duration(period)
    except ValueError:
        seconds = 0.0
    if not slash or not re.fullmatch(r"[0-9]{1,9}", count) or int(count) == 0 or not seconds:
        raise ValueError("must be a number of calls per period, such as 30/m, 5/s, 100/h or 10/30s")
    return int(count), seconds


def parse_budget(value: object) -> tuple[int, float]:
    """Return calls and seconds of ``200`` (0 seconds: no window), ``200/1d`` or ``200/d``.

    Raises:
        ValueError: the value is not a budget.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value, 0.0
    text = value if isinstance(value, str) else ""
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text), 0.0
    try:
        return parse_rate(text)
    except ValueError:
        wrong = "must be a number of calls, or one per window, such as 200, 200/1d or 50/8h"
        raise ValueError(wrong) from None


def parse_size(text: str) -> int:
    """Return the bytes of ``1048576``, ``64KB`` or ``10MiB``.

    Raises:
        ValueError: the text is not a size.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("must be a size in bytes or with a unit, such as 65536, 64KiB or 10MB")
    return int(match[1]) * _SIZE_UNITS[match[2] or "B"]
