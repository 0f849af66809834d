"""The stop page: what is stopped, stopping a server, a principal or everything, and resuming."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.errors import StoreError, UsageError
from thoughtgate.policy.stops import ALL, SCOPES, StopOrder
from thoughtgate.status.stop_actions import StopActions
from thoughtgate.web.console_context import ConsoleContext

STOP_FORM = "stop"
RESUME_FORM = "resume"
"""The actions to which the forms' tokens are bound."""

_INVALID = "the form was already submitted or has expired. Load the page again."
_UNCONFIRMED = "Tick the box that says that you want to stop it."


def stop_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the orders in force and the form that stops something."""
    query = request.query_params
    orders = _actions(context).listed()
    return context.render_page(
        request,
        "stop.html",
        orders=orders,
        server=query.get("server", "")[:512],
        noted=query.get("noted", "")[:16],
    )


async def give_order(context: ConsoleContext, request: Request) -> Response:
    """Stop what the form names."""
    return await context.apply_form(request, _stop, "Nothing was stopped.")


async def remove_order(context: ConsoleContext, request: Request) -> Response:
    """Remove the stop order that the form names."""
    return await context.apply_form(request, _resume, "Nothing was resumed.")


def _stop(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    if not context.verify_form(request, form, STOP_FORM):
        text = f"Nothing was stopped: {_INVALID}"
        return context.render_message(request, 403, "Invalid form", text)
    scope, name = form.get("scope", ""), form.get("name", "").strip()
    reason = form.get("reason", "").strip()
    fault = "" if scope in SCOPES and reason else "Choose what to stop, and give a reason."
    fault = fault or ("" if form.get("confirmed") == "yes" else _UNCONFIRMED)
    if fault:
        return context.render_message(request, 400, "Nothing was stopped", fault)
    by = context.reviewer(request).by
    try:
        _actions(context).stop(scope, "" if scope == ALL else name, reason=reason, by=by)
    except UsageError as error:
        return context.render_message(request, 400, "Nothing was stopped", f"{error}.")
    return RedirectResponse("/stop?noted=stopped", 303)


def _resume(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    scope, name = form.get("scope", ""), form.get("name", "")
    if not context.verify_form(request, form, RESUME_FORM, scope, name):
        text = f"Nothing was resumed: {_INVALID}"
        return context.render_message(request, 403, "Invalid form", text)
    if not _actions(context).resume(scope, name):
        target = StopOrder(scope, name).target
        return context.render_message(
            request, 409, "Nothing was resumed", f"There is no stop order for {target}."
        )
    return RedirectResponse("/stop?noted=resumed", 303)


def _actions(context: ConsoleContext) -> StopActions:
    if context.stops is None:
        raise StoreError("this console has no store with stop orders")
    return context.stops
