"""The tokens of a gate's servers: where they are stored, and who is signed in."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from thoughtgate.config.server_auth import CLIENT_CREDENTIALS
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import ConfigError, LoginError, StoreError
from thoughtgate.gate.connections.certificates import trusting
from thoughtgate.gate.connections.proxy_choice import choose_proxy
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.tokens import TokenFacts, TokenKey, TokenStore, server_key
from thoughtgate.transports.http_proxy import ProxyAddress, parse_proxy
from thoughtgate.upstream.oauth.challenge import Challenge
from thoughtgate.upstream.oauth.credentials import GATE, Credentials, facts_of
from thoughtgate.upstream.oauth.discovery import canonical, is_same_issuer
from thoughtgate.upstream.oauth.fetch import Fetcher
from thoughtgate.upstream.oauth.login import LoginFlow, LoginPlan
from thoughtgate.upstream.oauth.registration import configured_client
from thoughtgate.upstream.oauth.token_endpoint import refresh, revoke
from thoughtgate.upstream.oauth.token_keys import load_cipher
from thoughtgate.upstream.oauth.tokens import OAuthClient, SignedIn, TokenSet


class OAuthAccess:
    """Opens the token store when it is first needed; the commands and the gates share it.

    ``tokens_env`` is the variable of ``keys.tokens_env`` in the config; without it, the key that
    encrypts the tokens is in the keyring of the operating system.
    """

    def __init__(
        self,
        location: StoreLocation,
        environ: Mapping[str, str],
        tokens_env: str = "",
        *,
        config: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; ``config`` is the file that the paths of certificates are relative to."""
        self._location = location
        self._config = config
        self._environ = environ
        self._tokens_env = tokens_env
        self._clock = clock
        self._store: TokenStore | None = None
        self._opening: asyncio.Lock | None = None
        self._credentials: dict[tuple[str, str], Credentials] = {}

    # For gates.

    def credentials(self, server: ServerSettings) -> Credentials:
        """Return the credentials of a server, the same for all its connections."""
        key = _credentials_key(server)
        found = self._credentials.get(key)
        if found is None:
            found = Credentials(server, key[0], self, clock=self._clock)
            self._credentials[key] = found
        return found

    def wants_login(self, server: ServerSettings) -> bool:
        """Return whether a server has asked for a login."""
        found = self._credentials.get(_credentials_key(server))
        return found is not None and found.was_asked_for

    async def opened(self) -> TokenStore:
        """Return the store with the key of the tokens.

        Raises:
            LoginError: there is no key.
            StoreError: the store cannot be opened.
        """
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._store is None:
                self._store = await asyncio.to_thread(self._open)
        return self._store

    async def refreshed(self, tokens: TokenSet, server: ServerSettings) -> TokenSet:
        """Ask the authorization server for renewed tokens.

        Raises:
            LoginError: it refuses, or cannot be reached.
        """
        client = self._client_of(tokens, server)
        return await refresh(self._fetcher(server), tokens, client, self._clock())

    async def get_client_credentials(
        self, server: ServerSettings, challenge: Challenge | None
    ) -> None:
        """Store new tokens of the gate itself.

        Raises:
            LoginError: the authorization server refuses, or cannot be reached.
        """
        await self.login(server, GATE).use_client_credentials(challenge)

    # For people.

    def login(self, server: ServerSettings, principal: str) -> LoginFlow:
        """Return a new sign-in; nothing is sent yet."""
        is_machine = server.auth is not None and server.auth.grant == CLIENT_CREDENTIALS
        who = GATE if is_machine else principal
        place = server_key(canonical(server.url))

        async def save(tokens: TokenSet) -> SignedIn:
            store, facts, now = await self.opened(), facts_of(server, tokens), self._clock()
            key = TokenKey(who, place, tokens.issuer)
            await asyncio.to_thread(store.save_login, key, tokens.to_json(), facts, now)
            return _shown(facts._replace(principal=who, signed_in_at=now))

        async def load() -> tuple[TokenSet | None, tuple[str, ...]]:
            store = await self.opened()
            try:
                stored = await asyncio.to_thread(store.find, who, place)
                missing = await asyncio.to_thread(store.wanted_scopes, who, place)
                return (TokenSet.from_json(stored.body) if stored is not None else None), missing
            except (StoreError, ValueError):
                return None, ()  # Encrypted with a key that is gone: this login replaces them.

        async def issuers() -> frozenset[str]:
            return frozenset(facts.issuer for facts in await asyncio.to_thread(self._listed, ""))

        plan = LoginPlan(server, who, self._environ, save, load, issuers, self._fetcher(server))
        return LoginFlow(plan, clock=self._clock)

    async def signed_in(self, server: ServerSettings | None = None) -> list[SignedIn]:
        """Return who is signed in, to one server or to all; needs no key.

        Raises:
            StoreError: the store cannot be read.
        """
        place = server_key(canonical(server.url)) if server is not None else ""
        return [_shown(facts) for facts in await asyncio.to_thread(self._listed, place)]

    async def logout(self, server: ServerSettings, principal: str) -> bool:
        """Revoke and delete the tokens; False if there were none.

        They are deleted even if the authorization server cannot be reached.

        Raises:
            LoginError: the key of the tokens is missing, so they were deleted but not revoked.
            StoreError: the store cannot be written.
        """
        place = server_key(canonical(server.url))
        tokens: TokenSet | None = None
        problem: LoginError | None = None
        try:
            store = await self.opened()
            stored = await asyncio.to_thread(store.find, principal, place)
            tokens = TokenSet.from_json(stored.body) if stored is not None else None
        except LoginError as error:
            problem = error
        except (StoreError, ValueError) as error:
            problem = LoginError(str(error))
        had_some = await asyncio.to_thread(self._forget, principal, place)
        if tokens is not None:
            await revoke(self._fetcher(server), tokens, self._client_of(tokens, server))
        elif problem is not None and had_some:
            raise LoginError(f"signed out, but the tokens were not revoked: {problem}")
        return had_some

    async def close(self) -> None:
        """Finish renewals that have begun, and close the store."""
        for one in self._credentials.values():
            await one.close()
        self._credentials.clear()
        store, self._store = self._store, None
        if store is not None:
            await asyncio.to_thread(store.close)

    def _client_of(self, tokens: TokenSet, server: ServerSettings) -> OAuthClient:
        """Return the client that tokens were issued to, with its secret.

        The secret in the config is for its issuer only. Another issuer could have given the gate the
        same client id in order to receive that secret.
        """
        client = configured_client(server.auth, self._environ)
        if client is None or server.auth is None or client.client_id != tokens.client.client_id:
            return tokens.client
        if server.auth.issuer and not is_same_issuer(server.auth.issuer, tokens.issuer):
            return tokens.client
        return replace(client, auth_method=tokens.client.auth_method)

    def _fetcher(self, server: ServerSettings) -> Fetcher:
        issuer = server.auth.issuer if server.auth is not None else ""
        # A private CA often signs the authorization server's certificate too. No client certificate
        # is sent, because the MCP server chooses the authorization server.
        ca = server.tls.ca if server.tls is not None else ""
        tls = trusting(ca, self._config, f"servers.{server.id}.tls.ca") if ca else None

        def proxy_for(url: str) -> ProxyAddress | None:
            # Where an agent chose the environment, it must not choose a proxy either.
            started = self._location.ignores_environment
            try:
                target = replace(server, url=url)
                found = choose_proxy(target, self._environ, agent_started=started)
            except ConfigError as error:
                raise LoginError(str(error)) from None
            return parse_proxy(found.url) if found is not None else None

        return Fetcher(server.url, (issuer,) if issuer else (), tls, proxy_for)

    def _open(self) -> TokenStore:
        cipher = load_cipher(self._environ, self._tokens_env)
        return TokenStore(open_database(self._location), cipher)

    def _listed(self, place: str) -> list[TokenFacts]:
        store = TokenStore(open_database(self._location))
        try:
            return store.listed(place)
        finally:
            store.close()

    def _forget(self, principal: str, place: str) -> bool:
        store = TokenStore(open_database(self._location))
        try:
            return store.forget(principal, place)
        finally:
            store.close()


def _credentials_key(server: ServerSettings) -> tuple[str, str]:
    return server_key(canonical(server.url)), repr((server.id, server.auth))


def _shown(facts: TokenFacts) -> SignedIn:
    return SignedIn(
        facts.principal,
        facts.name,
        facts.issuer,
        facts.scopes,
        facts.signed_in_at,
        facts.expires_at,
        facts.is_renewable,
    )
