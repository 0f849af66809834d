"""The demo's play: its config is valid and its scenes show every kind of verdict."""

from pathlib import Path

from thoughtgate.cli import demo_script as script
from thoughtgate.gate.config_files import load_configuration


def test_the_config_is_valid(tmp_path: Path) -> None:
    (tmp_path / "demo.cedar").write_text(script.CEDAR)
    config = tmp_path / "thoughtgate.yaml"
    config.write_text(script.CONFIG)

    loaded = load_configuration(str(config), {}, str(tmp_path))

    assert loaded.path == str(config)


def test_the_scenes_show_every_kind_of_verdict() -> None:
    assert {scene.expected for scene in script.SCENES} == {
        script.FORWARDED,
        script.FILTERED,
        script.HIDDEN,
        script.DENIED,
        script.LIMITED,
        script.APPROVED,
        script.REFUSED,
        script.UNREADABLE,
    }


def test_each_held_call_has_its_answer() -> None:
    held = [
        scene.step["params"]["arguments"]["name"]
        for scene in script.SCENES
        if scene.expected in {script.APPROVED, script.REFUSED}
    ]

    assert set(held) == set(script.ANSWERS)
