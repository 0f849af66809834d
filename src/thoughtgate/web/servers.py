"""Servers and what they offer: what agents do not get to see, and what has changed."""

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.site import Site

LISTS = (
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resource templates"),
    ("prompts/list", "prompts"),
)


class ServersPage:
    """Serves the servers."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def page(self, request: Request) -> Response:
        """Serve all servers that the record knows."""
        servers = self._site.record.servers().all()
        return self._site.page(request, "servers.html", servers=servers, lists=LISTS)
