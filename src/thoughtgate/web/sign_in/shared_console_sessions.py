"""Sessions of the consoles that several gates offer at one address, as rows in their store.

A browser that signed in at one gate is signed in at all of them, so a load balancer may send each
request to a different gate. A sign-in link works only at the gate that created it.
"""

from collections.abc import Callable

from thoughtgate.stores.console_sessions import ConsoleSessionStore
from thoughtgate.web.sign_in import console_sessions
from thoughtgate.web.sign_in.console_sessions import ConsoleSession, ConsoleSessions


class SharedConsoleSessions(ConsoleSessions):
    """The sessions of all consoles that share a store. Every operation may raise StoreError."""

    def __init__(
        self,
        port: int,
        clock: Callable[[], float],
        store: ConsoleSessionStore,
        *,
        is_secure: bool = False,
    ) -> None:
        """Serve a console that browsers reach on a port; close ``store`` with it."""
        super().__init__(port, clock, is_secure=is_secure)
        self._store = store

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def holds(self, session: ConsoleSession) -> bool:
        """Tell whether a session still exists."""
        return self._store.find(session.id, self._clock()) is not None

    def sign_out(self, session: ConsoleSession) -> None:
        """End a session at every gate."""
        self._store.end(session.id)

    def _keep(self, session: ConsoleSession) -> None:
        self._store.add(
            session.id,
            session.subject,
            session.expires_at,
            self._clock(),
            per_person=console_sessions.MAX_SESSIONS,
            total=console_sessions.MAX_IN_ALL,
        )

    def _kept(self, ident: str, key: bytes) -> ConsoleSession | None:
        found = self._store.find(ident, self._clock())
        if found is None:
            return None
        return ConsoleSession(ident, key, found.expires_at, {}, found.subject)

    def _use(self, session: ConsoleSession, nonce: bytes, until: int) -> bool:
        del session
        return self._store.use_form(nonce, until, self._clock())
