"""Sessions of the console that every gate of a store accepts.

A session is named by a digest of the browser's cookie, so a person who can read the table cannot
use a session. Submitted forms are marked here too: each works once, whichever gate gets it.
"""

from typing import Final, NamedTuple

from thoughtgate.stores.database import Database, Store
from thoughtgate.stores.used_prompts import UsedPrompts

_OLDEST: Final = (
    "DELETE FROM console_sessions WHERE id IN (SELECT id FROM console_sessions {which} "
    "ORDER BY opened_at DESC, id LIMIT 1000000 OFFSET ?)"
)
"""Deletes all but the newest; SQLite accepts an offset only after a limit."""


class StoredConsoleSession(NamedTuple):
    """A signed-in browser."""

    subject: str
    """Who is signed in through the proxy."""
    expires_at: float
    """On this machine's clock."""


class ConsoleSessionStore(Store):
    """The signed-in browsers of all gates."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._used = UsedPrompts(database)

    def add(
        self,
        ident: str,
        subject: str,
        expires_at: float,
        now: float,
        *,
        per_person: int,
        total: int,
    ) -> None:
        """Add a session; if a person, or the store, has more than the limit, the oldest ones end.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._database.write() as transaction:
            at, until = self._database.time(now), self._database.time(expires_at)
            transaction.execute("DELETE FROM console_sessions WHERE expires_at <= ?", (at,))
            transaction.execute(
                "INSERT INTO console_sessions (id, subject, opened_at, expires_at) "
                "VALUES (?, ?, ?, ?)",
                (ident, subject, at, until),
            )
            own = _OLDEST.format(which="WHERE subject = ?")
            transaction.execute(own, (subject, per_person))
            transaction.execute(_OLDEST.format(which=""), (total,))

    def find(self, ident: str, now: float) -> StoredConsoleSession | None:
        """Return a session that has not ended.

        Raises:
            StoreError: the store cannot be read.
        """
        at = self._database.time(now)
        rows = self._database.read(
            "SELECT subject, expires_at FROM console_sessions WHERE id = ? AND expires_at > ?",
            (ident, at),
        )
        # Back to this machine's clock: the difference is the same in both directions.
        return StoredConsoleSession(rows[0][0], rows[0][1] - (at - now)) if rows else None

    def end(self, ident: str) -> None:
        """End a session at every gate.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._database.write() as transaction:
            transaction.execute("DELETE FROM console_sessions WHERE id = ?", (ident,))

    def use_form(self, nonce: bytes, until: float, now: float) -> bool:
        """Mark a form as submitted; False if it already was.

        Raises:
            StoreError: the store cannot be written, so the form may not be used.
        """
        time = self._database.time
        return self._used.mark(f"form {nonce.hex()}", time(until), time(now))
