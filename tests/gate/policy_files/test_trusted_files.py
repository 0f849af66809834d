"""The list of project policies that the user has trusted."""

import json
import os
from pathlib import Path

import pytest

from thoughtgate.gate.policy_files.trusted_files import (
    FILE,
    TrustedFile,
    distrust_file,
    is_trusted,
    list_trusted,
    trust_file,
)


def test_a_file_is_trusted_by_its_real_path_and_its_content(tmp_path: Path) -> None:
    state, file = str(tmp_path / "state"), tmp_path / "repo" / "thoughtgate.yaml"
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    added = trust_file(state, str(tmp_path / "link" / "thoughtgate.yaml"), "abc", "now")

    assert added == TrustedFile(str(file), "abc", "now")
    assert list_trusted(state) == {str(file): added}
    assert is_trusted(state, str(file), "abc")
    assert not is_trusted(state, str(file), "abd")
    assert not is_trusted(state, str(tmp_path / "other.yaml"), "abc")


def test_the_list_is_private(tmp_path: Path) -> None:
    trust_file(str(tmp_path), "/a", "abc", "now")
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_trust_can_be_renewed_and_withdrawn(tmp_path: Path) -> None:
    state = str(tmp_path)
    trust_file(state, "/a", "one", "now")
    trust_file(state, "/b", "two", "now")
    trust_file(state, "/a", "three", "later")
    assert [one.digest for one in list_trusted(state).values()] == ["three", "two"]
    assert distrust_file(state, "/a")
    assert not distrust_file(state, "/a")
    assert list(list_trusted(state)) == ["/b"]


@pytest.mark.parametrize("text", ["", "[]", '{"/a": 1}', '{"/a": {"digest": "x"}}', "\xff"])
def test_a_damaged_list_trusts_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text, "latin-1")
    (tmp_path / FILE).chmod(0o600)
    assert list_trusted(str(tmp_path)) == {}


def test_a_list_that_others_can_reach_trusts_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps({"/a": {"digest": "x", "at": ""}}), "utf-8")
    (tmp_path / FILE).chmod(0o644)
    assert list_trusted(str(tmp_path)) == {}


def test_a_pipe_in_the_place_of_the_list_trusts_nothing_and_is_not_waited_for(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / FILE, 0o600)

    assert list_trusted(str(tmp_path)) == {}


def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trusted-policies.lock", 0o600)

    trust_file(str(tmp_path), "/a/thoughtgate.yaml", "abc", "now")

    assert is_trusted(str(tmp_path), "/a/thoughtgate.yaml", "abc")
