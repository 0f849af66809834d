"""An earlier version of ThoughtGate, installed beside this one so that one run measures both.

It is installed without its dependencies into a folder of its own. A process that has the
folder on ``PYTHONPATH`` runs the earlier code with the packages of this environment, so the
two differ in nothing else.
"""

import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "build" / "bench"
WANTED: Final = "BENCH_PREVIOUS"
"""The variable that gives the families the folder of the earlier version."""
INSTALL_S: Final = 300.0


def install(wanted: str) -> Path:
    """Install a wheel or a git revision and return its folder.

    Raises:
        subprocess.CalledProcessError: there is no such revision, or it cannot be installed.
    """
    if wanted.endswith(".whl"):
        return _installed(Path(wanted).resolve(), FOLDER / Path(wanted).stem)
    revision = _run(["git", "rev-parse", "--verify", f"{wanted}^{{commit}}"]).decode().strip()
    folder = FOLDER / revision
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory() as name:
        archive = _run(["git", "archive", revision])
        with tarfile.open(fileobj=BytesIO(archive)) as source:
            source.extractall(name, filter="data")
        return _installed(Path(name), folder)


def _installed(source: Path, folder: Path) -> Path:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--upgrade", "--target"]
    _run([sys.executable, "-m", "pip", "install", *options, str(folder), str(source)])
    return folder


def _run(command: list[str]) -> bytes:
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=INSTALL_S)
    return done.stdout
