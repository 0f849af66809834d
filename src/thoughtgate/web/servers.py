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


def servers_page(context: ConsoleContext, request: Request) -> Response:
    """Serve all servers in the record."""
    servers = context.record.servers().all()
    return context.render_page(request, "servers.html", servers=servers, lists=LISTS)
