"""Signing in with the link from the terminal, and out."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.web.sessions import SESSION_S
from thoughtgate.web.site import Site, read_form, session_of

FORM = "sign-out"


class LoginPage:
    """Exchanges a one-time code for a session."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def sign_in(self, request: Request) -> Response:
        """Spend the code of a link.

        The answer is a page that goes on by itself and not a redirect: after a link in
        another site's page, browsers keep a strict cookie back until a page of ours asks.
        """
        value = self._site.sessions.sign_in(request.path_params["code"])
        if value is None:
            self._site.refused("wrong or used sign-in link", "/login/")
            return self.turn_away(request, 401, "The link was used before, or is not of this run.")
        answer = self._site.page(request, "signed_in.html")
        answer.set_cookie(
            self._site.sessions.cookie,
            value,
            max_age=int(SESSION_S),
            path="/",
            httponly=True,
            samesite="strict",
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        """End the session of this browser."""
        form = await read_form(request) or {}
        session = session_of(request)
        genuine = await run_in_threadpool(self._site.is_genuine, request, form, FORM)
        if session is None or not genuine:
            return self._site.say(request, 403, "This form is not valid", "Load the page again.")
        self._site.sessions.sign_out(session)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(self._site.sessions.cookie, path="/", httponly=True, samesite="strict")
        return answer

    def turn_away(self, request: Request, status: int, reason: str) -> Response:
        """Answer whoever is not let in."""
        if status == 401:  # noqa: PLR2004 - the status that signing in mends
            return self._site.page(request, "sign_in.html", status, reason=reason)
        # To a page of somebody else we say as little as possible, and show nothing of ours.
        return Response(f"{reason}\n", status, media_type="text/plain")
