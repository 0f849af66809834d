"""How commands print."""

import json
from pathlib import Path

import pytest

from thoughtgate.cli.output import (
    counted,
    create_file,
    is_without_colour,
    say,
    watch_report,
    write_json,
    write_report,
)


def test_json_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"name": "caf\u00e9"})

    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"name": "caf\u00e9"}
    assert printed.err == ""


def test_a_message_goes_to_stderr_as_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("a name\nwith a line break")

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "thoughtgate: a name[U+000A]with a line break\n"


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


def test_a_report_is_json_or_lines(capsys: pytest.CaptureFixture[str]) -> None:
    write_report({"calls": 2}, ["2 calls", "no errors"], as_json=False)
    assert capsys.readouterr().out == "2 calls\nno errors\n"

    write_report({"calls": 2}, ["2 calls", "no errors"], as_json=True)
    assert json.loads(capsys.readouterr().out) == {"calls": 2}


def test_a_created_file_is_private_and_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    create_file(path, "schema: 1\n")
    assert path.stat().st_mode & 0o777 == 0o600

    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "elsewhere.yaml")
    for taken in (path, link):
        with pytest.raises(FileExistsError):
            create_file(taken, "changed")
    assert path.read_text() == "schema: 1\n"
    assert not (tmp_path / "elsewhere.yaml").exists()


class _StopError(Exception):
    pass


def _watch(values: list[list[int]], *, as_json: bool) -> None:
    left = list(values)

    def pause(_: float) -> None:
        if not left:
            raise _StopError

    with pytest.raises(_StopError):
        watch_report(
            lambda: (value := left.pop(0), map(str, value)),
            as_json=as_json,
            watch=True,
            nothing="nothing there",
            pause=pause,
        )


def test_a_watched_report_is_printed_again_when_it_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _watch([[1], [1], [], [2, 3]], as_json=False)

    shown = capsys.readouterr()
    assert shown.out == "1\n2\n3\n"
    assert shown.err == "nothing there\n"


def test_a_watched_report_is_one_line_of_json_each(capsys: pytest.CaptureFixture[str]) -> None:
    _watch([[1], [1], [2, 3]], as_json=True)

    assert capsys.readouterr().out == "[1]\n[2, 3]\n"


def test_a_terminal_shows_the_newest_report_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    _watch([[1], [2]], as_json=False)

    assert capsys.readouterr().out.count("\x1b[H\x1b[2J") == 2
