"""The traffic page: the newest events of the record, with live updates."""

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.call_pages.event_summary import summarize
from thoughtgate.web.console_context import ConsoleContext

SHOWN = 150
"""How many events are shown; older ones can be searched on the calls page."""


def traffic_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the newest events, newest first."""
    every = request.query_params.get("every") == "1"
    events = [summarize(event) for event in context.record.recent(SHOWN, every=every)]
    return context.render_page(
        request, "traffic.html", events=events, every=every, record=str(context.record.path or "")
    )
