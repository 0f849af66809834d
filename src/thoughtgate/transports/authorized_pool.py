"""A connection pool whose requests carry the credentials of their principal.

While a principal's credentials are fresh, a request costs one additional look-up. A server that
refuses the credentials has not executed the request, so it is sent once more with new ones.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from thoughtgate.errors import PeerError
from thoughtgate.transports.http_client import ClientExchange, HttpPool, PoolOptions, Receiver
from thoughtgate.transports.http_heads import ResponseHead, render_request


class Authorizer(Protocol):
    """Knows the credentials of each principal."""

    def header(self, principal: str) -> bytes | None:
        """Return the header line to send, empty for none; None if it must be obtained first."""

    async def obtain(self, principal: str) -> bytes:
        """Return the header line to send; empty for none.

        Raises:
            PeerError: credentials are needed, and cannot be obtained.
        """

    def handles(self, head: ResponseHead) -> bool:
        """Return whether a 401 or 403 is about these credentials."""

    async def replace(self, principal: str, refused: bytes, head: ResponseHead) -> bytes:
        """Return another header line, after the server refused this one.

        Raises:
            PeerError: there are no other credentials; the error says what to do.
        """

    def refusal(self, principal: str, head: ResponseHead) -> PeerError:
        """Return the error for a request that was refused again."""


class AuthorizedPool(HttpPool):
    """A pool of connections to one origin, with credentials for each principal."""

    def __init__(self, url: str, options: PoolOptions, authorizer: Authorizer) -> None:
        super().__init__(url, options)
        self._authorizer = authorizer

    async def has_credentials(self, principal: str) -> bool:
        """Return whether requests for a principal carry credentials now."""
        try:
            return bool(await self._authorizer.obtain(principal))
        except PeerError:
            return False

    def send_prepared(
        self,
        head: bytes,
        body: bytes,
        receiver: Receiver,
        principal: str = "",
        *,
        routed: bool = True,
    ) -> ClientExchange:
        """Send a request with the principal's credentials."""
        if not head:
            return super().send_prepared(head, body, receiver)
        if self.route is not None and routed:
            return self.route.take(head, body, receiver, principal)
        line = self._authorizer.header(principal)
        exchange = _Exchange(receiver, head, body, principal)
        if line is None:
            self._later(exchange, self._authorizer.obtain(principal))
        else:
            self._begin_with(exchange, line)
        return exchange

    def intercepts(self, exchange: ClientExchange, head: ResponseHead) -> bool:
        """Send a refused request again with other credentials, or fail it and say what to do."""
        if not isinstance(exchange, _Exchange) or not self._authorizer.handles(head):
            return False
        exchange.connection = None
        # Once only: a server that refuses all credentials would otherwise be asked forever.
        if exchange.was_refused:
            self._later(exchange, self._fail(exchange, head))
        else:
            exchange.was_refused = True
            self._later(exchange, self._authorizer.replace(exchange.principal, exchange.line, head))
        return True

    async def _fail(self, exchange: "_Exchange", head: ResponseHead) -> bytes:
        raise self._authorizer.refusal(exchange.principal, head)

    def _begin_with(self, exchange: "_Exchange", line: bytes) -> None:
        exchange.line = line
        head = exchange.head + line if line else exchange.head
        exchange.data = render_request(head, exchange.body)
        self.begin(exchange)

    def _later(self, exchange: "_Exchange", obtaining: Coroutine[Any, Any, bytes]) -> None:
        task = asyncio.get_running_loop().create_task(self._begin_later(exchange, obtaining))
        # Closing the pool cancels it and fails the exchange.
        self._connecting[task] = exchange
        task.add_done_callback(self._connecting.pop)

    async def _begin_later(
        self, exchange: "_Exchange", obtaining: Coroutine[Any, Any, bytes]
    ) -> None:
        try:
            line = await obtaining
        except PeerError as error:
            exchange.fail(error)
            return
        if not exchange.is_over:
            self._begin_with(exchange, line)


class _Exchange(ClientExchange):
    """A request that can be sent again."""

    __slots__ = ("body", "head", "line", "principal", "was_refused")

    def __init__(self, receiver: Receiver, head: bytes, body: bytes, principal: str) -> None:
        # Sets the base class's fields itself, which saves every request one call.
        self.receiver = receiver
        self.connection = None
        self.data = b""
        self.head = head
        self.body = body
        self.principal = principal
        self.line = b""
        """The credentials that were sent."""
        self.was_refused = False
