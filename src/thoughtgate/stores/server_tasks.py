"""The principals for which servers made tasks, so that no other principal can use one by its id."""

import hashlib
from collections.abc import Iterable
from typing import Final

from thoughtgate.stores.database import Database, Store

KEPT_S: Final = 30 * 86_400.0
"""How long an owner is kept; a server keeps few tasks for longer. Then nobody can use the task."""

MAX_OWNED: Final = 10_000
"""Maximum tasks of one principal; the oldest are forgotten, and cannot be used then."""

_AT_ONCE: Final = 500
"""Tasks per query: a message may name a hundred thousand."""

_OWNERS: Final = "SELECT id, principal FROM server_tasks WHERE expires_at > ? AND id IN"


class ServerTaskStore(Store):
    """The owners of tasks at every gate that shares the store. Every method may raise StoreError."""

    def __init__(self, database: Database, max_owned: int = MAX_OWNED) -> None:
        super().__init__(database)
        self._max_owned = max_owned

    def owner(self, server: str, task_id: str, now: float) -> str | None:
        """Return the principal that a task belongs to; None if it is not known."""
        return self.owners(server, [task_id], now).get(task_id)

    def owners(self, server: str, task_ids: Iterable[str], now: float) -> dict[str, str]:
        """Return the principals that tasks belong to, without the tasks that are not known."""
        keys = {_key(server, one): one for one in task_ids}
        asked, at = list(keys), self._database.time(now)
        found: dict[str, str] = {}
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            query = f"{_OWNERS} ({', '.join('?' * len(some))})"
            rows = self._database.read(query, (at, *some))
            found.update((keys[key], str(owner)) for key, owner in rows)
        return found

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
