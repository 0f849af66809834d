"""The filters of the calls page, as its address states them."""

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request

from thoughtgate.config.durations import parse_duration
from thoughtgate.record.call_rows import parse_time
from thoughtgate.record.ledger_queries import DECISIONS, EXACT, STATUSES
from thoughtgate.web.templating import WORDS

MAX_WORD: Final = 200
"""Maximum characters of a search term."""

CHOICES: Final = {"decision": DECISIONS, "status": STATUSES}
TIMES: Final = ("since", "until")
FILTERS: Final = ("text", "server", "tool", *CHOICES, *TIMES, *EXACT)

_RECORDED: Final = {
    WORDS.get(recorded, recorded).upper(): recorded for recorded in (*DECISIONS, *STATUSES)
}
"""The record's words by the words that the pages use."""


@dataclass(frozen=True, slots=True)
class CallSearch:
    """What a request asks for."""

    asked: dict[str, str]
    faults: list[str] = field(default_factory=list)
    """What is wrong with the filters; an invalid search must not return all calls."""
    before: tuple[float, int] | None = None
    """Where the page begins; None for the newest calls."""

    def query(self, **more: str) -> str:
        """Return the address of this search, with further parameters."""
        given = {name: word for name, word in self.asked.items() if word}
        return urlencode({**given, **{name: word for name, word in more.items() if word}})

    def wanted(self, now: float) -> dict[str, Any]:
        """Return the filters as fields of a ``CallFilter``."""
        chosen: dict[str, Any] = {n: word for n, word in self.asked.items() if n not in TIMES}
        for name in TIMES:
            chosen[name] = _moment(self.asked[name], now) if self.asked[name] else 0.0
        return {**chosen, "before": self.before}


def read_search(request: Request) -> CallSearch:
    """Return the search of a request; verdicts and results may be named as pages name them."""
    query = request.query_params
    asked = {name: query.get(name, "").strip() for name in FILTERS}
    for name in CHOICES:
        asked[name] = _RECORDED.get(asked[name].upper(), asked[name].upper())
    for name in TIMES:
        word = asked[name]
        # Times and durations in ISO 8601 are upper case; our own durations ("1h") are lower case.
        asked[name] = word.upper() if word[:1] in {"p", "P"} or "-" in word else word.lower()
    faults = _faults(asked)
    before = _position(query.get("before", ""))
    if before is None and query.get("before"):
        faults.append("before must be a position from a link of this page")
    return CallSearch({name: word[:MAX_WORD] for name, word in asked.items()}, faults, before)


def shown_word(recorded: str) -> str:
    """Return the word that pages use for a verdict or a result."""
    return WORDS.get(recorded, recorded.lower())


def _position(text: str) -> tuple[float, int] | None:
    at, _, row = text[:64].partition("_")
    if not (row.isascii() and row.isdecimal() and len(row) <= 18):  # noqa: PLR2004 - 64 bits
        return None
    try:
        return (float(at), int(row)) if abs(float(at)) < 1e12 else None  # noqa: PLR2004 - a time
    except ValueError:
        return None


def _moment(word: str, now: float) -> float:
    """Return the time that a word means: a time, or a duration before now.

    Raises:
        ValueError: it is neither.
    """
    found = parse_time(word)
    return found if found is not None else now - parse_duration(word)


def _faults(asked: dict[str, str]) -> list[str]:
    faults = [
        f"{name} must have at most {MAX_WORD} characters"
        for name, word in asked.items()
        if len(word) > MAX_WORD
    ]
    if faults:
        return faults
    for name, words in CHOICES.items():
        if asked[name] and asked[name] not in words:
            given, listed = asked[name].lower(), ", ".join(map(shown_word, words))
            faults.append(f"{name} must be one of {listed}, not {given}")
    for name in TIMES:
        try:
            _moment(asked[name] or "1h", 0.0)
        except ValueError:
            faults.append(
                f"{name} must be a duration such as 15m, 1h or 7d, or a time, not {asked[name]}"
            )
    return faults
