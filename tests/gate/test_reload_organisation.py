"""A changed file of the organisation: its own approvers are asked."""

import os
from pathlib import Path

import pytest
from tests.support.reload_scene import FORWARD, Scene

from thoughtgate.gate.clock import now
from thoughtgate.gate.policy_files import sources

FLOOR_DENIES = """
schema: 1
default: forward
rules: [{tool: echo, action: deny}]
approval: {security: {approvers: [olga], timeout: 1h}}
"""


class FloorScene(Scene):
    """A user's file, which names other approvers, and the organisation's."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, floor: str, user: str = ""
    ) -> None:
        self.floor = folder / "etc" / "thoughtgate.yaml"
        self.floor.parent.mkdir()
        self.floor.write_text(floor, "utf-8")
        monkeypatch.setattr(sources, "SYSTEM_DIRECTORY", str(self.floor.parent))
        super().__init__(folder, f"{FORWARD}approval: {{default: {{approvers: [ursula]}}}}\n{user}")

    def write_floor(self, text: str) -> None:
        self.floor.write_text(text, "utf-8")
        os.utime(self.floor, ns=(0, len(text)))
        self.watch.look(now())


@pytest.mark.promise("organisation-floor")
def test_the_organisation_s_approvers_decide_about_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = FloorScene(tmp_path, monkeypatch, FLOOR_DENIES, "reload: auto\n")
    scene.write_floor(FORWARD)
    assert scene.action() == "deny"
    (question,) = scene.questions()
    assert (question.tool, question.workflow) == (str(scene.floor), "organisation/security")
    assert question.approvers == ("olga",)
    assert any(f"{scene.floor} changed, but it loosens" in one for one in scene.said)
    assert not any("policy accept" in one for one in scene.said)
    scene.accept("terminal:ursula")
    assert scene.action() == "deny", "the user's file is another one"
    scene.decide(approve=True, by="terminal:olga")
    assert scene.action() == "forward"
    assert scene.outcomes() == ["held", "accepted"]
    scene.close()


def test_without_approvers_of_the_organisation_the_user_s_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = FloorScene(tmp_path, monkeypatch, FLOOR_DENIES.replace("approval:", "#"))
    scene.write_floor(FORWARD)
    (question,) = scene.questions()
    assert (question.tool, question.approvers) == (str(scene.floor), ("ursula",))
    scene.decide(approve=False, by="terminal:ursula")
    assert scene.action() == "deny"
    assert f"policy    the change of {scene.floor} was refused: the old rules stay" in scene.said
    scene.close()


def test_the_organisation_s_reload_is_about_its_own_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = FloorScene(
        tmp_path, monkeypatch, f"{FLOOR_DENIES}reload: auto\n", "rules: [{tool: x, action: deny}]"
    )
    scene.floor.write_text(f"{FORWARD}reload: auto\n", "utf-8")
    scene.write(FORWARD)
    assert scene.outcomes() == ["held"], "both files loosen, and the user's asks"
    assert scene.action("x") == "deny"
    scene.write(
        f"{FORWARD}approval: {{default: {{approvers: [ursula]}}}}\nrules: [{{tool: x, action: deny}}]"
    )
    assert (scene.action(), scene.outcomes()) == ("forward", ["held", "applied"])
    scene.close()
