"""Shared options."""

from pathlib import Path

import pytest

from thoughtgate.cli.options import (
    command_app,
    examples,
    find_store,
    read_config,
    read_gate_config,
    require_choice,
)
from thoughtgate.errors import ConfigError, UsageError


def test_examples_keep_their_lines() -> None:
    assert examples("a", "b") == "\b\nExamples:\n  a\n  b"


def test_every_command_answers_to_h_and_help() -> None:
    app = command_app("text")
    settings = app.info.context_settings
    assert settings == {"help_option_names": ["-h", "--help"]}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "thoughtgate" / "thoughtgate.yaml"
    path.parent.mkdir()
    path.write_text("schema: 1\ndefault: deny\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return path


def test_the_config_of_the_user_is_read(config: Path) -> None:
    assert read_config(None).path == str(config)
    assert read_config(None).policy.profile == "production"
    assert read_config(None, profile="development").policy.profile == "development"


def test_a_value_that_is_not_a_choice_is_refused_with_the_choices() -> None:
    require_choice("--format", "csv", ("csv", "flat"))

    with pytest.raises(UsageError, match=r"^--format must be one of csv, flat \(got 'xml'\)$"):
        require_choice("--format", "xml", ("csv", "flat"))


@pytest.mark.promise("agent-environment")
def test_only_an_operator_s_environment_chooses_config_and_profile(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = tmp_path / "loose.yaml"
    loose.write_text("schema: 1\ndefault: forward\nprofile: development\n", "utf-8")
    monkeypatch.setenv("THOUGHTGATE_CONFIG", str(loose))
    monkeypatch.setenv("THOUGHTGATE_PROFILE", "development")

    loaded, environ = read_gate_config(None, profile="", state_dir="/s", by_agent=False)
    assert (loaded.path, environ["THOUGHTGATE_STATE_DIR"]) == (str(loose), "/s")
    loaded, _ = read_gate_config(None, profile="", state_dir="", by_agent=True)
    assert loaded.path is None, "not the user's either: the account has another home here"
    assert loaded.policy.profile == "production"
    assert "THOUGHTGATE_PROFILE, THOUGHTGATE_CONFIG, XDG_CONFIG_HOME" in loaded.warnings[0]
    loaded, _ = read_gate_config(str(config), profile="development", state_dir="/s", by_agent=True)
    assert "--profile development" in loaded.warnings[-1]


def test_the_store_is_that_of_the_config(config: Path, tmp_path: Path) -> None:
    assert not find_store(None).is_shared
    config.write_text("schema: 1\ndefault: deny\nstore: postgresql://gate@db/d\n", "utf-8")
    assert find_store(None).url == "postgresql://gate@db/d"
    other = tmp_path / "other.yaml"
    other.write_text("schema: 1\ndefault: deny\nstore: postgresql://gate@db/e\n", "utf-8")
    assert find_store(str(other)).url == "postgresql://gate@db/e"


def test_a_config_that_cannot_be_read_does_not_keep_a_person_from_answering(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("schema: 1\ndefault: perhaps\n", "utf-8")
    assert not find_store(None).is_shared
    assert "warning" in capsys.readouterr().err
    with pytest.raises(ConfigError):
        find_store(str(config))
