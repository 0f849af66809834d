"""The credentials of one server: the header that each principal's requests carry.

A fresh token is a look-up in a dictionary. Shortly before a token expires, the next request that
uses it starts a renewal in the background; a token that nobody uses is left to expire. However many
requests wait, there is one renewal, by the process that holds the lease of the token's row in the
store; other processes and other gates wait for the row to change.
"""

import asyncio
import shlex
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Protocol

from thoughtgate.config.server_auth import CLIENT_CREDENTIALS, OAUTH
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import LoginError, PeerError, StoreError, upstream_error
from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.run_identity import LOCAL
from thoughtgate.stores.tokens import StoredTokens, TokenFacts, TokenStore, lease_owner
from thoughtgate.transports.http_heads import ResponseHead
from thoughtgate.upstream.oauth.challenge import Challenge, read_challenge
from thoughtgate.upstream.oauth.token_endpoint import RefusedGrant
from thoughtgate.upstream.oauth.tokens import TokenSet

MARGIN_S: Final = 60.0
"""How long before its expiry a token is renewed, unless it lasts only a few minutes."""
MARGIN: Final = 0.25
"""The same for a token that lasts only a few minutes, as a fraction of its lifetime."""
SKEW_S: Final = 1.0
"""A token is not sent any more within this time of its expiry."""
RETRY_S: Final = 5.0
"""How long to wait after a failed renewal while the old token lasts, and after a renewed token was
refused: otherwise a server could cause a renewal with every call."""
MAX_CAUSED: Final = 5
CAUSED_S: Final = 60.0
"""The refusals of a server can cause at most this many renewals and step-ups per principal in this
time."""
WAIT_S: Final = 50.0
"""How long to wait for another process that renews."""
POLL_S: Final = 0.05
LOOK_S: Final = 2.0
"""How often the store is checked for logins and logouts."""

CLOSE_S: Final = 5.0
"""How long to wait for a renewal that has begun."""
MAX_PRINCIPALS: Final = 10_000

GATE: Final = "(gate)"
"""The principal of the token with which the gate signs in for itself."""

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_OVER: Final = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""Errors after which stored tokens cannot be renewed any more, so that they are deleted."""

_numbers = count(1)


class Source(Protocol):
    """The store and the authorization server, as far as credentials need them."""

    async def opened(self) -> TokenStore:
        """Return the store; raises LoginError or StoreError."""

    async def refreshed(self, tokens: TokenSet, server: ServerSettings) -> TokenSet:
        """Ask the authorization server for renewed tokens; raises LoginError."""

    async def get_client_credentials(
        self, server: ServerSettings, challenge: Challenge | None
    ) -> None:
        """Store new tokens of the gate itself; raises LoginError."""


@dataclass(slots=True)
class _Entry:
    """What is known about one principal."""

    tokens: TokenSet
    stored: StoredTokens
    line: bytes
    timer: asyncio.TimerHandle | None = None
    kept_until: float = 0.0
    """The time until which the tokens are not renewed, because the server refuses them anyway."""

    @property
    def is_renewable(self) -> bool:
        """Whether the gate can renew the tokens without a person."""
        return bool(self.tokens.refresh_token) or self.tokens.grant == CLIENT_CREDENTIALS


class Credentials:
    """The credentials of all principals for one server. It is an ``Authorizer`` for its pools."""

    def __init__(
        self,
        server: ServerSettings,
        key: str,
        source: Source,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Start without tokens; ``key`` names the server in the store."""
        self._server = server
        self._key = key
        self._source = source
        self._clock = clock
        self._owner = lease_owner(next(_numbers))
        auth = server.auth
        self._is_configured = auth is not None and auth.type == OAUTH
        self._is_machine = auth is not None and auth.grant == CLIENT_CREDENTIALS
        self._shared = GATE if self._is_machine else ""
        """The principal whose token all others use, if the gate signs in for itself."""
        self._lines: dict[str, bytes] = {}
        """The header lines of fresh tokens."""
        self._entries: dict[str, _Entry] = {}
        self._caused: dict[str, list[float]] = {}
        """When the server's refusals caused a renewal or a step-up lately, by principal."""
        self._pending: dict[str, asyncio.Task[bytes]] = {}
        """The one attempt per principal to get a token."""
        self._watching: asyncio.Task[None] | None = None
        self.was_asked_for = False
        """Whether the server has refused a request without a login."""
        self.needs_login: set[str] = set()
        """Principals whose last request failed because they are not signed in."""

    # An ``Authorizer``.

    def header(self, principal: str) -> bytes | None:
        """Return the header line to send, empty for none; None if it must be obtained first."""
        line = self._lines.get(self._shared or principal)
        return line if line is not None else self._ageing(self._shared or principal)

    async def obtain(self, principal: str) -> bytes:
        """Return the header line to send; empty if nobody is signed in."""
        principal = self._shared or principal
        return await self._once(principal, lambda: self._obtain(principal))

    def handles(self, head: ResponseHead) -> bool:
        """Return whether a login can help after a refusal.

        It can after a 401, unless the config has other credentials for the server, and after a 403
        that says that scopes are missing.
        """
        challenge = read_challenge(head.headers)
        if head.status != _UNAUTHORIZED:
            return challenge is not None and challenge.wants_more_scopes
        return challenge is not None or self._is_configured or not self._server.headers

    async def replace(self, principal: str, refused: bytes, head: ResponseHead) -> bytes:
        """Return a newer token than the refused one."""
        self.was_asked_for = True
        principal = self._shared or principal
        challenge = read_challenge(head.headers)
        if head.status != _UNAUTHORIZED and challenge is not None:
            return await self._step_up(principal, refused, challenge)
        line = self._lines.get(principal, b"")
        if line and line != refused:
            return line  # It was renewed while this request was on its way.
        line = await self._once(principal, lambda: self._replace(principal, refused, challenge))
        if not line or line == refused:
            raise self.refusal(principal, head)
        return line

    def refusal(self, principal: str, head: ResponseHead) -> PeerError:
        """Return the error that says how to sign in."""
        if len(self.needs_login) < MAX_PRINCIPALS:
            self.needs_login.add(self._shared or principal)
        entry = self._entries.get(self._shared or principal)
        if head.status != _UNAUTHORIZED:
            reason = "the server needs permissions that the login did not grant"
        elif entry is not None:
            reason = "the server refused the login"
            if self._clock() >= entry.kept_until:
                entry.kept_until = self._clock() + RETRY_S
        else:
            reason = "the server needs a login"
        text = f"{reason} (HTTP {head.status}); run: {self._login_command(principal)}"
        return upstream_error("login_required", text, status=head.status)

    def _login_command(self, principal: str) -> str:
        """Return the command that signs in, for the principal that needs it."""
        command = f"thoughtgate login {self._server.id}"
        if self._shared or principal == LOCAL:
            return command
        return f"{command} --principal {shlex.quote(principal)}"

    async def close(self) -> None:
        """Stop all work in the background, after the renewals that have begun.

        An interrupted renewal would lose the new refresh token, and the old one cannot be used again.
        """
        if self._pending:
            await asyncio.wait(self._pending.values(), timeout=CLOSE_S)
        await finish(self._watching, *self._pending.values())
        for principal in list(self._entries):
            self._drop(principal)

    # Tokens in memory.

    def _adopt(self, principal: str, stored: StoredTokens) -> bytes:
        """Use stored tokens from now on."""
        self._drop(principal)
        if len(self._entries) >= MAX_PRINCIPALS:
            self._drop(next(iter(self._entries)))
        tokens = TokenSet.from_json(stored.body)
        entry = _Entry(tokens, stored, _line(tokens))
        self._entries[principal] = entry
        self.needs_login.discard(principal)
        if self._is_sendable(stored):
            left = stored.expires_at - self._clock()
            margin = min(MARGIN_S, left * MARGIN) if entry.is_renewable else SKEW_S
            self._offer(principal, entry, stored.expires_at - margin)
        if self._watching is None or self._watching.done():
            self._watching = spawn(self._watch())
        return entry.line

    def _offer(self, principal: str, entry: _Entry, until: float) -> None:
        """Make a token available without further checks until a time."""
        self._lines[principal] = entry.line
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer = None
        if entry.stored.expires_at:
            loop, delay = asyncio.get_running_loop(), max(until - self._clock(), 0.0)
            entry.timer = loop.call_later(delay, self._lines.pop, principal, None)

    def _drop(self, principal: str) -> None:
        self._lines.pop(principal, None)
        entry = self._entries.pop(principal, None)
        if entry is not None and entry.timer is not None:
            entry.timer.cancel()

    def _is_sendable(self, stored: StoredTokens) -> bool:
        return not stored.expires_at or self._clock() < stored.expires_at - SKEW_S

    def _ageing(self, principal: str) -> bytes | None:
        """Return the line of a token that is about to end, and have it renewed."""
        entry = self._entries.get(principal)
        if entry is None:
            # Without OAuth in the config, the server is asked first whether it wants a login.
            return None if self._is_configured else b""
        if not self._is_sendable(entry.stored):
            return None
        self._offer(principal, entry, entry.stored.expires_at - SKEW_S)
        if entry.is_renewable and principal not in self._pending:
            spawn(self._renew_in_background(principal, entry))
        return entry.line

    async def _renew_in_background(self, principal: str, entry: _Entry) -> None:
        try:
            await self._once(principal, lambda: self._renewed(principal, entry.stored))
        except PeerError:
            # The old token still works; the next request after a while tries again.
            if self._entries.get(principal) is entry:
                self._offer(principal, entry, self._clock() + RETRY_S)

    async def _watch(self) -> None:
        """Follow logins, logouts and renewals by other processes."""
        seen: tuple[int, int] | None = None
        while self._entries:
            await asyncio.sleep(LOOK_S)
            try:
                store = await self._source.opened()
                state = await asyncio.to_thread(store.state)
                if state != seen:
                    facts = await asyncio.to_thread(store.listed, self._key)
                    await self._compare(store, {one.principal: one for one in facts})
                seen = state
            except (LoginError, StoreError):
                continue  # Tokens in memory stay valid while the store is away.

    async def _compare(self, store: TokenStore, facts: dict[str, TokenFacts]) -> None:
        for principal, entry in list(self._entries.items()):
            now = facts.get(principal)
            if now is None:
                self._drop(principal)
            elif now.generation != entry.stored.generation and principal not in self._pending:
                stored = await asyncio.to_thread(store.find, principal, self._key)
                if stored is not None:
                    self._adopt(principal, stored)

    # Getting tokens.

    async def _once(self, principal: str, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """Make one attempt at a time; other requests that need the token wait for it."""
        task = self._pending.get(principal)
        if task is None:
            task = self._pending[principal] = asyncio.ensure_future(
                self._with_names(principal, work())
            )
            task.add_done_callback(lambda done: self._ended(principal, done))
        # One request that is cancelled must not end the attempt for the others.
        return await asyncio.shield(task)

    async def _with_names(self, principal: str, work: Coroutine[Any, Any, bytes]) -> bytes:
        """Turn the errors of logins and stores into errors that requests fail with."""
        try:
            return await work
        except (LoginError, StoreError, ValueError) as error:
            is_known = principal in self._entries or self._is_machine
            if is_known:
                raise upstream_error("renewal_failed", str(error)) from None
            text = f"the server needs a login, and the gate cannot read its tokens: {error}"
            raise upstream_error("login_required", text) from None

    def _ended(self, principal: str, task: asyncio.Task[bytes]) -> None:
        self._pending.pop(principal, None)
        if not task.cancelled():
            task.exception()  # Retrieved, so that asyncio does not log it; the waiting requests get it.

    async def _obtain(self, principal: str) -> bytes:
        store = await self._source.opened()
        stored = await asyncio.to_thread(store.find, principal, self._key)
        if stored is None:
            return await self._granted(principal, store, None) if self._is_machine else b""
        line = self._adopt(principal, stored)
        return line if self._is_sendable(stored) else await self._renewed(principal, stored)

    async def _replace(self, principal: str, refused: bytes, challenge: Challenge | None) -> bytes:
        store = await self._source.opened()
        stored = await asyncio.to_thread(store.find, principal, self._key)
        if stored is None:
            self._drop(principal)
            return await self._granted(principal, store, challenge) if self._is_machine else b""
        known = self._entries.get(principal)
        is_same = known is not None and known.stored.generation == stored.generation
        if known is not None and is_same and self._clock() < known.kept_until:
            return b""
        line = self._adopt(principal, stored)
        if line != refused and self._is_sendable(stored):
            return line  # Somebody signed in, or another process renewed it.
        return await self._renewed(principal, stored) if self._may_cause(principal) else b""

    def _may_cause(self, principal: str) -> bool:
        """Count a renewal or step-up that a refusal causes; False if there were too many lately.

        A server that refuses every other request could otherwise cause a renewal with each call.
        """
        now = self._clock()
        lately = [at for at in self._caused.pop(principal, ()) if abs(now - at) < CAUSED_S]
        may = len(lately) < MAX_CAUSED
        if len(self._caused) >= MAX_PRINCIPALS:
            del self._caused[next(iter(self._caused))]
        self._caused[principal] = [*lately, now] if may else lately
        return may

    async def _step_up(self, principal: str, refused: bytes, challenge: Challenge) -> bytes:
        """Get the scopes that are missing, if no person is needed; otherwise note them."""
        entry = self._entries.get(principal)
        has = entry.tokens.scopes if entry is not None else ()
        is_wider = self._is_machine and not set(challenge.scopes) <= set(has)
        if is_wider and (principal in self._pending or self._may_cause(principal)):
            wider = challenge._replace(scopes=tuple(dict.fromkeys((*has, *challenge.scopes))))

            async def grant() -> bytes:
                return await self._granted(principal, await self._source.opened(), wider)

            line = await self._once(principal, grant)
            if line and line != refused:
                return line
        try:
            store = await self._source.opened()
            stored = await asyncio.to_thread(store.find, principal, self._key)
            if stored is not None and self._is_sendable(stored):
                line = self._adopt(principal, stored)
                if line != refused:
                    return line  # There was a new login since.
            await asyncio.to_thread(store.want_scopes, principal, self._key, challenge.scopes)
        except (LoginError, StoreError):
            pass  # The login then asks for the usual scopes, and the server says it again.
        raise self.refusal(principal, ResponseHead(_FORBIDDEN, []))

    async def _granted(
        self, principal: str, store: TokenStore, challenge: Challenge | None
    ) -> bytes:
        """Get a token for the gate itself."""
        await self._source.get_client_credentials(self._server, challenge)
        stored = await asyncio.to_thread(store.find, principal, self._key)
        return self._adopt(principal, stored) if stored is not None else b""

    async def _renewed(self, principal: str, stored: StoredTokens) -> bytes:
        """Return the header line of renewed tokens; empty if only a login helps.

        Raises:
            LoginError: the authorization server cannot be used now.
        """
        store = await self._source.opened()
        deadline = asyncio.get_running_loop().time() + WAIT_S
        while asyncio.get_running_loop().time() < deadline:
            claim = await asyncio.to_thread(
                store.claim, stored.key, stored.generation, self._owner, self._clock()
            )
            if claim.stored is None:
                self._drop(principal)
                return b""
            if claim.is_held:
                return await self._renew_held(principal, store, claim.stored)
            if claim.stored.generation != stored.generation:
                return self._adopt(principal, claim.stored)
            await asyncio.sleep(POLL_S)
        raise LoginError("another process did not renew the login in time")

    async def _renew_held(self, principal: str, store: TokenStore, stored: StoredTokens) -> bytes:
        """Renew tokens whose lease this process holds."""
        tokens = TokenSet.from_json(stored.body)
        saved: StoredTokens | None = None
        try:
            if tokens.grant == CLIENT_CREDENTIALS:
                return await self._granted(principal, store, None)
            if not tokens.refresh_token:
                return b""
            renewed = await self._source.refreshed(tokens, self._server)
            facts = facts_of(self._server, renewed)
            saved = await asyncio.to_thread(
                store.renew, stored, renewed.to_json(), facts, self._owner
            )
        except RefusedGrant as refused:
            if refused.code not in _OVER:
                raise
            await asyncio.to_thread(store.forget, principal, self._key, stored.generation)
            self._drop(principal)
            return b""
        finally:
            if saved is None:
                await asyncio.to_thread(store.release, stored, self._owner)
        # None if somebody has signed in or out meanwhile; the next request finds the new state.
        return self._adopt(principal, saved) if saved is not None else b""


def facts_of(server: ServerSettings, tokens: TokenSet) -> TokenFacts:
    """Return the facts about tokens that may be shown; the store fills in the rest."""
    is_renewable = bool(tokens.refresh_token) or tokens.grant == CLIENT_CREDENTIALS
    return TokenFacts(
        "", "", server.id, tokens.issuer, tokens.scopes, 0.0, tokens.expires_at, is_renewable, 0
    )


def _line(tokens: TokenSet) -> bytes:
    return b"authorization: Bearer %b\r\n" % tokens.access_token.encode("ascii")
