"""The whole arguments of one approval request, and the form that decides it."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.config.durations import parse_duration
from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.core.grant import EXACT, ONCE, SCOPES, SESSION, UNTIL, Remember
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.wire.json_text import lay_out_part, pretty_json

DECISIONS = {"approve": True, "deny": False}

FORM = "decide"
"""The action to which the form's token is bound."""


def arguments_page(context: ConsoleContext, request: Request) -> Response:
    """Serve one part of the whole arguments of an approval, which may be megabytes long."""
    found = context.approvals.get(request.path_params["ident"])
    if isinstance(found, Refusal):
        return context.render_message(request, 404, "Approval not found", found.text)
    parts = context.approvals.argument_parts(found.id)
    wanted = request.query_params.get("part", "1")[:8]
    part = min(max(int(wanted), 1), max(parts, 1)) if wanted.isascii() and wanted.isdecimal() else 1
    text = lay_out_part(context.approvals.argument_part(found.id, part - 1))
    return context.render_page(
        request,
        "arguments.html",
        approval=found,
        part=part,
        parts=max(parts, 1),
        text=text or pretty_json(found.arguments),
    )


async def decide_approval(context: ConsoleContext, request: Request) -> Response:
    """Apply a decision, if the form is valid and the call still waits."""
    return await context.apply_form(request, _decide, "Nothing was decided.")


def _decide(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    ident = request.path_params["ident"]
    found = context.approvals.get(ident)
    digest = found.digest if isinstance(found, Approval) else ""
    # The form's token stands for the call that the page showed.
    if not context.verify_form(request, form, FORM, ident, digest):
        text = (
            "Nothing was decided: the form was already submitted, has expired, or did not "
            "come from this console. Load the page again and review the request."
        )
        return context.render_message(request, 403, "Invalid form", text)
    choice = DECISIONS.get(form.get("decision", ""))
    remember = read_remember(form)
    if choice is None or isinstance(remember, Refusal):
        text = remember.text if isinstance(remember, Refusal) else "Choose approve or deny."
        return context.render_message(request, 400, "Nothing was decided", text)
    decided = context.approvals.decide(
        ident,
        approve=choice,
        reason=form.get("reason", "").strip(),
        remember=remember,
        digest=digest,
        reviewer=context.reviewer(request),
    )
    if isinstance(decided, Refusal):
        status = 403 if decided.kind in {"not_allowed", "self"} else 409
        return context.render_message(request, status, "Nothing was decided", f"{decided.text}.")
    return RedirectResponse(f"/?noted={decided.id}", 303)


def read_remember(form: dict[str, str]) -> Remember | Refusal | None:
    """Return how the decision applies to later calls; None for this call only."""
    lifetime, scope = form.get("remember", ""), form.get("scope", EXACT)
    if not lifetime:
        return None
    if scope not in SCOPES:
        return Refusal("cannot_remember", "The scope must be this call or this tool.")
    if lifetime in {ONCE, SESSION}:
        return Remember(lifetime, scope)
    try:
        return Remember(UNTIL, scope, parse_duration(lifetime[:32]))
    except ValueError:
        return Refusal(
            "cannot_remember", "Remember once, for the session, or for a duration such as 1h."
        )
