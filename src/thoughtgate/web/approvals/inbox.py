"""The inbox: a list of pending approval requests, and the details of one of them.

On a wide screen both are side by side; on a phone they are two pages. A request that arrives while
the page is open neither changes which request is open nor moves those that are already listed.
"""

from collections import Counter
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from thoughtgate.core.approval import PENDING, STANDING_KINDS, Approval, Refusal, Reviewer, may_vote
from thoughtgate.web.console_context import ConsoleContext

SHOWN_ANSWERED = 12
"""How many decided requests are shown below the pending ones; the record has all of them."""


def inbox_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the list, with the oldest request open."""
    noted = context.approvals.get(request.query_params.get("noted", "")[:16])
    pending = context.approvals.pending()
    # After a decision nothing is open: a second click must not decide the next request.
    opened = None if isinstance(noted, Approval) else next(iter(pending), None)
    return context.render_page(
        request,
        "inbox.html",
        **_listed(pending),
        **_details(context, request, opened),
        chosen=False,
        answered=context.approvals.answered(SHOWN_ANSWERED),
        noted=noted if isinstance(noted, Approval) else None,
    )


def approval_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the details of one approval request, beside the list."""
    found = context.approvals.get(request.path_params["ident"])
    if isinstance(found, Refusal):
        return context.render_message(request, 404, "Approval not found", found.text)
    return context.render_page(
        request,
        "inbox.html",
        **_listed(context.approvals.pending()),
        **_details(context, request, found),
        chosen=True,
        answered=[],
        noted=None,
    )


def inbox_list(context: ConsoleContext, request: Request) -> Response:
    """Serve the parts that change while the page is open."""
    pending = context.approvals.pending()
    answered = context.approvals.answered(SHOWN_ANSWERED)
    return HTMLResponse(
        context.render_part(
            request,
            "inbox_list.html",
            **_listed(pending),
            answered=answered,
            waiting=len(pending),
            opened=None,
        )
    )


def _listed(pending: list[Approval]) -> dict[str, Any]:
    rules = Counter(one.rule for one in pending if one.kind not in STANDING_KINDS)
    together = [(rule, count) for rule, count in rules.items() if count > 1]
    return {"pending": pending, "together": together}


def _details(context: ConsoleContext, request: Request, opened: Approval | None) -> dict[str, Any]:
    if opened is None:
        return {"opened": None}
    is_pending = opened.status == PENDING
    return {
        "opened": opened,
        "bar": reason_cannot_decide(opened, context.reviewer(request)) if is_pending else "",
        "tool": context.approvals.tool_facts(opened),
        "earlier": context.approvals.earlier(opened),
    }


def reason_cannot_decide(approval: Approval, reviewer: Reviewer) -> str:
    """Return why this reviewer cannot decide; empty if they can."""
    refusal = may_vote(approval, reviewer)
    if refusal is not None:
        return refusal.text
    if any(vote.by == reviewer.by for vote in approval.votes):
        missing = approval.required - len(approval.votes)
        return f"you have already approved; {missing} more must approve"
    return ""
