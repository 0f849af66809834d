"""The console's pages for signing in to remote servers, and signing out.

The authorization server sends the browser back to ``/callback``. That request comes from another
web site, so the browser does not send the session's cookie with it. The response is therefore a
page of our own, which loads the address that redeems the code.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.channels.console_channel import NAME as CONSOLE
from thoughtgate.errors import LoginError
from thoughtgate.gate.run_identity import LOCAL
from thoughtgate.web.console_context import ConsoleContext, read_form, session_of, signed_in
from thoughtgate.web.sign_in.proxy_sign_in import public_origin

SIGN_IN, SIGN_OUT = "server-sign-in", "server-sign-out"
"""The actions to which the forms' tokens are bound."""

CALLBACK: Final = "/callback"
FINISH: Final = "/servers/finish"

MAX_QUERY: Final = 16_384
"""Maximum length of the query of a redirect; codes have a few hundred characters."""


def principal_at(context: ConsoleContext, request: Request) -> str:
    """Return whose agents use the tokens: the local user, or who signed in through the proxy."""
    found = signed_in(request)
    if context.sign_in is None or found is None:
        return LOCAL
    # The same as the principal of an agent whose token names this person.
    return f"{found.reviewer.issuer}#{found.reviewer.by.removeprefix(f'{CONSOLE}:')}"


async def sign_in_to_server(context: ConsoleContext, request: Request) -> Response:
    """Begin a sign-in: show a link to the authorization server.

    This is not a redirect, because the content security policy lets forms lead only to our pages.
    """
    ident, session = request.path_params["ident"], session_of(request)
    refusal = await _check(context, request, SIGN_IN, ident)
    if refusal is not None or session is None or context.logins is None:
        return refusal or _message(context, request, 404, "The console cannot sign in to servers.")
    uri = (public_origin(context.public_url) if context.public_url else _own(request)) + CALLBACK
    try:
        who = principal_at(context, request)
        link = await context.logins.begin(ident, who, session.id, uri)
    except LoginError as error:
        return _message(context, request, 502, str(error))
    host = urlsplit(link).netloc
    return await run_in_threadpool(
        context.render_page, request, "server_sign_in.html", server=ident, link=link, host=host
    )


def come_back(context: ConsoleContext, request: Request) -> Response:
    """Serve the page that loads the address that redeems the code."""
    query, mark = request.url.query, _mark(request)
    if len(query) > MAX_QUERY or not query.isascii():
        return _message(context, request, 400, "The authorization server sent too long an answer.")
    return context.render_page(request, "server_come_back.html", target=f"{FINISH}{mark}?{query}")


async def finish_sign_in(context: ConsoleContext, request: Request) -> Response:
    """Redeem the code of a sign-in."""
    session, logins = session_of(request), context.logins
    if session is None or logins is None or len(request.url.query) > MAX_QUERY:
        return _message(context, request, 400, "This sign-in cannot be finished here.")
    try:
        target = f"{CALLBACK}{_mark(request)}?{request.url.query}"
        found = await logins.finish(target, session.id)
    except LoginError as error:
        return _message(context, request, 400, str(error))
    # A redirect, so that the address with the code does not stay in the browser's history.
    return RedirectResponse(f"/servers?signed_in={found.server}", 303)


async def sign_out_from_server(context: ConsoleContext, request: Request) -> Response:
    """Revoke and delete a person's tokens for a server."""
    ident = request.path_params["ident"]
    refusal = await _check(context, request, SIGN_OUT, ident)
    if refusal is not None or context.logins is None:
        return refusal or _message(context, request, 404, "The console cannot sign in to servers.")
    try:
        await context.logins.sign_out(ident, principal_at(context, request))
    except LoginError as error:
        return _message(context, request, 502, str(error))
    return RedirectResponse("/servers", 303)


async def _check(
    context: ConsoleContext, request: Request, action: str, ident: str
) -> Response | None:
    """Return the refusal of a form that is malformed, forged or submitted again."""
    form = await read_form(request) or {}
    if await run_in_threadpool(context.verify_form, request, form, action, ident):
        return None
    text = "The form was already submitted or has expired. Load the page again."
    return _message(context, request, 403, text)


def _message(context: ConsoleContext, request: Request, status: int, text: str) -> Response:
    return context.render_message(request, status, "Sign-in to a server", text)


def _mark(request: Request) -> str:
    """Return what follows ``/callback`` for one authorization server: nothing, or ``/DIGITS``."""
    mark = request.path_params.get("mark", "")
    return f"/{mark}" if mark.isalnum() and mark.isascii() else ""


def _own(request: Request) -> str:
    # The Host header was checked: it is the address for which the browser has our cookie.
    return f"http://{request.headers['host']}"
