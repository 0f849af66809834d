"""The demo's script: its config is valid and its steps show every kind of outcome."""

from pathlib import Path

from thoughtgate.cli.demonstration import demo_script as script
from thoughtgate.gate.config_files import load_configuration


def test_the_config_is_valid(tmp_path: Path) -> None:
    (tmp_path / "demo.cedar").write_text(script.CEDAR)
    config = tmp_path / "thoughtgate.yaml"
    config.write_text(script.CONFIG)

    loaded = load_configuration(str(config), {}, str(tmp_path))

    assert loaded.path == str(config)


def test_the_steps_show_every_kind_of_outcome() -> None:
    assert {step.expected for step in script.STEPS} == {
        script.FORWARDED,
        script.FILTERED,
        script.HIDDEN,
        script.DENIED,
        script.LIMITED,
        script.APPROVED,
        script.DENIED_BY_PERSON,
        script.REJECTED,
    }


def test_each_held_call_has_its_decision() -> None:
    held = [
        step.message["params"]["arguments"]["name"]
        for step in script.STEPS
        if step.expected in {script.APPROVED, script.DENIED_BY_PERSON}
    ]

    assert set(held) == set(script.DECISIONS)
