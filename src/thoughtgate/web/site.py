"""What every page of the console is made from: its parts, its frame, its forms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from thoughtgate.errors import StoreError
from thoughtgate.status.approval_actions import ConsoleDesk
from thoughtgate.status.record_view import ConsoleRecord
from thoughtgate.web.sessions import Session, Sessions
from thoughtgate.web.templating import make_environment, shown_left

MAX_FORM: Final = 64 * 1024
"""Bytes of a form: a reason and a few words."""

MAX_FIELDS: Final = 20

FORM_TYPE: Final = "application/x-www-form-urlencoded"

PAGES: Final = (
    ("/", "Inbox"),
    ("/traffic", "Traffic"),
    ("/calls", "Calls"),
    ("/servers", "Servers"),
    ("/grants", "Grants"),
    ("/stats", "Stats"),
)


@dataclass(slots=True)
class Site:
    """The console's parts, for its pages."""

    desk: ConsoleDesk
    record: ConsoleRecord
    sessions: Sessions
    refused: Callable[[str, str], None]
    """Puts on record who was refused: why, and at which path."""
    webhooks: Mapping[str, bytes] = field(default_factory=dict)
    """Keys that sign decisions, by workflow."""
    templates: Environment = field(default_factory=make_environment)

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """Render a page in the console's frame."""
        session = session_of(request)
        now = self.desk.clock()
        frame = {
            "pages": PAGES,
            "path": request.url.path,
            "by": self.desk.by,
            "now": now,
            "waiting": self._waiting() if session is not None else 0,
            "signed_in": session is not None,
            "token": lambda *about: self.token(request, *about),
            "left": lambda until: shown_left(until - now),
        }
        text = self.templates.get_template(template).render({**frame, **values})
        return HTMLResponse(text, status)

    def part(self, request: Request, template: str, **values: Any) -> str:
        """Render a piece of a page."""
        now = self.desk.clock()
        given = {
            "by": self.desk.by,
            "now": now,
            "token": lambda *about: self.token(request, *about),
            "left": lambda until: shown_left(until - now),
        }
        return self.templates.get_template(template).render({**given, **values})

    def say(self, request: Request, status: int, title: str, text: str) -> Response:
        """Answer with a few words."""
        return self.page(request, "message.html", status, title=title, text=text)

    def token(self, request: Request, *about: str) -> str:
        """Return the token of a form on this page."""
        session = session_of(request)
        return self.sessions.form_token(session, *about) if session is not None else ""

    def is_genuine(self, request: Request, form: Mapping[str, str], *about: str) -> bool:
        """Tell whether a form is one of ours, unaltered and used for the first time."""
        session = session_of(request)
        if session is not None and self.sessions.spend(session, form.get("token", ""), *about):
            return True
        self.refused("form altered, replayed or out of date", request.url.path)
        return False

    def _waiting(self) -> int:
        try:
            return len(self.desk.pending())
        except StoreError:
            return 0


def session_of(request: Request) -> Session | None:
    """Return who asks."""
    found = getattr(request.state, "session", None)
    return found if isinstance(found, Session) else None


async def read_form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; None for what is no form, too large, or says a thing twice."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        return None
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_FORM:
            return None
    try:
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None
