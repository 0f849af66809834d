"""Who was started by a governed agent."""

import os
from pathlib import Path

import pytest

from thoughtgate.gate.running_gates import announce
from thoughtgate.process.process_tree import ancestors
from thoughtgate.status.started_by_agent import MARKS, is_inside_agent


@pytest.mark.parametrize("mark", MARKS)
def test_an_agents_environment_is_known_by_its_mark(tmp_path: Path, mark: str) -> None:
    assert is_inside_agent({mark: "1"}, str(tmp_path))
    assert not is_inside_agent({mark: ""}, str(tmp_path))


def test_a_gate_is_not_inside_itself(tmp_path: Path) -> None:
    presence = announce(str(tmp_path), "wrap")
    assert presence is not None
    assert not is_inside_agent({}, str(tmp_path))


def test_the_parent_is_the_first_ancestor() -> None:
    line = ancestors()
    assert line[:1] == [os.getppid()] or os.getppid() == 1
    assert os.getpid() not in line
