"""Tasks to test with."""

from typing import Any

from tests.support.approvals import NOW

from thoughtgate.core.task import Task


def a_task(**changes: Any) -> Task:
    """Return a held task of ten minutes."""
    made = Task(
        id="tg_1",
        principal="ann",
        session="s1",
        server="files",
        tool="delete_file",
        call_id="run.1",
        request='{"name": "delete_file", "arguments": {"path": "/tmp/x"}}',
        created_at=NOW,
        updated_at=NOW,
        ttl_s=600.0,
        modern=False,
    )
    return made._replace(**changes)
