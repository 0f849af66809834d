"""The overview: calls by verdict, tool, server, rule and person over a period.

Every number leads to the calls that it counts: the page uses the filters of the calls page.
"""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.core.envelope import render_time
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.plots import plot_over_time, plot_ranking
from thoughtgate.web.templating import WORDS

SPANS: Final = {
    "1h": ("1 hour", 3600.0),
    "1d": ("1 day", 86_400.0),
    "7d": ("7 days", 7 * 86_400.0),
    "30d": ("30 days", 30 * 86_400.0),
}
RANKINGS: Final = {
    "decisions": ("Decisions", "decision", 20),
    "statuses": ("Results", "status", 20),
    "denials": ("Denied by rule", "rule", 10),
    "refusals": ("Errors and refusals by kind", "error_kind", 20),
    "tools": ("Tools", "tool", 10),
    "servers": ("Servers", "server", 10),
    "principals": ("Agents", "principal", 10),
    "approvals": ("Approvals", "approval", 20),
    "approvers": ("Who decided", "approved_by", 10),
    "frames_refused": ("Frames refused", "", 20),
}
"""The statistics that are drawn as bars: title, the filter that selects a bar's calls, how many."""

NOT_ENDED: Final = "not ended"
"""The name of calls without a status."""

_NAMES: Final = ("span", "since")
"""Names of the parameter that selects the period; the first one present is used."""
MAX_WORD: Final = 200
"""Maximum characters of a parameter."""

Link = Callable[..., str]


def overview_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the overview of a period, of all servers or of one."""
    # The calls page names its parameter "since", so a link may use that name here too.
    query = request.query_params
    name = next((one for one in _NAMES if query.get(one)), "span")
    chosen = query.get(name, "").strip().lower()[:MAX_WORD] or "1d"
    server = query.get("server", "").strip()[:MAX_WORD]
    now = context.approvals.clock()
    since = now - SPANS[chosen][1] if chosen in SPANS else now
    stats = context.record.stats(since, now, server) if chosen in SPANS else {}

    def link(**filters: str) -> str:
        return "/calls?" + urlencode({"server": server, "since": chosen, **filters})

    return context.render_page(
        request,
        "overview.html",
        stats=stats,
        charts=_charts(stats, link, since, now),
        rankings=RANKINGS,
        link=link,
        failing=_share(stats),
        servers=context.record.servers().all(),
        changed=len(context.approvals.definitions().servers()),
        spans=SPANS,
        name=name,
        chosen=chosen,
        server=server,
    )


def _charts(stats: dict[str, Any], link: Link, since: float, until: float) -> dict[str, Any]:
    """Return the plots, or nothing if there are no calls."""
    if not stats.get("calls") and not stats.get("frames_refused"):
        return {}
    # A call without a status has not ended.
    stats["statuses"] = {word or NOT_ENDED: n for word, n in stats["statuses"].items()}
    charts = {}
    for key, (_, column, shown) in RANKINGS.items():
        rows = list(stats[key].items())[:shown]
        charts[key] = plot_ranking(
            [(WORDS.get(name, name), n, _leads_to(link, column, name)) for name, n in rows]
        )
    step_s = stats["step_s"]

    def bar(at: float) -> str:
        return link(since=render_time(at), until=render_time(at + step_s))

    charts["over_time"] = plot_over_time(stats["over_time"], since, until, step_s, bar)
    return charts


def _leads_to(link: Link, column: str, name: str) -> str:
    """Return the address of a bar's calls; empty if no filter selects them."""
    if not column or not name or name == NOT_ENDED:
        return ""
    # A rule also has calls that it did not deny.
    return link(**{column: name}, **({"decision": "BLOCK"} if column == "rule" else {}))


def _share(stats: dict[str, Any]) -> str:
    """Return the share of ended calls that failed, such as ``2.5 %``; a timeout has its own bar."""
    ended = {
        word: n for word, n in stats.get("statuses", {}).items() if word not in ("", NOT_ENDED)
    }
    total = sum(ended.values())
    return f"{100 * ended.get('ERROR', 0) / total:.1f} %" if total else "-"
