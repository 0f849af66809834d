"""The sign-ins to remote servers that people begin in the console.

Only the browser that began a sign-in can finish it, once.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs

from thoughtgate.config.server_auth import OAUTH
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import LoginError
from thoughtgate.gate.clock import monotonic

if TYPE_CHECKING:
    from thoughtgate.upstream.oauth.access import OAuthAccess
    from thoughtgate.upstream.oauth.login import LoginFlow
    from thoughtgate.upstream.oauth.tokens import SignedIn

PENDING_S: Final = 600.0
"""How long a person may take to sign in."""

MAX_PENDING: Final = 32
"""Maximum number of open sign-ins; a new one ends the oldest."""


@dataclass(slots=True)
class _Pending:
    """A sign-in that began in a browser."""

    flow: "LoginFlow"
    session: str
    expires_at: float


class LoginRow(NamedTuple):
    """A remote server on the page."""

    id: str
    needs_login: bool
    """Whether the config says that it needs a login; others may need one, too."""
    login: "SignedIn | None"


class ServerLogins:
    """The sign-ins of one console."""

    def __init__(
        self,
        access: "OAuthAccess",
        servers: Mapping[str, ServerSettings],
        wrapped: Callable[[], Iterable[tuple[str, str]]] = tuple,
    ) -> None:
        """``wrapped`` returns the names and URLs of the remote servers of agents that run now."""
        self._access = access
        self._servers = servers
        self._wrapped = wrapped
        self._pending: dict[str, _Pending] = {}

    def servers(self) -> dict[str, ServerSettings]:
        """Return the remote servers to which a person can sign in, by their ids."""
        found = {name: ServerSettings(name, url=url) for name, url in self._wrapped()}
        found |= {
            ident: server
            for ident, server in self._servers.items()
            if server.url and ident != "*" and (server.auth is None or server.auth.type == OAUTH)
        }
        return dict(sorted(found.items()))

    async def rows(self, principal: str) -> list[LoginRow]:
        """Return the remote servers, with the sign-in of one person."""
        return [
            LoginRow(ident, server.auth is not None, await self._login(server, principal))
            for ident, server in self.servers().items()
        ]

    async def _login(self, server: ServerSettings, principal: str) -> "SignedIn | None":
        found = await self._access.signed_in(server)
        return next((each for each in found if each.principal == principal), None)

    async def begin(self, ident: str, principal: str, session: str, redirect_uri: str) -> str:
        """Return the link to the authorization server.

        Raises:
            LoginError: the sign-in cannot begin.
        """
        server = self.servers().get(ident)
        if server is None:
            raise LoginError("there is no such remote server")
        await self._drop(lambda each: each.expires_at <= monotonic())
        flow = self._access.login(server, principal)
        try:
            link = await flow.begin(redirect_uri)
        except BaseException:
            await flow.__aexit__(None, None, None)
            raise
        if len(self._pending) >= MAX_PENDING:
            oldest = next(iter(self._pending.values()))
            await self._drop(lambda each: each is oldest)
        self._pending[flow.state] = _Pending(flow, session, monotonic() + PENDING_S)
        return link

    async def finish(self, target: str, session: str) -> "SignedIn":
        """Finish a sign-in with the path and query of the redirect.

        This works once, and only for the session that began the sign-in.

        Raises:
            LoginError: there is no such sign-in, or it failed.
        """
        states = parse_qs(target.partition("?")[2]).get("state", [""])
        found = self._pending.get(states[0])
        # A link from somebody else's sign-in must not store their tokens for this person.
        if found is None or found.session != session or found.expires_at <= monotonic():
            raise LoginError("this sign-in was not begun in this browser, or has expired")
        # First, so that a sign-in is never finished twice.
        del self._pending[states[0]]
        async with found.flow:
            return await found.flow.finish(target)

    async def sign_out(self, ident: str, principal: str) -> bool:
        """Revoke and delete a principal's tokens; return whether there were any.

        Raises:
            LoginError: there is no such server, or the tokens could not be revoked.
        """
        server = self.servers().get(ident)
        if server is None:
            raise LoginError("there is no such remote server")
        return await self._access.logout(server, principal)

    async def close(self) -> None:
        """End all open sign-ins and close the store."""
        await self._drop(lambda _each: True)
        await self._access.close()

    async def _drop(self, is_over: Callable[[_Pending], bool]) -> None:
        over = {state: each for state, each in self._pending.items() if is_over(each)}
        for state, each in over.items():
            del self._pending[state]
            with contextlib.suppress(OSError):
                await each.flow.__aexit__(None, None, None)
