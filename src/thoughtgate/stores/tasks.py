"""Tasks in the shared store: they belong to a principal and outlive the gate process.

A save with an invalid state transition is refused, so two gate processes cannot run or end the
same task twice. Each task is owned by one running process; if that dies, another process of the
same gate takes the task over, and the previous owner can no longer save it. Only a cancellation
is saved by any process, because a caller may cancel at any gate.

Times of rows are the store's; callers pass and get times of this machine's clock.
"""

import json
import os
from base64 import b32encode
from collections.abc import Callable
from typing import Final

from thoughtgate.core.task import CANCELLED, ID_PREFIX, TRANSITIONS, Task
from thoughtgate.stores.database import Database, Store, next_rev
from thoughtgate.stores.local_times import move_task

_RANDOM_BYTES: Final = 20
"""160 random bits: without authentication, the id is the only secret that protects a task."""

MAX_READ: Final = 1000
"""Maximum number of a principal's tasks in a list; far more than are kept."""


class TaskStore(Store):
    """The tasks of one gate, shared by all its processes."""

    is_durable = True
    """Tasks saved here outlive the process."""

    def __init__(
        self,
        database: Database,
        gate: str = "",
        owner: str = "",
        *,
        alive: Callable[[str], bool] | None = None,
    ) -> None:
        """Store the tasks of ``gate``; ``owner`` names the process that owns those saved here."""
        super().__init__(database)
        self._gate = gate
        self._owner = owner
        self._alive = alive or database.is_alive
        self._seen: tuple[int, int] | None = None

    def save(self, task: Task) -> bool:
        """Save a task; False if another process took it over, or its stored state has moved on."""
        # A call that runs must be known after a power loss: it may have taken effect.
        with self._database.write(through_power_loss=task.phase == "running") as connection:
            # Converted inside the transaction, which has just looked at the store's clock.
            task = move_task(task, self._database.time(0.0))
            row = connection.execute(
                "SELECT phase, owner FROM tasks WHERE id = ?", (task.id,)
            ).fetchone()
            if row is not None and not self._may_save(task, *row):
                return False
            body = json.dumps(task)
            facts = (task.id, task.principal, task.server, task.phase, task.expires_at, body)
            connection.execute(
                "INSERT INTO tasks (id, principal, server, phase, expires_at, body, rev, gate, "
                "owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "phase = excluded.phase, body = excluded.body, rev = excluded.rev",
                (*facts, next_rev(connection), self._gate, self._owner),
            )
        return True

    def _may_save(self, task: Task, phase: str, owner: str) -> bool:
        # Another process carries the task out, and only that one knows how it ended.
        if owner not in ("", self._owner) and task.phase != CANCELLED:
            return False
        return phase == task.phase or task.phase in TRANSITIONS[phase]

    def forget(self, task_id: str) -> None:
        """Delete a task, unless another process must still end it."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM tasks WHERE id = ? "
                "AND (owner IN ('', ?) OR phase NOT IN ('held', 'running'))",
                (task_id, self._owner),
            )

    def has_orphans(self) -> bool:
        """Tell whether ``take_over`` would find tasks that have not ended; reads only."""
        rows = self._database.read(
            "SELECT DISTINCT owner FROM tasks WHERE gate = ? AND phase IN ('held', 'running')",
            (self._gate,),
        )
        return any(self._is_gone(owner) for (owner,) in rows)

    def take_over(self, now: float) -> list[Task]:
        """Take over this gate's tasks whose process has died, and return them, oldest first.

        Of several processes that try, one gets a task: the transaction is exclusive, so rows need
        not be locked or skipped one by one.
        """
        with self._database.write() as connection:
            expired = (self._database.time(now),)
            connection.execute("DELETE FROM tasks WHERE expires_at <= ?", expired)
            rows = connection.execute(
                "SELECT id, owner, body FROM tasks WHERE gate = ? ORDER BY rev", (self._gate,)
            ).fetchall()
            gone: dict[str, bool] = {}
            taken = []
            for ident, owner, body in rows:
                if owner not in gone:
                    gone[owner] = self._is_gone(owner)
                if gone[owner]:
                    taken.append(self._task(body))
                    connection.execute(
                        "UPDATE tasks SET owner = ? WHERE id = ? AND owner = ?",
                        (self._owner, ident, owner),
                    )
        return taken

    def _is_gone(self, owner: str) -> bool:
        # After a pause, a process may find its own row expired; it still continues its own tasks.
        return not owner or (owner != self._owner and not self._alive(owner))

    def changed(self) -> bool:
        """Tell whether anything was written since the last call of this method; very cheap."""
        state = self._database.state()
        changed, self._seen = state != self._seen, state
        return changed

    def find(self, task_id: str) -> Task | None:
        """Return a task of this gate, whichever process owns it."""
        query = "SELECT body FROM tasks WHERE id = ? AND gate = ?"
        rows = self._database.read(query, (task_id, self._gate))
        return self._task(rows[0][0]) if rows else None

    def of_principal(self, principal: str) -> list[Task]:
        """Return a principal's newest tasks at this gate, whichever process owns them."""
        query = "SELECT body FROM tasks WHERE principal = ? AND gate = ? ORDER BY rev DESC LIMIT ?"
        return [
            self._task(row[0])
            for row in self._database.read(query, (principal, self._gate, MAX_READ))
        ]

    def load(self, server: str | None = None) -> list[Task]:
        """Return the stored tasks of one server or of all servers, oldest first."""
        where, values = ("", ()) if server is None else (" WHERE server = ?", (server,))
        rows = self._database.read(f"SELECT body FROM tasks{where} ORDER BY rev", values)  # noqa: S608 - a constant
        return [self._task(row[0]) for row in rows]

    def purge(self, now: float) -> int:
        """Delete expired tasks and return how many there were."""
        with self._database.write() as connection:
            expired = (self._database.time(now),)
            return connection.execute("DELETE FROM tasks WHERE expires_at <= ?", expired).rowcount

    def _task(self, body: str) -> Task:
        return move_task(Task(*json.loads(body)), -self._database.time(0.0))


def new_task_id() -> str:
    """Return a new unguessable task id that is also valid in an HTTP header."""
    return ID_PREFIX + b32encode(os.urandom(_RANDOM_BYTES)).decode("ascii").lower()
