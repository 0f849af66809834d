"""The traffic page: the newest events of the record, with live updates."""

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.event_summary import summarize

SHOWN = 150
"""How many events are shown; older ones can be searched on the calls page."""


class TrafficPage:
    """Serves the traffic page."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context

    def page(self, request: Request) -> Response:
        """Serve the newest events, newest first."""
        every = request.query_params.get("every") == "1"
        events = [summarize(event) for event in self._context.record.recent(SHOWN, every=every)]
        return self._context.render_page(
            request,
            "traffic.html",
            events=events,
            every=every,
            record=str(self._context.record.path or ""),
        )
