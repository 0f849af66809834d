"""Where state lives, who may read it, and which variables are the gate's own."""

import os
from pathlib import Path

import pytest

from thoughtgate.errors import StoreError
from thoughtgate.gate.state_directory import (
    ensure_directory,
    server_environment,
    state_directory,
    write_once,
    write_private_file,
)


def test_the_variable_goes_before_the_platforms_place(tmp_path: Path) -> None:
    told = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "s"), "XDG_STATE_HOME": "/x"}

    assert state_directory(told) == str(tmp_path / "s")
    assert os.path.isabs(state_directory({"THOUGHTGATE_STATE_DIR": "relative"}))  # noqa: PTH117 - the module speaks in strings


def test_the_platforms_place_follows_xdg_and_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr("sys.platform", "linux")

    assert state_directory({"XDG_STATE_HOME": "/x"}) == "/x/thoughtgate"
    assert state_directory({}) == "/home/me/.local/state/thoughtgate"
    monkeypatch.setattr("sys.platform", "darwin")
    assert state_directory({}) == "/home/me/Library/Application Support/thoughtgate"


def test_a_new_directory_is_private_and_an_own_one_becomes_so(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"

    assert ensure_directory(str(path)) == str(path)
    assert path.stat().st_mode & 0o777 == 0o700
    path.chmod(0o755)
    ensure_directory(str(path))
    assert path.stat().st_mode & 0o777 == 0o700


def test_a_shared_directory_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """The one for temporary files, say: closing it to everybody else would break the machine."""
    tmp_path.chmod(0o1777)

    with pytest.raises(StoreError, match="THOUGHTGATE_STATE_DIR"):
        ensure_directory(str(tmp_path))
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777
    tmp_path.chmod(0o700)


def test_a_place_that_cannot_be_a_directory_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(StoreError, match="THOUGHTGATE_STATE_DIR"):
        ensure_directory(str(tmp_path / "file"))


@pytest.mark.requirement("SEC-001")
def test_a_server_gets_everything_but_the_gates_own_and_its_secrets() -> None:
    environ = {
        "PATH": "/bin",
        "THOUGHTGATE_GOVERNANCE_TOKEN": "x",
        "SUB_RUN_ID": "y",
        "SLACK": "z",
        "SUBWAY": "kept",
    }

    assert server_environment(environ, ["SLACK"]) == {"PATH": "/bin", "SUBWAY": "kept"}


def test_a_private_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "told.json"
    for text in ("one", "two"):
        write_private_file(str(path), text)

    assert path.read_text() == "two"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_written_once_is_never_seen_in_part_or_changed(tmp_path: Path) -> None:
    path = tmp_path / "id"
    write_once(str(path), b"first")
    first = path.stat().st_ino
    write_once(str(path), b"second")

    assert path.read_bytes() == b"first"
    assert path.stat().st_ino == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
