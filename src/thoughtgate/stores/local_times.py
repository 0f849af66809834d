"""Conversion of times between the store's clock and this machine's.

Rows have the store's times, so gates with different clocks agree on what has expired. Everything
outside the stores uses this machine's clock. The difference is zero for SQLite, and for
PostgreSQL unless the clocks differ.
"""

from thoughtgate.core.approval import Approval
from thoughtgate.core.grant import Grant
from thoughtgate.core.task import Task


def move_approval(approval: Approval, by_s: float) -> Approval:
    """Return an approval with all its times moved."""
    if not by_s:
        return approval
    return approval._replace(
        created_at=approval.created_at + by_s,
        expires_at=approval.expires_at + by_s,
        decided_at=_moved(approval.decided_at, by_s),
        votes=tuple(vote._replace(at=vote.at + by_s) for vote in approval.votes),
    )


def move_grant(grant: Grant, by_s: float) -> Grant:
    """Return a grant with all its times moved."""
    if not by_s:
        return grant
    return grant._replace(
        created_at=grant.created_at + by_s,
        expires_at=grant.expires_at + by_s,
        last_used_at=_moved(grant.last_used_at, by_s),
    )


def move_task(task: Task, by_s: float) -> Task:
    """Return a task with all its times moved."""
    if not by_s:
        return task
    return task._replace(created_at=task.created_at + by_s, updated_at=task.updated_at + by_s)


def _moved(at: float, by_s: float) -> float:
    """Move a time, unless it is zero, which means that there is none."""
    return at + by_s if at else at
