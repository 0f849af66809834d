"""How commands print."""

import json

import pytest

from thoughtgate.cli.output import counted, is_without_colour, printable, say, write_json


def test_json_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"name": "caf\u00e9"})

    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"name": "caf\u00e9"}
    assert printed.err == ""


def test_a_message_goes_to_stderr_as_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("a name\nwith a line break")

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "thoughtgate: a name\\nwith a line break\n"


def test_control_characters_are_replaced() -> None:
    assert printable("a\x1b[2Jb") == "a\N{REPLACEMENT CHARACTER}[2Jb"


def test_a_number_has_its_noun_in_the_singular_or_plural() -> None:
    texts = [counted(number, "call") for number in (0, 1, 2, 1000)]
    assert texts == ["0 calls", "1 call", "2 calls", "1,000 calls"]


def test_no_color_turns_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert not is_without_colour()
    monkeypatch.setenv("NO_COLOR", "")
    assert not is_without_colour()
    monkeypatch.setenv("NO_COLOR", "1")
    assert is_without_colour()
