"""Credentials that are loaded when a server first asks for a login, which most servers never do.

The OAuth package is imported then, and not when a gate starts.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from thoughtgate.config.server_auth import CLIENT_CREDENTIALS, OAUTH
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import PeerError
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.transports.http_heads import ResponseHead

if TYPE_CHECKING:
    from thoughtgate.upstream.oauth.access import OAuthAccess
    from thoughtgate.upstream.oauth.credentials import Credentials

_AUTHORIZATION: Final = "authorization"


class LoginAccess:
    """How a gate reaches the tokens of its servers; nothing is opened before one is needed."""

    def __init__(
        self,
        location: StoreLocation,
        environ: Mapping[str, str],
        tokens_env: str = "",
        config: str = "",
    ) -> None:
        """Prepare; ``config`` is the file that the paths of certificates are relative to."""
        self._location = location
        self._config = config
        self._environ = environ
        self._tokens_env = tokens_env
        self._opened: OAuthAccess | None = None

    def open(self) -> "OAuthAccess":
        """Return the tokens; their store is opened when they are first read."""
        if self._opened is None:
            from thoughtgate.upstream.oauth.access import OAuthAccess

            self._opened = OAuthAccess(
                self._location, self._environ, self._tokens_env, config=self._config
            )
        return self._opened

    def authorizer(self, server: ServerSettings) -> "LazyCredentials | None":
        """Return the credentials of a server; None if the config has others for it."""
        names = {name.lower() for name in server.headers}
        if _AUTHORIZATION in names or (server.auth is not None and server.auth.type != OAUTH):
            return None
        return LazyCredentials(self, server)

    def is_personal(self, server: ServerSettings) -> bool:
        """Return whether requests to a server carry the login of their principal.

        Without OAuth in the config, this is known only after the server has asked for a login.
        """
        auth = server.auth
        if not server.url or (auth is not None and auth.grant == CLIENT_CREDENTIALS):
            return False
        if auth is not None:
            return auth.type == OAUTH
        return self._opened is not None and self._opened.wants_login(server)

    async def has_login(self, server: ServerSettings, principal: str) -> bool:
        """Return whether requests to a server can carry a principal's login now."""
        try:
            return bool(await self.open().credentials(server).obtain(principal))
        except PeerError:
            return False

    async def close(self) -> None:
        """Finish renewals that have begun, and close the store."""
        if self._opened is not None:
            await self._opened.close()


class LazyCredentials:
    """The credentials of one server; requests carry no login until the server asks for one.

    This is an ``Authorizer``; see ``transports.authorized_pool``.
    """

    def __init__(self, access: LoginAccess, server: ServerSettings) -> None:
        self._access = access
        self._server = server
        self._real: Credentials | None = None
        # With OAuth in the config, the first request already carries the token.
        self._before = None if server.auth is not None else b""

    def header(self, principal: str) -> bytes | None:
        """Return the header line to send, empty for none; None if it must be obtained first."""
        return self._before if self._real is None else self._real.header(principal)

    async def obtain(self, principal: str) -> bytes:
        """Return the header line to send; empty for none."""
        return await self._loaded().obtain(principal)

    def handles(self, head: ResponseHead) -> bool:
        """Return whether a 401 or 403 is about these credentials."""
        return self._loaded().handles(head)

    async def replace(self, principal: str, refused: bytes, head: ResponseHead) -> bytes:
        """Return another header line, after the server refused this one."""
        return await self._loaded().replace(principal, refused, head)

    def refusal(self, principal: str, head: ResponseHead) -> PeerError:
        """Return the error for a request that was refused again."""
        return self._loaded().refusal(principal, head)

    def _loaded(self) -> "Credentials":
        if self._real is None:
            self._real = self._access.open().credentials(self._server)
        return self._real
