"""Signing in with the link that the terminal shows, and signing out.

If reviewers sign in through a proxy, links are refused, and signing out ends at the proxy.
"""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.web.console_context import ConsoleContext, read_form, session_of
from thoughtgate.web.sign_in.console_sessions import SESSION_S

FORM = "sign-out"


def sign_in(context: ConsoleContext, request: Request) -> Response:
    """Sign in with the code of a link.

    The response is a page that loads the inbox, not a redirect: if the link was on another
    web site, browsers do not send a strict cookie until one of our own pages makes a request.
    """
    if context.sign_in is not None:
        context.refused("sign-in link, but reviewers sign in through a proxy", "/login/")
        return reject(context, request, 401, "This console accepts no one-time links.")
    value = context.sessions.sign_in(request.path_params["code"])
    if value is None:
        context.refused("unknown, used or expired sign-in link", "/login/")
        reason = "The link was already used, has expired, or belongs to an earlier run."
        return reject(context, request, 401, reason)
    answer = context.render_page(request, "signed_in.html")
    answer.set_cookie(
        context.sessions.cookie,
        value,
        max_age=int(SESSION_S),
        httponly=True,
        samesite="strict",
    )
    return answer


async def sign_out(context: ConsoleContext, request: Request) -> Response:
    """End the session of this browser."""
    form = await read_form(request) or {}
    session = session_of(request)
    genuine = await run_in_threadpool(context.verify_form, request, form, FORM)
    if session is None or not genuine:
        return context.render_message(
            request, 403, "This form is not valid", "Load the page again."
        )
    await run_in_threadpool(context.sessions.sign_out, session)
    answer: Response = RedirectResponse("/", 303)
    if context.sign_in is not None:
        # A page, not a redirect: the next request would sign in again, with the proxy's token.
        url = context.sign_in.settings.sign_out_url
        answer = context.render_page(request, "signed_out.html", url=url)
    answer.delete_cookie(
        context.sessions.cookie,
        httponly=True,
        samesite="strict",
        secure=context.sessions.is_secure,
    )
    return answer


def reject(context: ConsoleContext, request: Request, status: int, reason: str) -> Response:
    """Return the response to a rejected request."""
    if status == 401 and context.sign_in is not None:  # noqa: PLR2004 - as below
        values = {"header": context.sign_in.settings.header, "url": context.public_url}
        return context.render_page(request, "proxy_sign_in.html", status, reason=reason, **values)
    if status == 401:  # noqa: PLR2004 - the status for which signing in helps
        return context.render_page(request, "sign_in.html", status, reason=reason)
    # The request may come from another web site: reveal nothing about the console.
    return Response(f"{reason}\n", status, media_type="text/plain")
