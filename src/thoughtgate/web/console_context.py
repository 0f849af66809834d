"""What all pages of the console share: stores, sessions, templates and form handling."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from thoughtgate.channels.terminal import render_countdown
from thoughtgate.core.approval import Reviewer
from thoughtgate.errors import StoreError
from thoughtgate.gate.config_files import Loaded
from thoughtgate.status.approval_actions import ApprovalActions
from thoughtgate.status.policy_trial import PolicyInForce
from thoughtgate.status.record_integrity import RecordIntegrity
from thoughtgate.status.record_view import ConsoleRecord
from thoughtgate.status.stop_actions import StopActions
from thoughtgate.status.webhook_answers import WebhookAnswers
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.web.server_logins import ServerLogins
from thoughtgate.web.sign_in.console_sessions import ConsoleSession, ConsoleSessions
from thoughtgate.web.sign_in.proxy_sign_in import ProxySignIn, SignedIn
from thoughtgate.web.templating import make_environment

MAX_FORM: Final = 64 * 1024
"""Maximum bytes of a form, which contains a reason and a few short fields."""

MAX_FIELDS: Final = 20

FORM_TYPE: Final = "application/x-www-form-urlencoded"

PAGES: Final = (
    ("/", "Inbox"),
    ("/overview", "Overview"),
    ("/traffic", "Traffic"),
    ("/calls", "Calls"),
    ("/policy", "Policy"),
    ("/servers", "Servers"),
    ("/people", "People"),
    ("/gates", "Gates"),
    ("/settings", "Settings"),
    ("/stop", "Stop"),
)


@dataclass(slots=True)
class ConsoleContext:
    """The stores, sessions and templates that the console's pages use."""

    approvals: ApprovalActions
    record: ConsoleRecord
    sessions: ConsoleSessions
    refused: Callable[[str, str], None]
    """Records a refused request, with its reason and path."""
    webhooks: WebhookAnswers
    """Counts the decisions that webhooks sign."""
    sign_in: ProxySignIn | None = None
    """How reviewers sign in on a network; None for the one-time link."""
    public_url: str = ""
    """The URL that browsers use, if it is not that of the listener."""
    logins: ServerLogins | None = None
    """The sign-ins to remote servers; None if the config has none that could need one."""
    stops: StopActions | None = None
    """The stop orders in the store; None if this console cannot change them."""
    state: str = ""
    """The state directory, where the gates of this machine announce themselves."""
    location: StoreLocation | None = None
    """The store of this console."""
    find_agent_reason: Callable[[], str] = str
    """Returns why nothing can be decided here, if an agent started this console; else empty."""
    loaded: Loaded | None = None
    """The config of this console; None if there is none."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment of this console, which can override the config."""
    integrity: RecordIntegrity | None = None
    """Verifies the record; None if it cannot be read back."""
    policy: PolicyInForce | None = None
    """The policy of this console's config; None if the console has none."""
    templates: Environment = field(default_factory=make_environment)

    def render_page(
        self, request: Request, template: str, status: int = 200, **values: Any
    ) -> Response:
        """Render a whole page."""
        session = session_of(request)
        frame = {
            "pages": PAGES,
            "path": request.url.path,
            "waiting": self._waiting() if session is not None else 0,
            "signed_in": session is not None,
        }
        return HTMLResponse(self.render_part(request, template, **frame, **values), status)

    def render_part(self, request: Request, template: str, **values: Any) -> str:
        """Render a fragment of a page."""
        now = self.approvals.clock()
        return self.templates.get_template(template).render(
            by=self.reviewer(request).by,
            now=now,
            token=lambda *about: self._token(request, *about),
            left=lambda until: render_countdown(until - now),
            **values,
        )

    def reviewer(self, request: Request) -> Reviewer:
        """Return who sent a request: the subject of a verified token, or the user of this machine."""
        found = signed_in(request)
        return found.reviewer if found is not None else Reviewer(self.approvals.by)

    def render_message(self, request: Request, status: int, title: str, text: str) -> Response:
        """Render a page with a short message."""
        return self.render_page(request, "message.html", status, title=title, text=text)

    async def apply_form(
        self,
        request: Request,
        apply: Callable[["ConsoleContext", Request, dict[str, str]], Response],
        undone: str,
    ) -> Response:
        """Apply a form in a thread, because stores block; ``undone`` begins the error message."""
        form = await read_form(request)
        if form is None:
            self.refused("unreadable form", request.url.path)
            text = f"{undone} Load the page again."
            return self.render_message(request, 400, "Invalid form", text)
        return await run_in_threadpool(apply, self, request, form)

    def _token(self, request: Request, *about: str) -> str:
        session = session_of(request)
        return self.sessions.form_token(session, *about) if session is not None else ""

    def verify_form(self, request: Request, form: Mapping[str, str], *about: str) -> bool:
        """Tell whether a form is genuine, unaltered and submitted for the first time."""
        session = session_of(request)
        try:
            if session is not None and self.sessions.spend(session, form.get("token", ""), *about):
                return True
        except StoreError:
            # Nobody knows whether it was submitted before, so it is not accepted.
            self.refused("the store of used forms cannot be reached", request.url.path)
            return False
        self.refused("form altered, replayed or out of date", request.url.path)
        return False

    def _waiting(self) -> int:
        try:
            return len(self.approvals.pending())
        except StoreError:
            return 0


def session_of(request: Request) -> ConsoleSession | None:
    """Return the session of a request, or None."""
    found = getattr(request.state, "session", None)
    return found if isinstance(found, ConsoleSession) else None


def signed_in(request: Request) -> SignedIn | None:
    """Return who signed in through the proxy, or None."""
    found = getattr(request.state, "signed_in", None)
    return found if isinstance(found, SignedIn) else None


async def read_form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; None if it is malformed, too large, or repeats a field."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        return None
    data = await read_body(request, MAX_FORM)
    if data is None:
        return None
    try:
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None


async def read_body(request: Request, limit: int) -> bytes | None:
    """Return the body of a request; None if it is longer than ``limit`` bytes."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > limit:
            return None
    return bytes(data)
