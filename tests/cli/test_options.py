"""Shared options."""

import pytest

from thoughtgate.cli.options import command_app, counted, examples, is_without_colour


def test_examples_keep_their_lines() -> None:
    assert examples("a", "b") == "\b\nExamples:\n  a\n  b"


def test_one_is_not_many() -> None:
    said = [counted(number, "call") for number in (0, 1, 2, 1000)]
    assert said == ["0 calls", "1 call", "2 calls", "1,000 calls"]


def test_who_wants_no_colour_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert not is_without_colour()
    monkeypatch.setenv("NO_COLOR", "")
    assert not is_without_colour()
    monkeypatch.setenv("NO_COLOR", "1")
    assert is_without_colour()


def test_every_command_answers_to_h_and_help() -> None:
    app = command_app("text")
    settings = app.info.context_settings
    assert settings == {"help_option_names": ["-h", "--help"]}
