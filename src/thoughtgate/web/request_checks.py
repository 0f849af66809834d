"""What every request to the console passes first, and what every answer carries.

A web page in the user's browser must not be able to approve anything: a name that was
rebound to the loopback fails at the Host header, a form of another page at the Origin and
at the form's token, a script at the policy for content. Whoever is refused is recorded.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.sessions import Sessions

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

SAFE: Final = frozenset({"GET", "HEAD"})

OPEN_PATHS: Final = ("/login/", "/static/")
"""Served without a session: signing in, and what the sign-in page looks like."""

SIGNED_PATHS: Final = ("/webhook/decision",)
"""Asked by programs that sign what they say: no session, and no browser at all."""

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


class Guard:
    """Stands before the console's pages."""

    def __init__(
        self,
        app: App,
        sessions: Sessions,
        port: int,
        *,
        refused: Callable[[str, str], None],
        turn_away: Callable[[Request, int, str], Response],
    ) -> None:
        """Tell ``refused`` why and where; answer whoever is refused with ``turn_away``."""
        self._app = app
        self._sessions = sessions
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._refused = refused
        self._turn_away = turn_away

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._check(scope)
        if refusal is None:
            await self._app(scope, receive, send_guarded)
            return
        status, reason, tell = refusal
        if tell:
            self._refused(reason, scope["path"])
        answer = self._turn_away(Request(scope), status, reason)
        await answer(scope, receive, send_guarded)

    def _check(self, scope: Scope) -> tuple[int, str, bool] | None:
        """Return status and reason of a refusal, and whether it is put on record."""
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
        given = _cookies(headers, self._sessions.cookie)
        found = (self._sessions.find(value) for value in given)
        session = next((each for each in found if each is not None), None)
        if session is None:
            return 401, "not signed in", bool(given) or scope["method"] not in SAFE
        scope.setdefault("state", {})["session"] = session
        return None


def _is_same_origin(headers: Headers, host: str) -> bool:
    """Every browser sends an Origin with a form; a page of ours sends our own."""
    site = headers.get("sec-fetch-site", "same-origin")
    return headers.getlist("origin") == [f"http://{host}"] and site == "same-origin"


def _cookies(headers: Headers, name: str) -> list[str]:
    """Return every value of a cookie: other programs on this host may have set one of its name."""
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    return [value.strip() for found, _, value in pairs if found.strip() == name]
