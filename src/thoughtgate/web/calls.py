"""Calls: a search in the ledger, and one call's story from request to result."""

from typing import Final

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
        asked = {
            name: request.query_params.get(name, "").strip()[:MAX_WORD]
            for name in ("text", "server", "tool", "decision", "status", "since")
        }
        wanted = {name: asked[name] for name in ("text", "server", "tool")}
        wanted["decision"] = asked["decision"] if asked["decision"] in DECISIONS else ""
        wanted["status"] = asked["status"] if asked["status"] in STATUSES else ""
        calls = self._site.record.calls(SHOWN, self._since(asked["since"]), **wanted)
        return self._site.page(
            request,
            "calls.html",
            calls=calls,
            asked=asked,
            limit=SHOWN,
            choices={"decision": DECISIONS, "status": STATUSES, "since": SPANS},
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

    def _since(self, text: str) -> float:
        try:
            return self._site.desk.clock() - parse_duration(text) if text else 0.0
        except ValueError:
            return 0.0
