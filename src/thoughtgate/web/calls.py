"""The calls page, which searches the ledger, and the page of a single call."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.config.durations import parse_duration
from thoughtgate.record.call_rows import parse_time
from thoughtgate.record.ledger_queries import EXACT
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.event_summary import summarize

SHOWN: Final = 100
MAX_WORD: Final = 200
"""Maximum characters of a search term."""

DECISIONS: Final = ("ALLOW", "HOLD", "BLOCK", "THROTTLE")
STATUSES: Final = ("OK", "ERROR", "TIMEOUT", "CANCELLED")
CHOICES: Final = {"decision": DECISIONS, "status": STATUSES}
TIMES: Final = ("since", "until")
FILTERS: Final = ("text", "server", "tool", *CHOICES, *TIMES, *EXACT)
SPANS: Final = (
    ("", "any time"),
    ("15m", "15 minutes"),
    ("1h", "1 hour"),
    ("1d", "1 day"),
    ("7d", "7 days"),
)


def calls_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the calls that match the filters."""
    asked = _asked(request)
    faults = _faults(asked)
    asked = {name: word[:MAX_WORD] for name, word in asked.items()}
    return context.render_page(
        request,
        "calls.html",
        calls=[] if faults else _find(context, asked),
        asked=asked,
        faults=faults,
        limit=SHOWN,
        choices={**CHOICES, "since": _spans(asked["since"])},
        exact=[name for name in (*EXACT, "until") if asked[name]],
    )


def call_page(context: ConsoleContext, request: Request) -> Response:
    """Serve one call with all its events."""
    ident = request.path_params["ident"]
    call = context.record.call(ident)
    if call is None:
        text = "The record does not contain this call, or no longer does."
        return context.render_message(request, 404, "Call not found", text)
    events = [summarize(event) for event in context.record.call_events(ident)]
    return context.render_page(request, "call.html", call=call, events=events)


def _find(context: ConsoleContext, asked: dict[str, str]) -> list[dict[str, Any]]:
    wanted = {name: word for name, word in asked.items() if name not in TIMES}
    now = context.approvals.clock()
    since, until = (_moment(asked[name], now) if asked[name] else 0.0 for name in TIMES)
    return context.record.calls(SHOWN, since, until, **wanted)


def _asked(request: Request) -> dict[str, str]:
    """Return the filters of a request, with verdicts and statuses in upper case."""
    asked = {name: request.query_params.get(name, "").strip() for name in FILTERS}
    for name in CHOICES:
        asked[name] = asked[name].upper()
    for name in TIMES:
        word = asked[name]
        # Times and durations of ISO 8601 are upper case, our durations ("1h") are lower case.
        asked[name] = word.upper() if word[:1] in {"p", "P"} or "-" in word else word.lower()
    return asked


def _moment(word: str, now: float) -> float:
    """Return the time that a duration ago, or a time, means.

    Raises:
        ValueError: it is neither.
    """
    found = parse_time(word)
    return found if found is not None else now - parse_duration(word)


def _faults(asked: dict[str, str]) -> list[str]:
    """Return what is wrong with the filters; an invalid search must not return all calls."""
    faults = [
        f"{name} must have at most {MAX_WORD} characters"
        for name, word in asked.items()
        if len(word) > MAX_WORD
    ]
    if faults:
        return faults
    for name, words in CHOICES.items():
        if asked[name] and asked[name] not in words:
            given = asked[name].lower()
            faults.append(f"{name} must be one of {', '.join(words).lower()}, not {given}")
    for name in TIMES:
        try:
            _moment(asked[name] or "1h", 0.0)
        except ValueError:
            faults.append(
                f"{name} must be a duration such as 15m, 1h or 7d, or a time, not {asked[name]}"
            )
    return faults


def _spans(chosen: str) -> tuple[tuple[str, str], ...]:
    """Return the durations to choose from, including the chosen one."""
    return SPANS if chosen in dict(SPANS) else (*SPANS, (chosen, chosen))
