"""Files are written whole or not at all."""

import os
import resource
from pathlib import Path

import pytest

from thoughtgate.agents.atomic import (
    digest,
    foreign_link,
    read_or_none,
    remove_temporaries,
    replace_file,
    write_private,
)


def test_new_content_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(b"old")
    path.chmod(0o640)
    assert replace_file(path, b"new", expected=b"old")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_new_content_keeps_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    assert replace_file(path, b"new", expected=b"old")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_extended_attributes_are_copied_where_there_are_any(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"mine")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes here")
    assert replace_file(path, b"new", expected=b"old")
    assert os.getxattr(path, "user.note") == b"mine"


def test_a_file_that_somebody_else_wrote_is_left(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(b"theirs")
    assert not replace_file(path, b"new", expected=b"old")
    assert path.read_bytes() == b"theirs"
    assert [one.name for one in tmp_path.iterdir()] == ["c.json"]


def test_a_link_or_a_directory_is_no_file(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    (tmp_path / "link").symlink_to(target)
    for name in ("link", "."):
        with pytest.raises(OSError, match="not a regular file"):
            replace_file(tmp_path / name, b"new", expected=b"old")
    assert target.read_bytes() == b"old"


@pytest.mark.promise("config-restored")
def test_a_link_in_the_place_of_a_directory_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "elsewhere" / "c.json"
    victim.parent.mkdir()
    victim.write_bytes(b"old")
    (tmp_path / "project").symlink_to(victim.parent)
    for path in (tmp_path / "project" / "c.json", tmp_path / "project" / "deeper" / "c.json"):
        with pytest.raises(OSError, match="replaced by a link"):
            replace_file(path, b"new", expected=b"old")
    assert victim.read_bytes() == b"old"
    assert [one.name for one in victim.parent.iterdir()] == ["c.json"]


def test_a_write_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="large"):
            replace_file(path, b"n" * 1000, expected=b"old")
        with pytest.raises(OSError, match="large"):
            write_private(tmp_path / "b", b"n" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["c.json"]


def test_a_private_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(b"stale")
    path.chmod(0o644)
    write_private(path, b"content")
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_private_file_replaces_a_link_and_does_not_follow_it(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "b").symlink_to(victim)
    write_private(tmp_path / "b", b"content")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "b").is_symlink()


def test_a_private_file_does_not_replace_a_directory(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(tmp_path / "b", b"content")
    assert [one.name for one in tmp_path.iterdir()] == ["b"]


def test_a_missing_file_reads_as_nothing(tmp_path: Path) -> None:
    assert read_or_none(tmp_path / "no") is None
    assert read_or_none(tmp_path / "no" / "deeper") is None


def test_a_digest_is_sha256_in_hex() -> None:
    assert digest(b"").startswith("e3b0c44298fc1c14")


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    for name in (".thoughtgate-12-ab.tmp", ".thoughtgate-123-ab.tmp", "c.json"):
        (tmp_path / name).touch()
    remove_temporaries(tmp_path, 12)
    assert sorted(one.name for one in tmp_path.iterdir()) == [".thoughtgate-123-ab.tmp", "c.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_link_of_another_user_is_found_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "c.json").write_bytes(b"old")
    (tmp_path / "mine").symlink_to("real")
    (tmp_path / "theirs").symlink_to(tmp_path / "real")
    (tmp_path / "through").symlink_to("mine/../theirs/c.json")
    (tmp_path / "circle").symlink_to("circle")
    os.chown(tmp_path / "theirs", 12345, 23456, follow_symlinks=False)

    assert foreign_link(tmp_path / "mine" / "c.json") is None
    assert foreign_link(tmp_path / "circle" / "c.json") is None
    assert foreign_link(tmp_path / "theirs" / "c.json") == tmp_path / "theirs"
    assert foreign_link(tmp_path / "through") == tmp_path / "theirs"
