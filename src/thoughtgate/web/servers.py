"""The servers page: what each server offers, what is hidden from agents, what has changed."""

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.console_context import ConsoleContext

LISTS = (
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resource templates"),
    ("prompts/list", "prompts"),
)


class ServersPage:
    """Serves the list of servers."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context

    def page(self, request: Request) -> Response:
        """Serve all servers in the record."""
        servers = self._context.record.servers().all()
        return self._context.render_page(request, "servers.html", servers=servers, lists=LISTS)
