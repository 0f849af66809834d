"""Times of rows on this machine's clock."""

from tests.support.approvals import a_yes, an_approval

from thoughtgate.core.grant import Grant
from thoughtgate.core.task import Task
from thoughtgate.stores.local_times import move_approval, move_grant, move_task


def test_nothing_changes_while_the_clocks_agree() -> None:
    asked = an_approval()
    assert move_approval(asked, 0.0) is asked
    assert move_grant(GRANT, 0.0) is GRANT
    assert move_task(TASK, 0.0) is TASK


def test_all_times_of_an_approval_move_but_those_that_are_unset() -> None:
    asked = an_approval()._replace(votes=(a_yes("terminal:ann"),))
    moved = move_approval(asked, 60.0)
    assert (moved.created_at, moved.expires_at) == (asked.created_at + 60, asked.expires_at + 60)
    assert moved.votes[0].at == asked.votes[0].at + 60
    assert moved.decided_at == 0.0
    assert move_approval(moved, -60.0) == asked
    assert move_approval(asked._replace(decided_at=5.0), 60.0).decided_at == 65.0


GRANT = Grant(
    "g", "ann", "default", "s", "tool", "t", "call", "d", "once", "", 10.0, 20.0, "x:y", "a", 0
)


def test_all_times_of_a_grant_move_but_those_that_are_unset() -> None:
    moved = move_grant(GRANT, -5.0)
    assert (moved.created_at, moved.expires_at, moved.last_used_at) == (5.0, 15.0, 0.0)
    assert move_grant(GRANT._replace(last_used_at=9.0), 1.0).last_used_at == 10.0


TASK = Task("t", "ann", "s1", "up", "drop", "run.1", "{}", 10.0, 12.0, 60.0, True)


def test_a_task_moves_with_its_end() -> None:
    moved = move_task(TASK, 5.0)
    assert (moved.created_at, moved.updated_at, moved.expires_at) == (15.0, 17.0, 75.0)
