"""What is settled before a hub runs."""

import os
from pathlib import Path

import pytest
from tests.support.hub import sample
from tests.support.hub_parts import load

from thoughtgate.errors import ConfigError
from thoughtgate.runtime.hub_run import ServePlan, check_plan


def plan(tmp_path: Path, **more: object) -> ServePlan:
    loaded = load(tmp_path, {"one": sample()}, namespaces={"work": ["one"]})
    return ServePlan(loaded, os.environ, str(tmp_path), **more)  # type: ignore[arg-type]  # fields by name


@pytest.mark.requirement("S002-22")
def test_a_sound_plan_passes(tmp_path: Path) -> None:
    check_plan(plan(tmp_path, namespace="work"))
    check_plan(plan(tmp_path, audit="stdout", http=("127.0.0.1", 0)))


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as found:
        check_plan(plan(tmp_path, namespace="nope", audit="stdout"))

    assert [problem.key for problem in found.value.problems] == ["namespaces", "audit.sink"]
    assert "work" in str(found.value)
