"""The grants page: remembered approvals, and revoking them."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.core.approval import Refusal
from thoughtgate.web.console_context import ConsoleContext, read_form

FORM = "revoke"


class GrantsPage:
    """Serves and revokes grants."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context

    def page(self, request: Request) -> Response:
        """Serve all grants in force."""
        revoked = request.query_params.get("revoked", "")[:16]
        grants = self._context.approvals.grants()
        return self._context.render_page(request, "grants.html", grants=grants, revoked=revoked)

    async def revoke(self, request: Request) -> Response:
        """Revoke one grant."""
        form = await read_form(request)
        if form is None:
            self._context.refused("unreadable form", request.url.path)
            return self._context.render_message(
                request, 400, "Invalid form", "Nothing was revoked. Load the page again."
            )
        return await run_in_threadpool(self._revoke, request, form)

    def _revoke(self, request: Request, form: dict[str, str]) -> Response:
        context, ident = self._context, request.path_params["ident"]
        if not context.verify_form(request, form, FORM, ident):
            text = (
                "Nothing was revoked: the form was already submitted or has expired. "
                "Load the page again."
            )
            return context.render_message(request, 403, "Invalid form", text)
        revoked = context.approvals.revoke(ident)
        if isinstance(revoked, Refusal):
            return context.render_message(request, 404, "Nothing was revoked", f"{revoked.text}.")
        return RedirectResponse(f"/grants?revoked={revoked.id}", 303)
