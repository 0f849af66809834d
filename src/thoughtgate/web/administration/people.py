"""The page of people and grants: who decides what, remembered approvals, and revoking them."""

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.core.approval import Refusal
from thoughtgate.status.people import MAX_DECISIONS, summarize_people
from thoughtgate.web.administration.servers import link_calls
from thoughtgate.web.console_context import ConsoleContext

FORM = "revoke"


SHOWN: Final = 50
"""Maximum number of decisions that are listed."""

DAYS: Final = 30


def people_page(context: ConsoleContext, request: Request) -> Response:
    """Serve who decided what, and all grants in force."""
    revoked = request.query_params.get("revoked", "")[:16]
    since = context.record.whole_days(context.approvals.clock(), DAYS)
    return context.render_page(
        request,
        "people.html",
        grants=context.approvals.grants(),
        people=summarize_people(context.record.decisions(since, MAX_DECISIONS)),
        answered=context.approvals.answered(SHOWN),
        link=link_calls(since),
        days=DAYS,
        revoked=revoked,
    )


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
    return RedirectResponse(f"/people?revoked={revoked.id}", 303)
