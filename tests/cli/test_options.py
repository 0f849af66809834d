"""Shared options."""

from pathlib import Path

import pytest

from thoughtgate.cli.options import command_app, examples, read_config, require_choice
from thoughtgate.errors import UsageError


def test_examples_keep_their_lines() -> None:
    assert examples("a", "b") == "\b\nExamples:\n  a\n  b"


def test_every_command_answers_to_h_and_help() -> None:
    app = command_app("text")
    settings = app.info.context_settings
    assert settings == {"help_option_names": ["-h", "--help"]}


def test_the_config_in_the_working_directory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "thoughtgate.yaml"
    config.write_text("schema: 1\ndefault: deny\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THOUGHTGATE_CONFIG", raising=False)

    assert read_config(None).path == str(config)
    assert read_config(None).policy.profile == "production"
    assert read_config(None, profile="development").policy.profile == "development"


def test_a_value_that_is_not_a_choice_is_refused_with_the_choices() -> None:
    require_choice("--format", "csv", ("csv", "flat"))

    with pytest.raises(UsageError, match=r"^--format must be one of csv, flat \(got 'xml'\)$"):
        require_choice("--format", "xml", ("csv", "flat"))
