"""The console as one ASGI application: its routes, behind its guard."""

from importlib.resources import files
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from thoughtgate.errors import StoreError
from thoughtgate.web.approval import ApprovalPage
from thoughtgate.web.calls import CallsPage
from thoughtgate.web.grants import GrantsPage
from thoughtgate.web.inbox import InboxPage
from thoughtgate.web.live import LiveStream
from thoughtgate.web.login import LoginPage
from thoughtgate.web.request_checks import App, Guard
from thoughtgate.web.servers import ServersPage
from thoughtgate.web.site import Site
from thoughtgate.web.stats import StatsPage
from thoughtgate.web.traffic import TrafficPage
from thoughtgate.web.webhook import WebhookEndpoint

STATIC: Final = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "mark.svg": "image/svg+xml",
}
"""Everything a page loads; nothing else can be fetched by a path."""


def make_app(site: Site, port: int) -> App:
    """Return the console's application for a listener on a port of the loopback."""
    login, inbox, approval = LoginPage(site), InboxPage(site), ApprovalPage(site)
    calls, grants = CallsPage(site), GrantsPage(site)
    static = {
        name: files("thoughtgate.web").joinpath("static", name).read_bytes() for name in STATIC
    }

    def serve_static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static:
            return Response("there is nothing here\n", 404, media_type="text/plain")
        return Response(static[name], media_type=STATIC[name])

    def not_found(request: Request, error: Exception) -> Response:
        del error
        return site.say(request, 404, "There is nothing here", "The address leads nowhere.")

    def unavailable(request: Request, error: Exception) -> Response:
        return site.say(request, 503, "This cannot be read now", str(error))

    routes = [
        Route("/login/{code}", login.sign_in),
        Route("/logout", login.sign_out, methods=["POST"]),
        Route("/static/{name}", serve_static),
        Route("/", inbox.page),
        Route("/cards", inbox.cards),
        Route("/live", LiveStream(site).serve),
        Route("/approvals/{ident}", approval.page),
        Route("/approvals/{ident}", approval.decide, methods=["POST"]),
        Route("/traffic", TrafficPage(site).page),
        Route("/calls", calls.page),
        Route("/calls/{ident}", calls.one),
        Route("/servers", ServersPage(site).page),
        Route("/grants", grants.page),
        Route("/grants/{ident}/revoke", grants.revoke, methods=["POST"]),
        Route("/stats", StatsPage(site).page),
        Route("/webhook/decision", WebhookEndpoint(site).decide, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={404: not_found, StoreError: unavailable})
    return Guard(app, site.sessions, port, refused=site.refused, turn_away=login.turn_away)
