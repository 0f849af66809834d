"""What gates that share HTTP sessions exchange: sessions that ended, and messages.

A session itself is in no table: its id is sealed, so every gate with the same keys can verify it.
Sessions are named by a hash here, because anybody who knows an id can use the session. A message is
an agent's answer or cancellation that did not arrive at the gate that waits for it. Its sender
waits until that gate has taken it, so a message that nobody takes is not lost silently.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from thoughtgate.stores.database import Store, next_rev

MESSAGE_S: Final = 10.0
"""How long a message is kept; its sender gives up sooner."""


class Carried(NamedTuple):
    """A message for the gate that has the request to which it belongs."""

    number: int
    session: str
    body: bytes


class SessionStore(Store):
    """The ended sessions and the messages of all gates."""

    # Sessions that have ended.

    def end(self, session: str, until: float, now: float) -> None:
        """Note that a session has ended; its id could be used until ``until``."""
        with self._database.write() as transaction:
            at, ends_at = self._database.time(now), self._database.time(until)
            transaction.execute("DELETE FROM ended_sessions WHERE expires_at < ?", (at,))
            transaction.execute(
                "INSERT INTO ended_sessions (session, expires_at, rev) VALUES (?, ?, ?) "
                "ON CONFLICT (session) DO NOTHING",
                (session, ends_at, next_rev(transaction)),
            )

    def is_ended(self, session: str) -> bool:
        """Tell whether a session has ended at any gate."""
        query = "SELECT 1 FROM ended_sessions WHERE session = ?"
        return bool(self._database.read(query, (session,)))

    def ended_since(self, rev: int) -> tuple[list[str], int]:
        """Return the sessions that ended after a revision, and the revision of the last one."""
        query = "SELECT session, rev FROM ended_sessions WHERE rev > ? ORDER BY rev"
        rows = self._database.read(query, (rev,))
        return [session for session, _ in rows], rows[-1][1] if rows else rev

    def latest_end(self) -> int:
        """Return the revision of the session that ended last."""
        rows = self._database.read("SELECT coalesce(max(rev), 0) FROM ended_sessions")
        return int(rows[0][0])

    # Messages.

    def send(self, session: str, body: bytes, now: float) -> int:
        """Add a message for the gate that has the request; return its number."""
        with self._database.write() as transaction:
            at = self._database.time(now)
            transaction.execute("DELETE FROM session_messages WHERE expires_at < ?", (at,))
            row = transaction.execute(
                "INSERT INTO session_messages (session, body, expires_at) VALUES (?, ?, ?) "
                "RETURNING number",
                (session, body, at + MESSAGE_S),
            ).fetchone()
            next_rev(transaction)  # tells the others
        return int(row[0])

    def waiting(self, sessions: Collection[str]) -> list[Carried]:
        """Return the messages for these sessions, oldest first."""
        rows = self._database.read(
            "SELECT number, session, body FROM session_messages ORDER BY number"
        )
        return [Carried(*row) for row in rows if row[1] in sessions]

    def is_waiting(self, number: int) -> bool:
        """Tell whether nobody has taken a message yet."""
        query = "SELECT 1 FROM session_messages WHERE number = ?"
        return bool(self._database.read(query, (number,)))

    def take(self, number: int) -> bool:
        """Remove a message; False if another gate has taken it, or it has expired."""
        with self._database.write() as transaction:
            taken = transaction.execute(
                "DELETE FROM session_messages WHERE number = ?", (number,)
            ).rowcount
            if taken:
                next_rev(transaction)  # tells the sender
        return bool(taken)
