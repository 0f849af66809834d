"""One approval: everything about it, and the form that decides it."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.config.durations import parse_duration
from thoughtgate.core.approval import PENDING, Approval, Refusal
from thoughtgate.core.grant import EXACT, ONCE, SCOPES, SESSION, UNTIL, Remember
from thoughtgate.web.inbox import barred
from thoughtgate.web.site import Site, read_form

DECISIONS = {"approve": True, "deny": False}

FORM = "decide"
"""What the form's token says that the form does."""


class ApprovalPage:
    """Serves one approval and takes decisions."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def page(self, request: Request) -> Response:
        """Serve the whole story of one approval."""
        found = self._site.desk.get(request.path_params["ident"])
        if isinstance(found, Refusal):
            return self._site.say(request, 404, "There is no such approval", found.text)
        bar = barred(found, self._site.desk.by) if found.status == PENDING else ""
        return self._site.page(request, "approval.html", approval=found, bar=bar)

    async def decide(self, request: Request) -> Response:
        """Take a decision, if the form is genuine and somebody still waits."""
        form = await read_form(request)
        if form is None:
            self._site.refused("unreadable form", request.url.path)
            return self._site.say(request, 400, "This form cannot be read", "Nothing was decided.")
        return await run_in_threadpool(self._decide, request, form)

    def _decide(self, request: Request, form: dict[str, str]) -> Response:
        site, ident = self._site, request.path_params["ident"]
        found = site.desk.get(ident)
        digest = found.digest if isinstance(found, Approval) else ""
        if not site.is_genuine(request, form, FORM, ident, digest):
            text = (
                "It was used before, is out of date, or did not come from this console. "
                "Nothing was decided: load the page again and look at the question once more."
            )
            return site.say(request, 403, "This form is not valid", text)
        choice = DECISIONS.get(form.get("decision", ""))
        remember = read_remember(form)
        if choice is None or isinstance(remember, Refusal):
            text = remember.text if isinstance(remember, Refusal) else "Approve or deny."
            return site.say(request, 400, "Nothing was decided", text)
        decided = site.desk.decide(
            ident, approve=choice, reason=form.get("reason", "").strip(), remember=remember
        )
        if isinstance(decided, Refusal):
            status = 403 if decided.kind in {"not_allowed", "self"} else 409
            return site.say(request, status, "Nothing was decided", f"{decided.text}.")
        return RedirectResponse(f"/?noted={decided.id}", 303)


def read_remember(form: dict[str, str]) -> Remember | Refusal | None:
    """Return what is to be remembered beyond this call."""
    lifetime, scope = form.get("remember", ""), form.get("scope", EXACT)
    if not lifetime:
        return None
    if scope not in SCOPES:
        return Refusal("cannot_remember", "Remember this call or this tool.")
    if lifetime in {ONCE, SESSION}:
        return Remember(lifetime, scope)
    try:
        return Remember(UNTIL, scope, parse_duration(lifetime[:32]))
    except ValueError:
        return Refusal("cannot_remember", "Remember once, for the session or for a time.")
