"""Who was started by a governed agent, as far as the processes and the announcements tell."""

import os
from pathlib import Path
from typing import Any

import pytest

from thoughtgate.errors import UsageError
from thoughtgate.gate.approvals import started_by_agent
from thoughtgate.gate.approvals.started_by_agent import (
    DETACHED,
    HIDDEN,
    MARKS,
    STARTED,
    find_agent_reason,
    is_inside_agent,
    require_person,
)
from thoughtgate.gate.running_gates import announce, describe_governed
from thoughtgate.process.ancestry import Process, read_process

AGENT = Process(700, 600, 1000, "34816", 5000, "agent")
SHELL = Process(600, 1, 1000, "34816", 4000, "bash")
INIT = Process(1, 0, 0, "", 0, "systemd")


def process(pid: int, **facts: Any) -> Process:
    return Process(pid, 1, 1000, "", 6000, "python")._replace(**facts)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Machine":
    return Machine(tmp_path, monkeypatch)


class Machine:
    """A gate that a known agent started, and a line of processes that ends with ours."""

    def __init__(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = str(state)
        self.cgroups: dict[int, str] = {}
        self.line: list[Process] = []
        self.around: dict[int, dict[str, str]] = {}
        monkeypatch.setattr(started_by_agent, "lineage", self._lineage)
        monkeypatch.setattr(
            started_by_agent, "environment_of", lambda pid: self.around.get(pid, {})
        )
        monkeypatch.setattr(
            started_by_agent, "cgroup_of", lambda pid: self.cgroups.get(pid, "session")
        )

    def govern(self, **facts: Any) -> None:
        governed = describe_governed(AGENT)["governed"]
        announce(self.state, "shim", governed={**governed, "cgroup": "session", **facts})

    def reason(self, *line: Process) -> str:
        self.line = list(line)
        return find_agent_reason({}, self.state)

    def _lineage(self, pid: int) -> list[Process]:
        if pid == os.getpid():
            return self.line
        return [AGENT, SHELL, INIT] if pid == AGENT.pid else []


@pytest.mark.parametrize("mark", MARKS)
def test_an_agents_environment_is_known_by_its_mark(tmp_path: Path, mark: str) -> None:
    assert is_inside_agent({mark: "1"}, str(tmp_path))
    assert not is_inside_agent({mark: ""}, str(tmp_path))


def test_without_a_governed_agent_everybody_may_answer(tmp_path: Path) -> None:
    announce(str(tmp_path), "serve")
    assert not is_inside_agent({}, str(tmp_path))
    require_person("console", {}, str(tmp_path))


def test_a_descendant_is_inside(tmp_path: Path) -> None:
    announce(str(tmp_path), "shim", **describe_governed(read_process(os.getppid())))
    assert find_agent_reason({}, str(tmp_path)) == STARTED
    with pytest.raises(UsageError, match="run 'thoughtgate console' in another terminal"):
        require_person("console", {}, str(tmp_path))


@pytest.mark.promise("agent-cannot-approve")
def test_a_state_directory_that_the_agent_chose_hides_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine.govern()
    line = [process(900, parent=700), AGENT, SHELL, INIT]
    machine.state = str(tmp_path / "elsewhere")
    assert machine.reason(*line) == ""
    machine.around = {SHELL.pid: {"THOUGHTGATE_STATE_DIR": str(tmp_path)}}
    assert machine.reason(*line) == STARTED
    machine.around = {}
    (tmp_path / ".local" / "state").mkdir(parents=True)
    (tmp_path / ".local" / "state" / "thoughtgate").symlink_to(tmp_path)
    monkeypatch.setattr(started_by_agent, "account_home", lambda: str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert machine.reason(*line) == STARTED


@pytest.mark.promise("agent-cannot-approve")
def test_the_mark_of_an_ancestor_counts_as_well(machine: Machine) -> None:
    machine.around = {AGENT.pid: {MARKS[0]: "1"}}
    assert machine.reason(process(900, parent=700), AGENT, SHELL, INIT) == STARTED


def test_a_reused_process_id_is_not_the_agent(machine: Machine) -> None:
    machine.govern()
    later = AGENT._replace(started=9000)
    assert machine.reason(process(900, parent=700), later, SHELL, INIT) == ""


def test_an_orphan_of_the_agent_is_refused(machine: Machine) -> None:
    machine.govern()
    assert machine.reason(process(900), INIT) == DETACHED
    assert machine.reason(process(901, parent=900), process(900), INIT) == DETACHED
    # It has kept the agent's terminal.
    assert machine.reason(process(900, terminal="34816"), INIT) == DETACHED
    # Whatever the name of this process is, it adopts nobody.
    assert machine.reason(process(900, name="tini"), INIT) == DETACHED
    with pytest.raises(UsageError, match="in a terminal outside the agent"):
        require_person("console", {}, machine.state)


def test_an_orphan_that_wrap_adopts_is_seen_below_wrap(machine: Machine) -> None:
    machine.govern(adopts=True)
    assert machine.reason(process(900, parent=700), AGENT, SHELL, INIT) == STARTED
    assert machine.reason(process(900), INIT) == ""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param([process(900), process(500, started=3000), INIT], id="older than the agent"),
        pytest.param([process(900, parent=600), SHELL, INIT], id="an ancestor of the agent"),
        pytest.param([process(900, terminal="34817"), INIT], id="a terminal of its own"),
        pytest.param([process(900), process(800, user=0), INIT], id="started by another user"),
        pytest.param([process(900, parent=0)], id="entered the container from outside"),
    ],
)
def test_another_terminal_may_answer(machine: Machine, line: list[Process]) -> None:
    machine.govern()
    assert machine.reason(*line) == ""


def test_a_service_of_its_own_may_answer(machine: Machine) -> None:
    machine.govern()
    machine.cgroups[900] = "console.service"
    assert machine.reason(process(900), INIT) == ""


def test_a_parent_that_is_as_young_as_the_agent_but_its_ancestor_is_not_an_orphan(
    machine: Machine,
) -> None:
    machine.govern(started=SHELL.started)
    assert machine.reason(process(900, parent=600), SHELL, INIT) == ""


def test_processes_that_cannot_be_seen_are_refused(machine: Machine) -> None:
    machine.govern()
    assert machine.reason() == HIDDEN


@pytest.mark.parametrize(("visible", "reason"), [(True, ""), (False, HIDDEN)])
def test_a_process_namespace_below_that_of_the_gate_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, visible: bool, reason: str
) -> None:
    machine.govern()
    monkeypatch.setattr(started_by_agent, "other_namespace", lambda _owner: "pid:[1]")
    monkeypatch.setattr(started_by_agent, "sees_namespace", lambda _namespace: visible)
    assert machine.reason(process(1, parent=0)) == reason
