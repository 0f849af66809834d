"""The principals for which servers made tasks, so that no other principal can use one by its id."""

import hashlib
from typing import Final

from thoughtgate.stores.database import Database, Store

KEPT_S: Final = 30 * 86_400.0
"""How long an owner is kept; a server keeps few tasks for longer. Then nobody can use the task."""

MAX_OWNED: Final = 10_000
"""Maximum tasks of one principal; the oldest are forgotten, and cannot be used then."""


class ServerTaskStore(Store):
    """The owners of tasks at every gate that shares the store. Every method may raise StoreError."""

    def __init__(self, database: Database, max_owned: int = MAX_OWNED) -> None:
        super().__init__(database)
        self._max_owned = max_owned

    def owner(self, server: str, task_id: str, now: float) -> str | None:
        """Return the principal that a task belongs to; None if it is not known."""
        rows = self._database.read(
            "SELECT principal FROM server_tasks WHERE id = ? AND expires_at > ?",
            (_key(server, task_id), self._database.time(now)),
        )
        return str(rows[0][0]) if rows else None

    def add(self, server: str, task_id: str, principal: str, now: float) -> None:
        """Keep the owner of a new task; a task that has an owner keeps it."""
        with self._database.write() as transaction:
            at = self._database.time(now)
            transaction.execute("DELETE FROM server_tasks WHERE expires_at <= ?", (at,))
            transaction.execute(
                "INSERT INTO server_tasks (id, principal, expires_at) VALUES (?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (_key(server, task_id), principal, at + KEPT_S),
            )
            transaction.execute(
                "DELETE FROM server_tasks WHERE id IN (SELECT id FROM server_tasks "
                "WHERE principal = ? ORDER BY expires_at DESC, id LIMIT 1000000 OFFSET ?)",
                (principal, self._max_owned),
            )


def _key(server: str, task_id: str) -> str:
    """Return a key of one length, because servers choose their tasks' ids."""
    return hashlib.sha256(f"{server}\0{task_id}".encode("utf-8", "replace")).hexdigest()
