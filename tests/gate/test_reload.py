"""Another policy while a run goes on; a bad one changes nothing."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thoughtgate.core.judge import CallRequest
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.open_governor import open_governor
from thoughtgate.gate.reload import Reloader
from thoughtgate.wire.methods import Named

FORWARD = "schema: 1\ndefault: forward\n"
DENY = "schema: 1\ndefault: deny\nholds: {connection: 3}\n"


class Scene:
    """A governor, its files and a watch on them."""

    def __init__(self, folder: Path, policy: str = FORWARD) -> None:
        self.path = folder / "thoughtgate.yaml"
        self.path.write_text(policy, "utf-8")
        self.state = folder / "state"
        self.state.mkdir()
        self.said: list[str] = []
        self.adopted: list[Any] = []
        loaded = load_configuration(str(self.path), {}, str(folder))
        self.governor = open_governor(loaded, {}, str(self.state))
        self.governor.start(now())
        self.watch = Reloader(
            self.governor,
            loaded,
            lambda: load_configuration(str(self.path), {}, str(folder), profile="production"),
            self.said.append,
        )
        self.watch.adopt = self.adopted.append

    def write(self, text: str) -> None:
        self.path.write_text(text, "utf-8")
        # Some file systems keep time in whole seconds; the size tells these apart as well.
        os.utime(self.path, ns=(0, len(text)))
        self.watch.look(now())

    def action(self) -> str:
        named = (Named("tool", "echo", {}),)
        question = CallRequest("s", "1", "me", "tools/call", named, 10, "mcp_stdio", now())
        return self.governor.rule(question).verdict.action

    def changes(self) -> list[bool]:
        self.governor.flush()
        lines = (self.state / "audit.jsonl").read_text("utf-8").splitlines()
        found = [json.loads(line) for line in lines]
        return [one["policy"]["loaded"] for one in found if one["type"] == "policy_changed"]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.governor.finish("SUCCEEDED", now())


def test_a_changed_file_is_in_force_at_once_and_on_record(scene: Scene) -> None:
    assert scene.action() == "forward"

    scene.write(DENY)

    assert scene.action() == "deny"
    assert scene.changes() == [True]
    assert scene.adopted[0].holds.connection == 3
    assert "reloaded" in scene.said[-1]


@pytest.mark.parametrize("text", ["", "schema: 1\n", "nonsense: [", "schema: 1\ndefault: maybe\n"])
def test_a_bad_file_keeps_the_old_rules_and_says_so(scene: Scene, text: str) -> None:
    scene.write(text)

    assert scene.action() == "forward"
    assert scene.changes() == [False]
    assert "the old rules stay in force" in scene.said[-1]
    assert any(str(scene.path) in one for one in scene.said)


def test_a_file_that_is_gone_keeps_the_old_rules(scene: Scene) -> None:
    scene.path.unlink()
    scene.watch.look(now())

    assert scene.action() == "forward"
    assert scene.changes() == [False]


def test_a_mended_file_is_taken_after_a_bad_one(scene: Scene) -> None:
    scene.write("nonsense: [")
    scene.write(DENY)

    assert scene.action() == "deny"
    assert scene.changes() == [False, True]


def test_a_file_that_did_not_change_is_not_read_again(scene: Scene) -> None:
    for _ in range(3):
        scene.watch.look(now())

    assert scene.changes() == []


def test_watching_can_be_switched_off_and_asking_still_works(tmp_path: Path) -> None:
    scene = Scene(tmp_path, f"{FORWARD}reload: false\n")

    scene.write(DENY)
    assert scene.action() == "forward"

    assert scene.watch.reload(now())
    assert scene.action() == "deny"
    scene.governor.finish("SUCCEEDED", now())


def test_a_changed_cedar_policy_counts_as_well(tmp_path: Path) -> None:
    cedar = tmp_path / "p.cedar"
    cedar.write_text("permit(principal, action, resource);", "utf-8")
    scene = Scene(tmp_path, "schema: 1\ndefault: policy\ncedar: {policies: [p.cedar]}\n")
    assert scene.action() == "forward"

    cedar.write_text("forbid(principal, action, resource);\n", "utf-8")
    scene.watch.look(now())

    assert scene.action() == "deny"
    scene.governor.finish("SUCCEEDED", now())
