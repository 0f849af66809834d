"""Remembered decisions: what is allowed without asking again, and taking it back."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.core.approval import Refusal
from thoughtgate.web.site import Site, read_form

FORM = "revoke"


class GrantsPage:
    """Serves the grants and takes them back."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def page(self, request: Request) -> Response:
        """Serve all grants in force."""
        revoked = request.query_params.get("revoked", "")[:16]
        grants = self._site.desk.grants()
        return self._site.page(request, "grants.html", grants=grants, revoked=revoked)

    async def revoke(self, request: Request) -> Response:
        """Take one grant back."""
        form = await read_form(request)
        if form is None:
            self._site.refused("unreadable form", request.url.path)
            return self._site.say(request, 400, "This form cannot be read", "Nothing was revoked.")
        return await run_in_threadpool(self._revoke, request, form)

    def _revoke(self, request: Request, form: dict[str, str]) -> Response:
        site, ident = self._site, request.path_params["ident"]
        if not site.is_genuine(request, form, FORM, ident):
            text = "It was used before or is out of date. Nothing was revoked: load the page again."
            return site.say(request, 403, "This form is not valid", text)
        gone = site.desk.revoke(ident)
        if isinstance(gone, Refusal):
            return site.say(request, 404, "Nothing was revoked", f"{gone.text}.")
        return RedirectResponse(f"/grants?revoked={gone.id}", 303)
