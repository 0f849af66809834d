"""The pages about servers: what each offers and hides, and changed definitions to decide about."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.core.approval import Refusal
from thoughtgate.stores.pins import ACCEPTED, REFUSED
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.server_sign_in import principal_at

FORM = "definitions"

LISTS = (
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resource templates"),
    ("prompts/list", "prompts"),
)


async def servers_page(context: ConsoleContext, request: Request) -> Response:
    """Serve all servers in the record, and the sign-ins to remote servers."""
    logins = context.logins
    rows = await logins.rows(principal_at(context, request)) if logins is not None else []
    noted = request.query_params.get("signed_in", "")[:64]

    def render() -> Response:
        servers = context.record.servers().all()
        return context.render_page(
            request, "servers.html", servers=servers, lists=LISTS, logins=rows, noted=noted
        )

    return await run_in_threadpool(render)


async def changes_page(context: ConsoleContext, request: Request) -> Response:
    """Serve what servers changed."""
    done = request.query_params.get("done", "")[:16]

    def render() -> Response:
        servers = context.approvals.definitions().servers()
        return context.render_page(request, "changes.html", servers=servers, done=done)

    return await run_in_threadpool(render)


async def decide_changes(context: ConsoleContext, request: Request) -> Response:
    """Accept or refuse what a server changed."""
    return await context.apply_form(request, _decide, "Nothing was decided.")


def _decide(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    key, shown = form.get("server", ""), form.get("shown", "")
    if not context.verify_form(request, form, FORM, key, shown):
        text = "Nothing was decided: the form was already submitted or has expired."
        return context.render_message(request, 403, "Invalid form", text)
    status = ACCEPTED if form.get("decision") == "accept" else REFUSED
    by, at = context.reviewer(request), context.approvals.clock()
    decided = context.approvals.definitions().decide(key, shown, status, by, at)
    if isinstance(decided, Refusal):
        code = 403 if decided.kind in {"not_allowed", "self"} else 409
        return context.render_message(request, code, "Nothing was decided", f"{decided.text}.")
    return RedirectResponse(f"/servers/changes?done={status}", 303)
