"""Tasks in the shared SQLite file: they belong to a principal and outlive the gate.

A save that would take a task somewhere its life does not lead is refused, so two
gates on one file cannot run or end the same task twice.
"""

import json
import os
from base64 import b32encode
from typing import Final

from thoughtgate.core.task import ID_PREFIX, TRANSITIONS, Task
from thoughtgate.stores.database import Database, next_rev

_RANDOM_BYTES: Final = 20
"""160 random bits: on a line without authentication the id is the only key to a task."""


class TaskStore:
    """The tasks of every gate of the user."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, task: Task) -> bool:
        """Keep a task as it is now; False when another gate has taken it elsewhere."""
        body = json.dumps(task)
        with self._database.write(through_power_loss=task.phase == "running") as connection:
            row = connection.execute("SELECT phase FROM tasks WHERE id = ?", (task.id,)).fetchone()
            if row is not None and not (row[0] == task.phase or task.phase in TRANSITIONS[row[0]]):
                return False
            connection.execute(
                "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "phase = excluded.phase, body = excluded.body, rev = excluded.rev",
                (
                    task.id,
                    task.principal,
                    task.server,
                    task.phase,
                    task.expires_at,
                    body,
                    next_rev(connection),
                ),
            )
        return True

    def forget(self, task_id: str) -> None:
        """Drop a task."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM tasks WHERE id = ?", (task_id,))

    def load(self, server: str | None = None) -> list[Task]:
        """Return the tasks kept, of one server or of all, oldest first."""
        where, values = ("", ()) if server is None else (" WHERE server = ?", (server,))
        rows = self._database.read(f"SELECT body FROM tasks{where} ORDER BY rev", values)  # noqa: S608 - a constant
        return [Task(*json.loads(body)) for (body,) in rows]

    def purge(self, now: float) -> int:
        """Drop tasks that have lived their time."""
        with self._database.write() as connection:
            return connection.execute("DELETE FROM tasks WHERE expires_at <= ?", (now,)).rowcount


def new_task_id() -> str:
    """Return a new task id that nobody can guess; fit for a header."""
    return ID_PREFIX + b32encode(os.urandom(_RANDOM_BYTES)).decode("ascii").lower()
