"""Sums over time: calls by verdict, by tool, by server; how long they took."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.plots import plot_over_time, plot_ranking
from thoughtgate.web.site import Site

SPANS: Final = {
    "1h": ("1 hour", 3600.0),
    "1d": ("1 day", 86_400.0),
    "7d": ("7 days", 7 * 86_400.0),
    "30d": ("30 days", 30 * 86_400.0),
}
_NAMES: Final = ("span", "since")
"""Parameters that say how far back to look; the first that is there counts."""
MAX_WORD: Final = 200
"""Characters of a span that are told back."""


class StatsPage:
    """Serves the sums."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def page(self, request: Request) -> Response:
        """Serve the sums of a span of time."""
        # The page of calls says since.
        name = next((one for one in _NAMES if request.query_params.get(one)), "span")
        chosen = request.query_params.get(name, "").strip().lower()[:MAX_WORD] or "1d"
        now = self._site.desk.clock()
        stats = self._site.record.stats(now - SPANS[chosen][1], now) if chosen in SPANS else {}
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
        return self._site.page(
            request,
            "stats.html",
            stats=stats,
            charts=charts,
            spans=SPANS,
            name=name,
            chosen=chosen,
        )
