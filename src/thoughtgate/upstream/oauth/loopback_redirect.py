"""The page to which an authorization server sends the user's browser back.

It is served on 127.0.0.1, on a free port, at one path and those below it. Any page in the browser can
send requests to it, so only a request with the ``state`` of this sign-in ends the wait; others are
refused and ignored.
"""

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from html import escape
from typing import Final, Generic, TypeVar
from urllib.parse import parse_qs

from thoughtgate.errors import LoginError, StoreError
from thoughtgate.transports.asgi import Receive, Scope, Send
from thoughtgate.transports.loopback_server import HOST, open_listener, serve_app

PATH: Final = "/callback"

MAX_QUERY: Final = 16_384
"""Maximum bytes of the query; codes have a few hundred."""

_HEADERS: Final = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),  # the query contains the code
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]

Result = TypeVar("Result")
Finish = Callable[[str], Awaitable[Result]]
"""Redeems the path and query of the redirect; raises LoginError or StoreError."""


class LoopbackRedirect(Generic[Result]):
    """Waits for the redirect of one sign-in."""

    def __init__(self, port: int, finish: Finish[Result]) -> None:
        self.uri = f"http://{HOST}:{port}{PATH}"
        self.state = ""
        """What the query must contain; nothing is accepted before it is set."""
        self._host = f"{HOST}:{port}".encode()
        self._finish = finish
        self._is_spent = False
        self._done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    async def wait(self) -> Result:
        """Return the result of the sign-in.

        Raises:
            LoginError: it failed, or the user refused.
            StoreError: the tokens could not be stored.
        """
        return await asyncio.shield(self._done)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        query = bytes(scope["query_string"])
        if not self._is_ours(scope, query):
            await _page(send, 404, "Nothing to see here", "This address waits for a sign-in only.")
            return
        if self._is_spent:
            text = "This sign-in has already been completed. You can close this page."
            await _page(send, 409, "Already used", text)
            return
        self._is_spent = True
        try:
            result = await self._finish(f"{scope['path']}?{query.decode('ascii')}")
        except (LoginError, StoreError) as error:
            await _page(send, 400, "The sign-in failed", str(error))
            self._done.set_exception(error)
            return
        text = "You can close this page and go back to your agent."
        await _page(send, 200, "You are signed in", text)
        self._done.set_result(result)

    def _is_ours(self, scope: Scope, query: bytes) -> bool:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        path = scope["path"]
        is_ours = scope["method"] == "GET" and (path == PATH or path.startswith(f"{PATH}/"))
        is_ours = is_ours and path.isascii() and hosts == [self._host]
        if not is_ours or len(query) > MAX_QUERY or not query.isascii() or not self.state:
            return False
        states = parse_qs(query.decode("ascii")).get("state", [])
        return len(states) == 1 and hmac.compare_digest(states[0].encode(), self.state.encode())


@contextlib.asynccontextmanager
async def loopback_redirect(finish: Finish[Result]) -> AsyncIterator[LoopbackRedirect[Result]]:
    """Serve the page until the context ends."""
    with open_listener(0) as listener:
        redirect = LoopbackRedirect(listener.getsockname()[1], finish)
        async with serve_app(redirect, listener):
            yield redirect


async def _page(send: Send, status: int, title: str, text: str) -> None:
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{escape(title)}</title><h1>{escape(title)}</h1><p>{escape(text)}</p></html>\n"
    ).encode()
    headers = [*_HEADERS, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
