"""Checks on every request to the console, and security headers on every response.

Another web page in the user's browser must not be able to approve anything. DNS rebinding fails
the check of the Host header, a form on another site fails the check of the Origin header and of
the form's token, and an injected script fails the content security policy. Rejected requests
are recorded.
"""

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.login import reject

SAFE: Final = frozenset({"GET", "HEAD"})

OPEN_PATHS: Final = ("/login/", "/static/")
"""Served without a session: signing in, and the style of the sign-in page."""

SIGNED_PATHS: Final = ("/webhook/decision",)
"""Requested by programs that sign their requests, so they need no session."""

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not "no-referrer": with it, browsers send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class RequestCheckMiddleware:
    """ASGI middleware that rejects requests which could be forged or are not signed in."""

    def __init__(self, app: ASGIApp, context: ConsoleContext, port: int) -> None:
        self._app = app
        self._context = context
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or reject it."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._check(scope)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
            return
        status, reason, is_recorded = refusal
        if is_recorded:
            self._context.refused(reason, scope["path"])
        answer = reject(self._context, Request(scope), status, reason)
        await answer(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> tuple[int, str, bool] | None:
        """Return the status and reason of a rejection, and whether to record it."""
        headers, path = Headers(scope=scope), scope["path"]
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, "wrong host", True
        if path in SIGNED_PATHS:
            return None
        if scope["method"] not in SAFE and not _is_same_origin(headers, hosts[0]):
            return 403, "wrong origin", True
        if path.startswith(OPEN_PATHS):
            return None
        sessions = self._context.sessions
        given = _cookies(headers, sessions.cookie)
        found = (sessions.find(value) for value in given)
        session = next((each for each in found if each is not None), None)
        if session is None:
            # Opening the console without a session is normal; an old cookie or a POST is not.
            return 401, "not signed in", bool(given) or scope["method"] not in SAFE
        scope.setdefault("state", {})["session"] = session
        return None


def _is_same_origin(headers: Headers, host: str) -> bool:
    """Tell whether a form comes from one of our pages: browsers send an Origin with every form."""
    site = headers.get("sec-fetch-site", "same-origin")
    return headers.getlist("origin") == [f"http://{host}"] and site == "same-origin"


def _cookies(headers: Headers, name: str) -> list[str]:
    """Return every value of a cookie: other programs on this host may set one of the same name."""
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    return [value.strip() for found, _, value in pairs if found.strip() == name]
