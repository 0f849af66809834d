"""The console's template environment, and the filters that format times and words."""

import time
from collections.abc import Mapping
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from thoughtgate.core.envelope import render_time
from thoughtgate.version import __version__
from thoughtgate.web.arguments import pretty_json, render_arguments, visible

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400

TONES: Final[Mapping[str, str]] = {
    "ALLOW": "good", "HOLD": "wait", "BLOCK": "bad", "THROTTLE": "bad", "OK": "good",
    "ERROR": "bad", "TIMEOUT": "bad", "CANCELLED": "dull", "approved": "good", "used": "good",
    "denied": "bad", "rejected": "bad", "expired": "dull", "timeout": "dull", "withdrawn": "dull",
    "void": "dull", "pending": "wait", "asked": "wait", "refused": "bad",
}  # fmt: skip
"""The CSS class that colours a word; the word itself is always shown too."""


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
        arguments=render_arguments,
        clock=shown_clock,
        day=shown_day,
        duration=shown_duration,
        iso=render_time,
        pretty=pretty_json,
        tone=lambda word: TONES.get(word, "dull"),
        visible=visible,
    )
    return environment


def shown_clock(at: float) -> str:
    """Return the local time of day; the browser runs on this machine, in the same time zone."""
    return time.strftime("%H:%M:%S", time.localtime(at)) if at else "-"


def shown_day(at: float) -> str:
    """Return date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) if at else "-"


def shown_duration(seconds: float) -> str:
    """Return a duration in at most two units, such as ``4 min 5 s``."""
    whole = max(0, round(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return (
            f"{whole // _MINUTE} min {whole % _MINUTE} s"
            if whole % _MINUTE
            else f"{whole // _MINUTE} min"
        )
    if whole < _DAY:
        minutes = whole % _HOUR // _MINUTE
        return f"{whole // _HOUR} h {minutes} min" if minutes else f"{whole // _HOUR} h"
    hours = whole % _DAY // _HOUR
    return f"{whole // _DAY} d {hours} h" if hours else f"{whole // _DAY} d"


def shown_left(seconds: float) -> str:
    """Return a countdown such as ``4:05``."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, _HOUR)
    if hours:
        return f"{hours}:{rest // _MINUTE:02d}:{rest % _MINUTE:02d}"
    return f"{rest // _MINUTE}:{rest % _MINUTE:02d}"
