"""Live traffic: the newest events of the record, and those that come."""

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.happening import tell
from thoughtgate.web.site import Site

SHOWN = 150
"""Events on the page; older ones are a search away."""


class TrafficPage:
    """Serves the traffic."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def page(self, request: Request) -> Response:
        """Serve the newest events, newest first."""
        every = request.query_params.get("every") == "1"
        events = [tell(event) for event in self._site.record.recent(SHOWN, every=every)]
        return self._site.page(
            request,
            "traffic.html",
            events=events,
            every=every,
            record=str(self._site.record.path or ""),
        )
