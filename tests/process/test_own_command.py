"""The command of our own processes runs our code and nobody else's."""

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from thoughtgate.process import own_command as module
from thoughtgate.process.own_command import own_command, runs_from_cache

PROGRAM = str(Path(sys.executable).parent.resolve() / Path(sys.executable).name)


def test_it_begins_with_an_absolute_path_that_can_be_run() -> None:
    command = own_command()

    assert Path(command[0]).is_absolute()
    assert os.access(command[0], os.X_OK)
    assert command[1:] == ["-I", "-m", "thoughtgate"]


@pytest.mark.promise("entry-environment")
def test_neither_a_variable_nor_the_working_directory_adds_code(tmp_path: Path) -> None:
    for name in ("sitecustomize", "usercustomize", "thoughtgate", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n", "utf-8")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path)}

    done = subprocess.run(
        [*own_command(), "shim", "--help"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 0, done.stderr
    assert b"Usage: thoughtgate shim" in done.stderr


def test_an_installation_in_the_users_packages_can_be_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = str(Path(module.__file__).parents[2])
    monkeypatch.setattr(site, "getusersitepackages", lambda: folder)

    assert own_command() == [PROGRAM, "-EP", "-m", "thoughtgate"]


def test_a_self_contained_program_is_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    assert own_command() == [PROGRAM]


def test_an_installation_in_a_cache_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "uv" / "archive" / "xyz"
    (place / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(place))
    (place / "CACHEDIR.TAG").touch()  # uv marks every environment
    assert not runs_from_cache()

    (tmp_path / "uv" / "CACHEDIR.TAG").touch()
    assert runs_from_cache()

    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(place / "thoughtgate"))
    assert runs_from_cache()
