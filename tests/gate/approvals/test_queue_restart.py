"""A gate killed at every step of an approval's life: nothing runs twice, nothing unapproved."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.approvals import CALL, a_desk, a_store, held
from tests.support.commands import ROOT
from tests.support.waiting import read_line, within

from thoughtgate.core.approval import PENDING, Approval, Refusal, Vote
from thoughtgate.stores.approvals import ApprovalStore

ANN = "terminal:ann"
STEPS = ("asked", "decided", "used", "ran")


class Gate:
    """A real process that asks, waits, spends and runs; see ``approval_process``."""

    def __init__(self, state: Path, log: Path, die_at: str, task: str) -> None:
        command = [sys.executable, "-m", "tests.support.approval_process", "run"]
        self.process = subprocess.Popen(
            [*command, str(state), str(log), die_at, task],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def step(self) -> str:
        assert self.process.stdout is not None
        return read_line(self.process.stdout).strip()

    def end(self) -> list[str]:
        """Return what it said after the steps read."""
        assert self.process.stdout is not None
        with self.process.stdout as rest:
            said = within(rest.read, what="the end of the gate").splitlines()
        self.process.wait(30)
        return said


def approve_all(store: ApprovalStore) -> list[Approval | Refusal]:
    now = time.time()
    waiting = store.listed(PENDING)
    return [store.vote(each.id, [Vote(ANN, approve=True, at=now)], now) for each in waiting]


def effects(log: Path) -> int:
    return len(log.read_text("utf-8").splitlines()) if log.exists() else 0


@pytest.mark.parametrize("die_at", STEPS)
def test_a_gate_killed_with_its_caller_leaves_nothing_that_could_run(
    tmp_path: Path, die_at: str
) -> None:
    state, log = tmp_path / "state", tmp_path / "log"
    gate = Gate(state, log, die_at, "-")
    assert gate.step() == "asked"
    store = a_store(state)
    if die_at != "asked":
        assert len(approve_all(store)) == 1
    gate.end()
    assert gate.process.returncode == -9
    (left,) = store.listed()
    if die_at == "asked":
        late = store.vote(left.id, [Vote(ANN, approve=True, at=time.time())], time.time())
        assert isinstance(late, Refusal)
        assert "gone" in late.text
    store.settle_due(time.time())
    closed = store.get(left.id)
    assert isinstance(closed, Approval)
    expected = {"asked": "withdrawn", "decided": "void", "used": "used", "ran": "used"}
    assert closed.status == expected[die_at]
    assert isinstance(store.use(left.id, left.digest, time.time()), Refusal)
    assert effects(log) == (1 if die_at == "ran" else 0)
    # The caller starts again: a new question, a new answer, one more run.
    again = Gate(state, log, "never", "-")
    assert again.step() == "asked"
    assert len(approve_all(store)) == 1
    assert again.end()[-1] == "ran"
    assert effects(log) == (2 if die_at == "ran" else 1)
    store.close()


@pytest.mark.parametrize("die_at", STEPS)
@pytest.mark.parametrize("answered", ["before", "between"])
def test_a_task_whose_gate_is_killed_runs_at_most_once_and_only_when_approved(
    tmp_path: Path, die_at: str, answered: str
) -> None:
    state, log = tmp_path / "state", tmp_path / "log"
    gate = Gate(state, log, die_at, "tg_1")
    assert gate.step() == "asked"
    store = a_store(state)
    if die_at != "asked":
        approve_all(store)
    gate.end()
    assert gate.process.returncode == -9
    ran_before = effects(log)
    assert ran_before == (1 if die_at == "ran" else 0)
    store.settle_due(time.time())
    if answered == "between":
        approve_all(store)
    again = Gate(state, log, "never", "tg_1")
    assert again.step() == "asked"
    if answered == "before":
        approve_all(store)
    said = again.end()
    (only,) = store.listed()
    if die_at in {"asked", "decided"}:
        assert said[-1] == "ran"
        assert effects(log) == 1
    else:
        assert "already used" in said[-1]
        assert effects(log) == ran_before
    assert only.status == "used"
    store.close()


def test_a_gate_that_nobody_answers_before_it_is_killed_is_closed_by_the_next_desk(
    tmp_path: Path,
) -> None:
    state, log = tmp_path / "state", tmp_path / "log"
    gate = Gate(state, log, "asked", "-")
    gate.end()
    store = a_store(state)
    desk = a_desk(store)
    now = time.time()
    desk.ask("run.1", held(CALL._replace(name="other")), "default", now)
    desk.poll(now + 1)
    assert {each.status for each in store.listed()} == {"withdrawn", "pending"}
    assert effects(log) == 0
    store.close()
