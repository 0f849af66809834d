"""The grants page: remembered approvals, and revoking them."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.core.approval import Refusal
from thoughtgate.web.console_context import ConsoleContext

FORM = "revoke"


def grants_page(context: ConsoleContext, request: Request) -> Response:
    """Serve all grants in force."""
    revoked = request.query_params.get("revoked", "")[:16]
    grants = context.approvals.grants()
    return context.render_page(request, "grants.html", grants=grants, revoked=revoked)


async def revoke_grant(context: ConsoleContext, request: Request) -> Response:
    """Revoke one grant."""
    return await context.apply_form(request, _revoke, "Nothing was revoked.")


def _revoke(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    ident = request.path_params["ident"]
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
