"""The benchmark can run an earlier version: it is installed beside this one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import previous

ROOT = Path(__file__).parent.parent.parent
STATED = "import thoughtgate; print(thoughtgate.__file__)"


def test_a_wheel_is_installed_into_a_folder_that_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previous, "FOLDER", tmp_path / "bench")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, str(ROOT)], check=True, timeout=120, stdout=subprocess.DEVNULL)
    (wheel,) = tmp_path.glob("*.whl")
    folder = previous.install(str(wheel))
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    told = subprocess.run(
        [sys.executable, "-c", STATED],
        env=environ,
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert Path(told.stdout.strip()).is_relative_to(folder)


def test_a_revision_that_does_not_exist_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        previous.install("no-such-revision")
