"""The overview: calls in a period, pending requests, changed definitions, and servers' states.

Every number links to the calls that it counts: the page uses the filters of the calls page.
"""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.core.envelope import render_time
from thoughtgate.status.definition_history import DefinitionHistory, was_first_seen
from thoughtgate.status.overview import gather_gates
from thoughtgate.status.server_status import gather_servers
from thoughtgate.stores.pins import server_of
from thoughtgate.web.administration.servers import TONES
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.plots import Curve, plot_curves, plot_over_time, plot_ranking
from thoughtgate.web.templating import WORDS

SPANS: Final = {
    "1h": ("1 hour", 3600.0),
    "1d": ("1 day", 86_400.0),
    "7d": ("7 days", 7 * 86_400.0),
    "30d": ("30 days", 30 * 86_400.0),
}
RANKINGS: Final = {
    "denials": ("Denied by rule", "rule", 6),
    "refusals": ("Failed and denied by kind", "error_kind", 6),
    "tools": ("Tools", "tool", 6),
    "servers": ("Servers", "server", 6),
    "principals": ("Callers", "principal", 6),
    "approvers": ("Who decided", "approved_by", 6),
    "approvals": ("Approvals", "approval", 6),
    "statuses": ("Results", "status", 6),
    "frames_refused": ("Frames refused", "", 6),
}
"""The statistics drawn as bars: title, filter that selects a bar's calls, number of bars."""

NOT_ENDED: Final = "not ended"
"""The name of calls without a status."""

_NAMES: Final = ("span", "since")
"""Names of the parameter that selects the period; the first one present is used."""
MAX_WORD: Final = 200
"""Maximum characters of a parameter."""

SHOWN_WAITING: Final = 5
VERIFY_FORM: Final = "verify"

Link = Callable[..., str]


def overview_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the overview of a period, of all servers or of one."""
    # The calls page names its parameter "since", so a link may use that name here too.
    query = request.query_params
    name = next((one for one in _NAMES if query.get(one)), "span")
    chosen = query.get(name, "").strip().lower()[:MAX_WORD] or "1d"
    server = query.get("server", "").strip()[:MAX_WORD]
    now = context.approvals.clock()
    stats: dict[str, Any] = {}
    since = now
    if chosen in SPANS:
        stats = context.record.stats(now - SPANS[chosen][1], now, server)
        since = stats.get("since", now)

    def link(**filters: str) -> str:
        return "/calls?" + urlencode({"server": server, "since": render_time(since), **filters})

    history = DefinitionHistory(context.approvals.pins())
    known = [one for one in stats.get("servers", ()) if one]
    servers = gather_servers(gather_gates(context.state), (*known, *history.names()), {})
    return context.render_page(
        request,
        "overview.html",
        stats=stats,
        charts=_charts(stats, link, since, now),
        rankings=RANKINGS,
        link=link,
        failing=_share(stats),
        servers=servers,
        tones=TONES,
        changed=len(context.approvals.definitions().servers()),
        definitions=[
            (line, server_of(line.server), was_first_seen(line))
            for line in history.recent(since if stats else now - 86_400.0, server)
        ],
        pending=[one for one in context.approvals.pending() if server in {"", one.server}],
        shown_waiting=SHOWN_WAITING,
        integrity=context.integrity,
        spans=SPANS,
        name=name,
        chosen=chosen,
        server=server,
    )


async def verify_record(context: ConsoleContext, request: Request) -> Response:
    """Start a verification of the record."""
    return await context.apply_form(request, _verify, "Nothing was started.")


def _verify(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    if not context.verify_form(request, form, VERIFY_FORM):
        text = "Nothing was started: the form was already submitted or has expired."
        return context.render_message(request, 403, "Invalid form", text)
    if context.integrity is None:
        text = "This console has no record that can be read back."
        return context.render_message(request, 404, "Nothing was started", text)
    context.integrity.begin(context.reviewer(request).by)
    return RedirectResponse("/overview#record", 303)


def _charts(stats: dict[str, Any], link: Link, since: float, until: float) -> dict[str, Any]:
    """Return the plots, or nothing if there are no calls."""
    if not stats.get("calls") and not stats.get("frames_refused"):
        return {}
    # A call without a status has not ended.
    stats["statuses"] = {word or NOT_ENDED: n for word, n in stats["statuses"].items()}
    charts = {}
    for key, (_, column, shown) in RANKINGS.items():
        rows = list(stats[key].items())[:shown]
        if not rows:
            continue
        charts[key] = plot_ranking(
            [(WORDS.get(name, name), n, _leads_to(link, column, name)) for name, n in rows]
        )
    step_s = stats["step_s"]

    def bar(at: float) -> str:
        return link(since=render_time(at), until=render_time(at + step_s))

    charts["over_time"] = plot_over_time(stats["over_time"], since, until, step_s, bar)
    return {**charts, **_curves(stats, bar, since, until)}


def _curves(
    stats: dict[str, Any], bar: Callable[[float], str], since: float, until: float
) -> dict[str, Any]:
    """Return the curves of latency and of failed calls over time, where there are any."""
    charts, step_s = dict[str, Any](), stats["step_s"]
    times = stats.get("latency_over_time")
    if times:
        curves = [
            Curve("p50", "c-middle", {at: p50 for at, p50, _ in times}),
            Curve("p95", "c-high", {at: p95 for at, _, p95 in times}),
        ]
        title = "latency over time"
        charts["latency"] = plot_curves(curves, since, until, step_s, bar, "ms", title)
    ended = stats.get("failed_over_time")
    if ended:
        shares = {at: round(100 * failed / calls, 2) for at, calls, failed in ended}
        curve, title = Curve("failed", "c-failed", shares), "failed calls over time"

        def failed(at: float) -> str:
            return f"{bar(at)}&decision=ALLOW&status=ERROR"

        charts["failed"] = plot_curves([curve], since, until, step_s, failed, "%", title)
    return charts


def _leads_to(link: Link, column: str, name: str) -> str:
    """Return the address of a bar's calls; empty if no filter selects them."""
    if not column or not name or name == NOT_ENDED:
        return ""
    # The ranking counts denied calls only, but a rule may also match calls that were not denied.
    return link(**{column: name}, **({"decision": "BLOCK"} if column == "rule" else {}))


def _share(stats: dict[str, Any]) -> str:
    """Return the share of allowed calls that failed, such as ``2.5 %``."""
    allowed = stats.get("decisions", {}).get("ALLOW", 0)
    return f"{100 * stats['failed'] / allowed:.1f} %" if allowed else "-"
