"""Checks on every request to the console, and security headers on every response.

Another web page in the user's browser must not be able to approve anything. DNS rebinding fails
the check of the Host header, a form on another site fails the check of the Origin header and of
the form's token, and an injected script fails the content security policy. Nothing can be decided
in a console that a governed agent started. With sign-in through a proxy, every request must also
carry a valid token, and come from an address that may connect. Rejected requests are recorded.
"""

import re
from typing import Final, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thoughtgate.errors import StoreError
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.server_sign_in import CALLBACK
from thoughtgate.web.sign_in.console_sessions import SESSION_S, ConsoleSession
from thoughtgate.web.sign_in.login import reject
from thoughtgate.web.sign_in.proxy_sign_in import ProxySignIn, public_origin

SAFE: Final = frozenset({"GET", "HEAD"})

OPEN_PATHS: Final = ("/login/", "/static/")
"""Served without a session: the sign-in links, and the files that the sign-in page loads."""

OPEN_PAGE: Final = re.compile(rf"{CALLBACK}(?:/[0-9a-f]{{1,64}})?")
"""Served without a session: browsers send no cookie when another web site leads to it."""

SIGNED_PATHS: Final = ("/webhook/decision",)
"""Requested by programs that sign their requests, and therefore need no session."""

NOT_TRUSTED: Final = (
    "this console accepts requests over TLS or from its authenticating proxy only; open it through "
    "the proxy, or see console.sign_in.trusted_proxies in the config"
)

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


AWAY: Final = "the store of sessions cannot be reached; try again in a few seconds"


class _Rejected(NamedTuple):
    status: int
    reason: str
    is_recorded: bool = True


class RequestCheckMiddleware:
    """ASGI middleware that rejects requests that could be forged or are not signed in."""

    def __init__(
        self, app: ASGIApp, context: ConsoleContext, port: int, public_url: str = ""
    ) -> None:
        self._app = app
        self._context = context
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._scheme = ""
        if public_url:
            # A proxy may pass on the browser's Host header or send its own, but forms only come
            # from the public address.
            origin = public_origin(public_url)
            self._hosts |= {origin.partition("//")[2]}
            self._scheme = origin.partition(":")[0]
            self._origins = frozenset({origin})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or reject it."""
        if scope["type"] != "http":
            return
        # Redirects, such as from a path with a slash at its end, lead to the public address.
        scope = {**scope, "scheme": self._scheme or scope["scheme"]}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                self._set_cookie(scope, headers)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._check(scope)
        if refusal is None and not _is_open(scope["path"]):
            sign_in = self._context.sign_in
            try:
                found = self._identify(scope, sign_in) if sign_in else self._find(scope)
                refusal = await found
            except StoreError:
                refusal = _Rejected(503, AWAY, is_recorded=False)
        if refusal is None and scope["method"] not in SAFE:
            # Checked at each request: the agent may be governed only since the console started.
            reason = await run_in_threadpool(self._context.find_agent_reason)
            refusal = _Rejected(403, reason) if reason else None
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
            return
        if refusal.is_recorded:
            self._context.refused(refusal.reason, scope["path"])
        answer = reject(self._context, Request(scope), refusal.status, refusal.reason)
        await answer(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> _Rejected | None:
        """Reject requests that our own pages never send, and peers that may not connect."""
        headers, sign_in = Headers(scope=scope), self._context.sign_in
        hosts = headers.getlist("host")
        # With two Host headers, a proxy and this console could understand different hosts.
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _Rejected(421, "wrong host")
        if scope["path"] in SIGNED_PATHS:
            return None
        if sign_in is not None and not sign_in.admits((scope.get("client") or ("",))[0]):
            return _Rejected(403, NOT_TRUSTED)
        if scope["method"] not in SAFE and not self._is_same_origin(headers, hosts[0]):
            return _Rejected(403, "wrong origin")
        return None

    def _is_same_origin(self, headers: Headers, host: str) -> bool:
        """Tell whether a form comes from one of our pages; browsers send an Origin with each form."""
        site, given = headers.get("sec-fetch-site", "same-origin"), headers.getlist("origin")
        if len(given) != 1 or site != "same-origin":
            return False
        own = self._origins if self._context.sign_in else {f"http://{host}"} & self._origins
        return given[0] in own

    async def _find(self, scope: Scope) -> _Rejected | None:
        """Find the session of a browser that signed in with a link."""
        session, has_cookie = await run_in_threadpool(self._session, scope, "")
        if session is None:
            # Recorded only with an old cookie or a form: opening the console without one is normal.
            return _Rejected(401, "not signed in", has_cookie or scope["method"] not in SAFE)
        scope.setdefault("state", {})["session"] = session
        return None

    async def _identify(self, scope: Scope, sign_in: ProxySignIn) -> _Rejected | None:
        """Verify the token of a request, and find or open the session of its subject."""
        who = await sign_in.identify(Headers(scope=scope))
        if isinstance(who, str):
            return _Rejected(401, who)
        state = scope.setdefault("state", {})
        session, _ = await run_in_threadpool(self._session, scope, who.subject)
        if session is None:
            if scope["method"] not in SAFE:
                return _Rejected(401, "the form was loaded in another session")
            opened = await run_in_threadpool(self._context.sessions.open_session, who.subject)
            state["cookie"], session = opened
        state.update(session=session, signed_in=who)
        return None

    def _session(self, scope: Scope, subject: str) -> tuple[ConsoleSession | None, bool]:
        """Return the session of a subject's browser, and whether it sent any cookie of ours."""
        sessions = self._context.sessions
        given = _cookies(Headers(scope=scope), sessions.cookie)
        found = (sessions.find(value) for value in given)
        own = (each for each in found if each is not None and each.subject == subject)
        return next(own, None), bool(given)

    def _set_cookie(self, scope: Scope, headers: MutableHeaders) -> None:
        value = scope.get("state", {}).get("cookie")
        if value is None:
            return
        # Not strict: following a link in a chat message would otherwise send no cookie, and so
        # replace the session of the open pages. Other sites still cannot change anything, because
        # they do not know a form's token.
        text = f"{self._context.sessions.cookie}={value}; Path=/; Max-Age={int(SESSION_S)}"
        secure = "; Secure" if self._context.sessions.is_secure else ""
        headers.append("set-cookie", f"{text}; HttpOnly; SameSite=Lax{secure}")


def _is_open(path: str) -> bool:
    return path in SIGNED_PATHS or bool(OPEN_PAGE.fullmatch(path)) or path.startswith(OPEN_PATHS)


def _cookies(headers: Headers, name: str) -> list[str]:
    """Return all values of a cookie: other programs on this host may set one with the same name."""
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    return [value.strip() for found, _, value in pairs if found.strip() == name]
