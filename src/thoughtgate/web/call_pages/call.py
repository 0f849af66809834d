"""The page of one call: its events, the verdict, and the verdict of another policy."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.status.policy_trial import CallTrial
from thoughtgate.web.call_pages.event_summary import summarize
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.policies.candidate_form import FORM, try_candidate


def call_page(context: ConsoleContext, request: Request) -> Response:
    """Serve one call with all its events."""
    return _page(context, request)


async def try_call(context: ConsoleContext, request: Request) -> Response:
    """Serve one call with what a candidate policy says about it."""
    ident = request.path_params["ident"]

    def apply(context: ConsoleContext, request: Request, text: str) -> Response:
        call = context.record.call(ident)
        if call is None or context.policy is None:
            return _page(context, request)
        trial = context.policy.try_call(text, call, context.approvals.clock())
        return _page(context, request, text=text, candidate=trial)

    return await try_candidate(context, request, (FORM, ident), apply)


def _page(
    context: ConsoleContext,
    request: Request,
    *,
    text: str = "",
    candidate: CallTrial | None = None,
) -> Response:
    ident = request.path_params["ident"]
    call = context.record.call(ident)
    if call is None:
        missing = "The record does not contain this call, or no longer does."
        return context.render_message(request, 404, "Call not found", missing)
    recorded = context.record.call_events(ident)
    events = [(summarize(event), _line(event)) for event in recorded]
    now = context.approvals.clock()
    policy = context.policy
    return context.render_page(
        request,
        "call.html",
        call=call,
        events=events,
        began=events[0][0].at if events else 0.0,
        in_force=policy.explain_recorded(call, now) if policy is not None else None,
        candidate=candidate,
        text=text,
        form=FORM,
    )


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))
