"""Calls: a search in the ledger, and one call's story from request to result."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.config.durations import parse_duration
from thoughtgate.web.happening import tell
from thoughtgate.web.site import Site

SHOWN: Final = 100
MAX_WORD: Final = 200
"""Characters of a search word."""

DECISIONS: Final = ("ALLOW", "HOLD", "BLOCK", "THROTTLE")
STATUSES: Final = ("OK", "ERROR", "TIMEOUT", "CANCELLED")
CHOICES: Final = {"decision": DECISIONS, "status": STATUSES}
FILTERS: Final = ("text", "server", "tool", "decision", "status", "since")
SPANS: Final = (
    ("", "any time"),
    ("15m", "15 minutes"),
    ("1h", "1 hour"),
    ("1d", "1 day"),
    ("7d", "7 days"),
)


class CallsPage:
    """Serves the search and single calls."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def page(self, request: Request) -> Response:
        """Serve the calls that pass a filter."""
        asked = _asked(request)
        faults = _faults(asked)
        asked = {name: word[:MAX_WORD] for name, word in asked.items()}
        return self._site.page(
            request,
            "calls.html",
            calls=[] if faults else self._find(asked),
            asked=asked,
            faults=faults,
            limit=SHOWN,
            choices={**CHOICES, "since": _spans(asked["since"])},
        )

    def one(self, request: Request) -> Response:
        """Serve one call."""
        ident = request.path_params["ident"]
        call = self._site.record.call(ident)
        if call is None:
            text = "The record does not know it, or no longer."
            return self._site.say(request, 404, "There is no such call", text)
        story = [tell(event) for event in self._site.record.story(ident)]
        return self._site.page(request, "call.html", call=call, story=story)

    def _find(self, asked: dict[str, str]) -> list[dict[str, Any]]:
        wanted = {name: word for name, word in asked.items() if name != "since"}
        ago = asked["since"]
        since = self._site.desk.clock() - parse_duration(ago) if ago else 0.0
        return self._site.record.calls(SHOWN, since, **wanted)


def _asked(request: Request) -> dict[str, str]:
    """Return what is searched for, words of ours in the case that we write them in."""
    asked = {name: request.query_params.get(name, "").strip() for name in FILTERS}
    for name in CHOICES:
        asked[name] = asked[name].upper()
    ago = asked["since"]
    # Of durations only those of ISO 8601 are written in capitals.
    asked["since"] = ago.upper() if ago[:1] in {"p", "P"} else ago.lower()
    return asked


def _faults(asked: dict[str, str]) -> list[str]:
    """Say what cannot be searched for: such a search finds nothing, rather than everything."""
    faults = [
        f"{name} has at most {MAX_WORD} characters"
        for name, word in asked.items()
        if len(word) > MAX_WORD
    ]
    if faults:
        return faults
    for name, words in CHOICES.items():
        if asked[name] and asked[name] not in words:
            said = asked[name].lower()
            faults.append(f"{name} is one of {', '.join(words).lower()}, not {said}")
    try:
        parse_duration(asked["since"] or "1h")
    except ValueError:
        faults.append(f"since is a span of time such as 15m, 1h or 7d, not {asked['since']}")
    return faults


def _spans(chosen: str) -> tuple[tuple[str, str], ...]:
    """Return the spans to choose from, and the one that is chosen."""
    return SPANS if chosen in dict(SPANS) else (*SPANS, (chosen, chosen))
