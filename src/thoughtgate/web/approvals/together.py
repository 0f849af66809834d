"""Deciding several requests of one rule at once.

A person chooses requests from a list, then sees everything about the chosen ones on a second page
and confirms. The form is bound to the ids and digests of exactly those requests; a request that
arrives in the meantime is never decided.
"""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.core.approval import PENDING, STANDING_KINDS, Approval, Refusal
from thoughtgate.web.approvals.approval import DECISIONS
from thoughtgate.web.approvals.inbox import reason_cannot_decide
from thoughtgate.web.console_context import ConsoleContext

MAX_TOGETHER: Final = 20
"""Requests per decision; nobody reads more on one page."""

MAX_WORD: Final = 500
"""Maximum characters of a rule's name."""

FORM: Final = "decide together"
"""The action to which the form's token is bound."""


def together_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the requests of a rule to choose from, or those that were chosen, to confirm."""
    wanted = request.query_params.getlist("id")[:MAX_TOGETHER]
    rule = request.query_params.get("rule", "")[:MAX_WORD]
    reviewer = context.reviewer(request)
    listed = [one for one in context.approvals.pending() if one.rule == rule]
    fitting = [(one, _why_alone(one) or reason_cannot_decide(one, reviewer)) for one in listed]
    chosen = [one for one, bar in fitting if one.id in wanted and not bar]
    return context.render_page(
        request,
        "together.html",
        rule=rule,
        listed=fitting[:MAX_TOGETHER],
        left_out=max(0, len(fitting) - MAX_TOGETHER),
        chosen=chosen,
        about=_about(chosen),
        missing=len(set(wanted)) - len(chosen),
        results=None,
    )


async def decide_together(context: ConsoleContext, request: Request) -> Response:
    """Apply one decision to the requests that a page has listed."""
    return await context.apply_form(request, _decide, "Nothing was decided.")


def _decide(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    wanted = form.get("ids", "").split()[:MAX_TOGETHER]
    found = [context.approvals.get(ident) for ident in wanted]
    asked = [one for one in found if isinstance(one, Approval)]
    if (
        not asked
        or len(asked) < len(found)
        or not context.verify_form(request, form, FORM, *_about(asked))
    ):
        text = (
            "Nothing was decided: the form was already submitted, has expired, or did not "
            "come from this console. Load the page again and review the requests."
        )
        return context.render_message(request, 403, "Invalid form", text)
    choice = DECISIONS.get(form.get("decision", ""))
    if choice is None:
        text = "Choose approve or deny."
        return context.render_message(request, 400, "Nothing was decided", text)
    results = [
        (one, _told(_vote(context, request, one, approve=choice, reason=form.get("reason", ""))))
        for one in asked
    ]
    return context.render_page(request, "together.html", results=results, rule=asked[0].rule)


def _vote(
    context: ConsoleContext, request: Request, asked: Approval, *, approve: bool, reason: str
) -> Approval | Refusal:
    alone = _why_alone(asked)
    if alone:
        return Refusal("not_allowed", alone)
    return context.approvals.decide(
        asked.id,
        approve=approve,
        reason=reason.strip(),
        digest=asked.digest,
        reviewer=context.reviewer(request),
    )


def _why_alone(asked: Approval) -> str:
    """Return why a request cannot be decided together with others; empty if it can."""
    if asked.kind in STANDING_KINDS:
        return "it is about a policy or a definition, so it is decided alone"
    if asked.folded:
        return "its arguments are too long to be shown here, so it is decided alone"
    return "" if asked.status == PENDING else f"it is {asked.status}"


def _about(chosen: list[Approval]) -> list[str]:
    """Return what the form's token stands for: exactly these requests, in any order."""
    return sorted(f"{one.id}:{one.digest}" for one in chosen)


def _told(outcome: Approval | Refusal) -> dict[str, Any]:
    if isinstance(outcome, Refusal):
        return {"word": "not decided", "text": outcome.text}
    votes = f"{len(outcome.votes)} of {outcome.required} have approved"
    return {"word": outcome.status, "text": votes if outcome.status == PENDING else ""}
