"""The console's ASGI application: its routes, behind the request checks."""

from importlib.resources import files
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from thoughtgate.errors import StoreError
from thoughtgate.web.approval import ApprovalPage
from thoughtgate.web.calls import CallsPage
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.grants import GrantsPage
from thoughtgate.web.inbox import InboxPage
from thoughtgate.web.live import LiveStream
from thoughtgate.web.login import LoginPage
from thoughtgate.web.request_checks import App, RequestCheckMiddleware
from thoughtgate.web.servers import ServersPage
from thoughtgate.web.stats import StatsPage
from thoughtgate.web.traffic import TrafficPage
from thoughtgate.web.webhook import WebhookEndpoint

STATIC: Final = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "mark.svg": "image/svg+xml",
}
"""The files that pages load; no other file can be requested."""


def make_app(context: ConsoleContext, port: int) -> App:
    """Return the console's application for a listener on a loopback port."""
    login, inbox, approval = LoginPage(context), InboxPage(context), ApprovalPage(context)
    calls, grants = CallsPage(context), GrantsPage(context)
    static = {
        name: files("thoughtgate.web").joinpath("static", name).read_bytes() for name in STATIC
    }

    def serve_static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static:
            return Response("not found\n", 404, media_type="text/plain")
        return Response(static[name], media_type=STATIC[name])

    def not_found(request: Request, error: Exception) -> Response:
        del error
        return context.render_message(
            request, 404, "Page not found", "The console has no page at this address."
        )

    def unavailable(request: Request, error: Exception) -> Response:
        return context.render_message(request, 503, "Temporarily unavailable", str(error))

    routes = [
        Route("/login/{code}", login.sign_in),
        Route("/logout", login.sign_out, methods=["POST"]),
        Route("/static/{name}", serve_static),
        Route("/", inbox.page),
        Route("/cards", inbox.cards),
        Route("/live", LiveStream(context).serve),
        Route("/approvals/{ident}", approval.page),
        Route("/approvals/{ident}", approval.decide, methods=["POST"]),
        Route("/traffic", TrafficPage(context).page),
        Route("/calls", calls.page),
        Route("/calls/{ident}", calls.one),
        Route("/servers", ServersPage(context).page),
        Route("/grants", grants.page),
        Route("/grants/{ident}/revoke", grants.revoke, methods=["POST"]),
        Route("/stats", StatsPage(context).page),
        Route("/webhook/decision", WebhookEndpoint(context).decide, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={404: not_found, StoreError: unavailable})
    return RequestCheckMiddleware(
        app, context.sessions, port, refused=context.refused, reject=login.reject
    )
