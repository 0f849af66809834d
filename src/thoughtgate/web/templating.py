"""The console's template environment, and the filters that format times and words."""

import time
from collections.abc import Mapping
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from thoughtgate.core.approval import extra_json
from thoughtgate.core.envelope import render_time
from thoughtgate.version import __version__
from thoughtgate.web.approvals.arguments import gist, render_arguments, visible
from thoughtgate.wire.json_text import pretty_json

_UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))

TONES: Final[Mapping[str, str]] = {
    "ALLOW": "good", "HOLD": "wait", "BLOCK": "bad", "THROTTLE": "bad", "OK": "good",
    "ERROR": "bad", "TIMEOUT": "bad", "CANCELLED": "dull", "approved": "good", "used": "good",
    "denied": "bad", "rejected": "bad", "expired": "dull", "timeout": "dull", "withdrawn": "dull",
    "void": "dull", "pending": "wait", "asked": "wait", "refused": "bad",
}  # fmt: skip
"""The CSS class that colours a word; the word itself is always shown too."""

WORDS: Final = {"ALLOW": "allowed", "HOLD": "held", "BLOCK": "denied", "THROTTLE": "limited", "ERROR": "failed", "rejected": "denied", "used": "approved"}  # fmt: skip
"""How pages name verdicts and results; the other words of the record are shown as they are."""


def make_environment() -> Environment:
    """Return the environment for all pages: it escapes values and rejects unknown names."""
    environment = Environment(
        loader=PackageLoader("thoughtgate.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["version"] = __version__
    environment.filters.update(
        age=shown_age,
        arguments=render_arguments,
        extra=extra_json,
        gist=gist,
        clock=shown_clock,
        day=shown_day,
        duration=shown_duration,
        iso=render_time,
        moment=shown_moment,
        pretty=pretty_json,
        tone=lambda word: TONES.get(word, "dull"),
        word=lambda word: WORDS.get(word, word.lower()),
        visible=visible,
    )
    return environment


def shown_clock(at: float) -> str:
    """Return the local time of day; the browser is usually on this machine, in the same time zone."""
    return time.strftime("%H:%M:%S", time.localtime(at)) if at else "-"


def shown_day(at: float) -> str:
    """Return date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) if at else "-"


def shown_moment(at: float) -> str:
    """Return date, time with milliseconds, and the time zone."""
    if not at:
        return "-"
    zone = time.strftime("%z", time.localtime(at))
    # Rounded, as milliseconds are not exact as floating-point seconds.
    milli = int(at * 1000 + 0.5) % 1000
    return f"{shown_day(at + 0.0005)}.{milli:03d} {zone[:3]}:{zone[3:]}"


def shown_age(seconds: float) -> str:
    """Return how long ago something was, in one unit, as the script of the pages writes it."""
    passed = max(0, round(seconds))
    unit, size = next((one for one in _UNITS if passed >= one[1]), _UNITS[-1])
    return f"{passed // size} {unit} ago"


def shown_duration(seconds: float) -> str:
    """Return a duration in at most two units, such as ``4 min 5 s``."""
    rest = max(0, round(seconds))
    counts = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        counts.append((count, unit))
    first = next((at for at, (count, _) in enumerate(counts) if count), 0)
    return (
        " ".join(f"{count} {unit}" for count, unit in counts[first : first + 2] if count) or "0 s"
    )
