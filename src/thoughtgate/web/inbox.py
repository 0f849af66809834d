"""The inbox page: pending approval requests and the most recent decisions."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from thoughtgate.core.approval import Approval, Reviewer, may_vote
from thoughtgate.web.console_context import ConsoleContext

SHOWN_ANSWERED = 12
"""How many decided requests are shown below the pending ones; the record has all of them."""


def inbox_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the whole page."""
    noted = context.approvals.get(request.query_params.get("noted", "")[:16])
    return context.render_page(
        request,
        "inbox.html",
        waiting_cards=_cards(context, request, context.approvals.pending()),
        answered=context.approvals.answered(SHOWN_ANSWERED),
        noted=noted if isinstance(noted, Approval) else None,
        rev=context.approvals.rev(),
    )


def inbox_cards(context: ConsoleContext, request: Request) -> Response:
    """Serve the parts that change while the page is open."""
    pending = context.approvals.pending()
    cards, answered = _cards(context, request, pending), context.approvals.answered(SHOWN_ANSWERED)
    return HTMLResponse(
        context.render_part(
            request, "cards.html", waiting_cards=cards, answered=answered, waiting=len(pending)
        )
    )


def _cards(
    context: ConsoleContext, request: Request, pending: list[Approval]
) -> list[tuple[Approval, str]]:
    reviewer = context.reviewer(request)
    return [(each, reason_cannot_decide(each, reviewer)) for each in pending]


def reason_cannot_decide(approval: Approval, reviewer: Reviewer) -> str:
    """Return why this reviewer cannot decide; empty if they can."""
    refusal = may_vote(approval, reviewer)
    if refusal is not None:
        return refusal.text
    if any(vote.by == reviewer.by for vote in approval.votes):
        missing = approval.required - len(approval.votes)
        return f"you have already approved; {missing} more must approve"
    return ""
