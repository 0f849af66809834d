"""The gate's leg towards servers as a client of the public MCP conformance suite.

``tools/conformance.py`` has the suite run it for every ``auth/*`` scenario, as ``python -m
tools.conformance_client URL``. It connects as ``serve`` does, signs in when the server wants that, as
``thoughtgate login`` does but with a user who agrees at once, lists the tools and calls one.
"""

import asyncio
import json
import os
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from cryptography.fernet import Fernet

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import PeerError, PeerGone, ThoughtGateError
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.upstream.client import ServerConnection
from thoughtgate.upstream.connect import open_pool
from thoughtgate.upstream.http_carrier import HttpCarrier
from thoughtgate.upstream.login_access import LoginAccess
from thoughtgate.wire.message import Fault, Message

REDIRECT: Final = "http://127.0.0.1:3334/callback"
DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"
PRINCIPAL: Final = "local"
MAX_LOGINS: Final = 2
PATIENCE_S: Final = 20.0

Result = TypeVar("Result")


class Nobody:
    """An audience that listens to nothing."""

    def server_sent(self, message: Message) -> None:
        """Ignore a message."""

    def server_lost(self, gone: PeerGone) -> None:
        """Ignore the loss: requests fail."""

    def server_refused(self, fault: Fault, line: bytes) -> None:
        """Ignore a frame that cannot be read."""

    def server_reopened(self, connection: ServerConnection) -> None:
        """Ignore a new session: requests go on."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def agree(link: str) -> str:
    """Open the link of a login; return the path and query of the redirect that it leads to."""
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(link, timeout=PATIENCE_S) as answer:
            location = answer.headers.get("location", "")
    except urllib.error.HTTPError as answer:
        location = answer.headers.get("location", "")
        answer.close()
    parts = urllib.parse.urlsplit(str(location))
    return f"{parts.path}?{parts.query}"


def settings(url: str, scenario: str, context: dict[str, Any]) -> tuple[ServerSettings, str]:
    """Return the server with the client of the scenario, and the client's secret."""
    secret = str(context.get("client_secret") or context.get("private_key_pem") or "")
    is_machine = "client-credentials" in scenario
    auth = ServerAuth(
        type="oauth",
        grant="client_credentials" if is_machine else "authorization_code",
        client_id=str(context.get("client_id") or ""),
        client_secret_env="SECRET" if secret else "",
        client_metadata_url="" if context else DOCUMENT,
    )
    return ServerSettings("fixture", url=url, auth=auth), secret


class Run:
    """One scenario."""

    def __init__(self, server: ServerSettings, secret: str, place: Path) -> None:
        environ = {"KEY": Fernet.generate_key().decode(), "SECRET": secret}
        self.server = server
        self.logins = LoginAccess(StoreLocation(place), environ, "KEY")
        self.environ = environ
        self.done = 0

    async def main(self) -> None:
        """Connect, list the tools, and call one."""
        connection = await self.signed_in(self.connect)
        listed = await self.signed_in(lambda: connection.ask("tools/list", {}))
        tools = (listed.body.get("result") or {}).get("tools") or []
        if tools:
            params = {"name": tools[0]["name"], "arguments": {}}
            await self.signed_in(lambda: connection.ask("tools/call", params))
        await connection.close()
        await self.logins.close()

    async def connect(self) -> ServerConnection:
        """Open a connection as ``serve`` does."""
        pool = open_pool(self.server, self.environ, self.logins)
        connection = ServerConnection(HttpCarrier(pool, principal=PRINCIPAL), Nobody())
        await connection.open({})
        return connection

    async def signed_in(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do something; sign in and do it again, if the server wants that."""
        while True:
            try:
                return await work()
            except PeerError as error:
                if error.cause != "login_required" or self.done >= MAX_LOGINS:
                    raise
            self.done += 1
            flow = self.logins.open().login(self.server, PRINCIPAL)
            link = await flow.begin(REDIRECT)
            await flow.finish(await asyncio.to_thread(agree, link))


def main() -> int:
    """Run the scenario that the suite names; exit 1 if the gate would refuse the server."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    server, secret = settings(sys.argv[-1], scenario, context)
    with tempfile.TemporaryDirectory() as place:
        run = Run(server, secret, Path(place))
        try:
            asyncio.run(asyncio.wait_for(run.main(), PATIENCE_S))
        except ThoughtGateError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
