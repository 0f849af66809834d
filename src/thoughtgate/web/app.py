"""The console's ASGI application: its routes, behind the request checks."""

from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Final, TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from thoughtgate.errors import StoreError
from thoughtgate.web.administration.gates import gates_page
from thoughtgate.web.administration.people import people_page, revoke_grant
from thoughtgate.web.administration.servers import (
    changes_page,
    control_server,
    decide_changes,
    server_page,
    servers_page,
    tool_page,
)
from thoughtgate.web.administration.settings import settings_page
from thoughtgate.web.approvals.approval import arguments_page, decide_approval
from thoughtgate.web.approvals.inbox import approval_page, inbox_list, inbox_page
from thoughtgate.web.approvals.together import decide_together, together_page
from thoughtgate.web.call_pages.call import call_page, try_call
from thoughtgate.web.call_pages.calls import calls_page, export_calls
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.live import LiveStream
from thoughtgate.web.overview import overview_page, verify_record
from thoughtgate.web.policies.policy import (
    explain_page,
    learn_page,
    policy_page,
    try_policy,
)
from thoughtgate.web.request_checks import RequestCheckMiddleware
from thoughtgate.web.server_sign_in import (
    CALLBACK,
    FINISH,
    come_back,
    finish_sign_in,
    sign_in_to_server,
    sign_out_from_server,
)
from thoughtgate.web.sign_in.login import sign_in, sign_out
from thoughtgate.web.stop import give_order, remove_order, stop_page
from thoughtgate.web.traffic import traffic_page
from thoughtgate.web.webhook import decide_by_webhook

Endpoint: TypeAlias = Callable[[ConsoleContext, Request], Response | Awaitable[Response]]

STATIC: Final = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "mark.svg": "image/svg+xml",
}
"""The files that pages load; no other file can be requested."""


def make_app(context: ConsoleContext, port: int) -> ASGIApp:
    """Return the console's application for a listener on a port."""
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

    routes = [Route("/static/{name}", serve_static), *_routes(context)]
    app = Starlette(routes=routes, exception_handlers={404: not_found, StoreError: unavailable})
    return RequestCheckMiddleware(app, context, port, context.public_url)


def _routes(context: ConsoleContext) -> list[Route]:
    """Return the routes of all pages and forms."""

    def page(path: str, endpoint: Endpoint) -> Route:
        return Route(path, partial(endpoint, context))

    def form(path: str, endpoint: Endpoint) -> Route:
        return Route(path, partial(endpoint, context), methods=["POST"])

    # The first route that matches serves a request, so fixed addresses precede those with an id.
    return [
        page("/login/{code}", sign_in),
        form("/logout", sign_out),
        page("/", inbox_page),
        page("/inbox", inbox_list),
        page("/overview", overview_page),
        form("/overview/verify", verify_record),
        Route("/live", LiveStream(context).serve),
        page("/approvals/together", together_page),
        form("/approvals/together", decide_together),
        page("/approvals/{ident}", approval_page),
        form("/approvals/{ident}", decide_approval),
        page("/approvals/{ident}/arguments", arguments_page),
        page("/traffic", traffic_page),
        page("/calls", calls_page),
        page("/calls/export", export_calls),
        page("/calls/{ident}", call_page),
        form("/calls/{ident}", try_call),
        page("/policy", policy_page),
        form("/policy", try_policy),
        page("/policy/explain", explain_page),
        page("/policy/learn", learn_page),
        page("/servers", servers_page),
        page("/servers/server", server_page),
        page("/servers/tool", tool_page),
        form("/servers/control", control_server),
        page(CALLBACK, come_back),
        page(CALLBACK + "/{mark}", come_back),
        page(FINISH, finish_sign_in),
        page(FINISH + "/{mark}", finish_sign_in),
        form("/servers/{ident}/sign-in", sign_in_to_server),
        form("/servers/{ident}/sign-out", sign_out_from_server),
        page("/servers/changes", changes_page),
        form("/servers/changes", decide_changes),
        page("/people", people_page),
        page("/gates", gates_page),
        page("/settings", settings_page),
        form("/grants/{ident}/revoke", revoke_grant),
        page("/stop", stop_page),
        form("/stop", give_order),
        form("/stop/resume", remove_order),
        form("/webhook/decision", decide_by_webhook),
    ]
