"""What is settled before a hub runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.hub import sample, write_config
from tests.support.hub_parts import load

from thoughtgate.errors import ConfigError
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.hub.run import ServePlan, check_plan


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


WATCHED = """
import runpy, sys
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.record.writer import RecordWriter

state, seen, *sys.argv[1:] = sys.argv[1:]

def watched(name):
    original = getattr(RecordWriter, name)
    def watch(self, *given):
        with open(seen, "a") as file:
            file.write(f"{name} {len(list_gates(state))}\\n")
        original(self, *given)
        with open(seen, "a") as file:
            file.write(f"{name} {len(list_gates(state))}\\n")
    setattr(RecordWriter, name, watch)

watched("write")
watched("close")
runpy.run_module("thoughtgate", run_name="__main__")
"""


def test_a_hub_is_announced_for_as_long_as_its_record_is_open(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"one": sample()})
    seen = tmp_path / "seen"
    words = [str(tmp_path), str(seen), "serve", "--stdio", "-c", str(config)]
    words += ["--state-dir", str(tmp_path)]
    subprocess.run(
        [sys.executable, "-c", WATCHED, *words],
        env={**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=True,
    )

    lines = seen.read_text().splitlines()
    assert set(lines) == {"write 1", "close 1"}
    assert lines[-2:] == ["close 1", "close 1"]
    assert list_gates(str(tmp_path)) == []
