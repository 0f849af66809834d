"""Policy files that somebody else could have written are refused."""

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from thoughtgate.errors import ConfigError
from thoughtgate.gate.policy_files.checked_files import (
    PolicyFiles,
    changed_files,
    refused_files,
)

STRANGER = 54321


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sub" / "policy"
    path.parent.mkdir(mode=0o755)
    path.write_text("text", "utf-8")
    path.chmod(0o644)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        PolicyFiles().text(str(path))
    return str(caught.value)


@pytest.mark.promise("policy-file-ownership")
def test_a_file_of_somebody_else_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    owner = file.stat().st_uid
    if owner == 0:
        assert PolicyFiles().text(str(file)) == "text"
    else:
        assert "belongs to" in refusal(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.promise("policy-file-ownership")
def test_a_file_and_a_directory_that_were_given_away_are_refused(file: Path) -> None:
    os.chown(file, STRANGER, -1)
    assert f"belongs to {STRANGER}, not to you or root; fix it with: chown " in refusal(file)
    os.chown(file, 0, -1)
    os.chown(file.parent, STRANGER, -1)
    told = refusal(file)
    assert f"its directory belongs to {STRANGER}" in told
    assert told.endswith(f" {file.parent}")


@pytest.mark.promise("policy-file-ownership")
@pytest.mark.parametrize("mode", [0o646, 0o666, 0o602])
def test_a_file_that_everybody_can_write_is_refused(mode: int, file: Path) -> None:
    file.chmod(mode)
    told = refusal(file)
    assert "can be written by everybody" in told
    assert f"chmod go-w {file}" in told


@pytest.mark.promise("policy-file-ownership")
@pytest.mark.parametrize(
    ("members", "primary", "fine"),
    [((), (), True), (("me",), ("me",), True), (("ann",), (), False), ((), ("ann",), False)],
)
def test_a_file_that_its_group_can_write_is_refused_if_the_group_has_other_members(
    members: tuple[str, ...],
    primary: tuple[str, ...],
    fine: bool,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file.chmod(0o664)
    group = file.stat().st_gid
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_mem=list(members)))
    people: list[Any] = [SimpleNamespace(pw_name=name, pw_gid=group) for name in primary]
    monkeypatch.setattr(pwd, "getpwall", lambda: people)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="me"))
    if fine:
        assert PolicyFiles().text(str(file)) == "text"
    else:
        assert "can be written by its group" in refusal(file)


def test_a_group_that_nobody_knows_may_have_members(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: int) -> Any:
        raise KeyError

    file.chmod(0o664)
    monkeypatch.setattr(grp, "getgrgid", unknown)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert "can be written by its group" in refusal(file)


@pytest.mark.promise("policy-file-ownership")
def test_a_file_in_a_directory_that_everybody_can_write_is_refused(file: Path) -> None:
    file.parent.chmod(0o777)
    told = refusal(file)
    assert (
        f"its directory can be written by everybody; fix it with: chmod o-w {file.parent}" in told
    )
    file.parent.chmod(0o1777)
    assert PolicyFiles().text(str(file)) == "text"


@pytest.mark.promise("policy-file-ownership")
def test_a_file_in_a_directory_that_a_shared_group_can_write_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.parent.chmod(0o775)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_mem=["ann"]))
    told = refusal(file)
    assert (
        f"its directory can be written by its group; fix it with: chmod g-w {file.parent}" in told
    )
    file.parent.chmod(0o1775)
    assert PolicyFiles().text(str(file)) == "text"
    file.parent.chmod(0o775)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_mem=[]))
    monkeypatch.setattr(pwd, "getpwall", list)
    assert PolicyFiles().text(str(file)) == "text"


@pytest.mark.promise("policy-file-ownership")
def test_a_link_that_takes_the_place_of_a_checked_file_is_not_followed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = file.with_name("other")
    file.rename(other)
    file.symlink_to(other)
    checked = other.lstat()
    monkeypatch.setattr(Path, "lstat", lambda _: checked)  # what was there a moment ago

    with pytest.raises(ConfigError, match="symbolic links"):
        PolicyFiles().config(str(file))


def test_modes_do_not_matter_on_a_read_only_mount(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.parent.chmod(0o777)
    file.chmod(0o666)
    monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert PolicyFiles().text(str(file)) == "text"


def test_a_file_is_read_once_so_what_was_checked_is_what_is_used(file: Path) -> None:
    files = PolicyFiles()
    digest = files.digest(str(file), [])
    file.write_text("other", "utf-8")
    assert (files.text(str(file)), files.digest(str(file), [])) == ("text", digest)
    assert PolicyFiles().digest(str(file), []) != digest


def test_a_digest_covers_the_files_that_are_named(file: Path) -> None:
    (file.parent / "a").write_text("1", "utf-8")
    before = PolicyFiles().digest(str(file), ["a"])
    (file.parent / "a").write_text("2", "utf-8")
    assert PolicyFiles().digest(str(file), ["a"]) != before


A_DIGEST = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
"""SHA-256 of the letter a."""


def test_changed_files_are_named_with_their_digest() -> None:
    before = {"/one": "same", "/two": "b", "/three": "c"}
    after = {"/one": "same", "/two": "a", "/four": "a"}
    assert changed_files(before, after) == [
        {"path": "/four", "digest": A_DIGEST},
        {"path": "/three"},
        {"path": "/two", "digest": A_DIGEST},
    ]


def test_refused_files_are_named_even_if_they_cannot_be_read(file: Path, tmp_path: Path) -> None:
    same = {str(file): "text"}
    assert refused_files(same, []) == []
    file.write_text("\ufeffa", "utf-8")
    assert refused_files(same, [""]) == [{"path": str(file), "digest": A_DIGEST}]
    gone = tmp_path / "gone"
    assert refused_files({str(file): "a"}, [str(gone)]) == [{"path": str(gone)}]
