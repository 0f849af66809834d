"""The statistics page: calls by verdict, tool and server, and their latency."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.plots import plot_over_time, plot_ranking

SPANS: Final = {
    "1h": ("1 hour", 3600.0),
    "1d": ("1 day", 86_400.0),
    "7d": ("7 days", 7 * 86_400.0),
    "30d": ("30 days", 30 * 86_400.0),
}
_NAMES: Final = ("span", "since")
"""Names of the parameter that selects the period; the first one present is used."""
MAX_WORD: Final = 200
"""Maximum characters of an invalid period that are shown in the error."""


class StatsPage:
    """Serves the statistics."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context

    def page(self, request: Request) -> Response:
        """Serve the statistics of a period."""
        # The calls page names its parameter "since", so a link may use that name here too.
        name = next((one for one in _NAMES if request.query_params.get(one)), "span")
        chosen = request.query_params.get(name, "").strip().lower()[:MAX_WORD] or "1d"
        now = self._context.approvals.clock()
        stats = self._context.record.stats(now - SPANS[chosen][1], now) if chosen in SPANS else {}
        charts = {}
        if stats.get("calls") or stats.get("frames_refused"):
            charts = {
                "time": plot_over_time(
                    stats["over_time"], stats["since"], stats["until"], stats["step_s"]
                ),
                "decisions": plot_ranking(list(stats["decisions"].items())),
                "statuses": plot_ranking(
                    [(status or "not ended", count) for status, count in stats["statuses"]]
                ),
                "tools": plot_ranking(stats["tools"]),
                "servers": plot_ranking(stats["servers"]),
                "refusals": plot_ranking(stats["refusals"]),
                "approvals": plot_ranking(stats["approvals"]),
                "frames": plot_ranking(stats["frames_refused"]),
            }
        return self._context.render_page(
            request,
            "stats.html",
            stats=stats,
            charts=charts,
            spans=SPANS,
            name=name,
            chosen=chosen,
        )
