"""``init`` writes the starter policy, once."""

import stat
import subprocess
from pathlib import Path

from tests.support.warm_command import run_warm

from thoughtgate.policy.starter import STARTER_TEXT


def thoughtgate(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_warm(*args, cwd=cwd)


def test_it_writes_a_config_that_is_valid_and_private(tmp_path: Path) -> None:
    assert thoughtgate("init", cwd=tmp_path).returncode == 0
    written = tmp_path / "thoughtgate.yaml"
    assert written.read_text("utf-8") == STARTER_TEXT
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert thoughtgate("validate-config", cwd=tmp_path).returncode == 0


def test_it_refuses_to_overwrite(tmp_path: Path) -> None:
    (tmp_path / "thoughtgate.yaml").write_text("mine")
    result = thoughtgate("init", cwd=tmp_path)
    assert result.returncode == 2
    assert "was not changed" in result.stderr
    assert (tmp_path / "thoughtgate.yaml").read_text() == "mine"


def test_it_does_not_write_through_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "thoughtgate.yaml").symlink_to(tmp_path / "elsewhere")
    assert thoughtgate("init", cwd=tmp_path).returncode == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_or_a_directory_can_be_named(tmp_path: Path) -> None:
    named = thoughtgate("init", "deep/er/my.yaml", cwd=tmp_path)
    assert named.returncode == 0
    assert "thoughtgate trust" not in named.stderr  # it is read only where it is named
    assert (tmp_path / "deep/er/my.yaml").exists()
    assert thoughtgate("init", "deep", cwd=tmp_path).returncode == 0
    assert (tmp_path / "deep" / "thoughtgate.yaml").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = thoughtgate("init", "file/x.yaml", cwd=tmp_path)
    assert result.returncode == 2
    assert "file/x.yaml" in result.stderr
