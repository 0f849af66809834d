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
RANKINGS: Final = {
    **dict.fromkeys(("decisions", "statuses", "refusals", "approvals", "frames_refused"), 20),
    **dict.fromkeys(("tools", "servers"), 10),
}
"""The statistics that are drawn as bars, and how many bars at most."""
_NAMES: Final = ("span", "since")
"""Names of the parameter that selects the period; the first one present is used."""
MAX_WORD: Final = 200
"""Maximum characters of an invalid period that are shown in the error."""


def stats_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the statistics of a period."""
    # The calls page names its parameter "since", so a link may use that name here too.
    name = next((one for one in _NAMES if request.query_params.get(one)), "span")
    chosen = request.query_params.get(name, "").strip().lower()[:MAX_WORD] or "1d"
    now = context.approvals.clock()
    stats = context.record.stats(now - SPANS[chosen][1], now) if chosen in SPANS else {}
    if stats:
        # A call without a status has not ended.
        stats["statuses"] = {word or "not ended": n for word, n in stats["statuses"].items()}
    charts = {}
    if stats.get("calls") or stats.get("frames_refused"):
        since, step_s = now - SPANS[chosen][1], stats["step_s"]
        charts = {
            name: plot_ranking(list(stats[name].items())[:shown])
            for name, shown in RANKINGS.items()
        }
        charts["over_time"] = plot_over_time(stats["over_time"], since, now, step_s)
    return context.render_page(
        request, "stats.html", stats=stats, charts=charts, spans=SPANS, name=name, chosen=chosen
    )
