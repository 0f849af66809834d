"""The inbox: every question that waits for a person, and what was answered last."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from thoughtgate.core.approval import Approval, may_vote
from thoughtgate.web.site import Site

SHOWN_ANSWERED = 12
"""Answered questions below the inbox; the record has all of them."""


class InboxPage:
    """Serves the inbox and, for live updates, its cards alone."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def page(self, request: Request) -> Response:
        """Serve the whole page."""
        site = self._site
        noted = site.desk.get(request.query_params.get("noted", "")[:16])
        return site.page(
            request,
            "inbox.html",
            waiting_cards=self._cards(site.desk.pending()),
            answered=site.desk.answered(SHOWN_ANSWERED),
            noted=noted if isinstance(noted, Approval) else None,
            rev=site.desk.rev(),
        )

    def cards(self, request: Request) -> Response:
        """Serve what changes while the page is open."""
        site = self._site
        pending = site.desk.pending()
        text = site.part(
            request,
            "cards.html",
            waiting_cards=self._cards(pending),
            answered=site.desk.answered(SHOWN_ANSWERED),
            waiting=len(pending),
        )
        return HTMLResponse(text)

    def _cards(self, pending: list[Approval]) -> list[tuple[Approval, str]]:
        return [(each, barred(each, self._site.desk.by)) for each in pending]


def barred(approval: Approval, by: str) -> str:
    """Say why this person cannot decide; empty when nothing bars them."""
    refusal = may_vote(approval, by)
    if refusal is not None:
        return refusal.text
    if any(vote.by == by for vote in approval.votes):
        return f"you have approved; {approval.required - len(approval.votes)} more must"
    return ""
