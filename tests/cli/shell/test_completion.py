"""Completion in the shell, installed and removed with one command each."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import isolated_command
from tests.support.warm_command import run_warm

ASK = 'COMP_WORDS=(thoughtgate servers re); COMP_CWORD=2; _thoughtgate; echo "${COMPREPLY[@]}"'


def run(home: Path, *words: str, shell: str = "/bin/bash") -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "SHELL": shell}
    return run_warm("completion", *words, env=env, cwd=home)


def test_a_new_bash_completes_after_one_command(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / ".bashrc").write_text("export MINE=1", "utf-8")
    folder = tmp_path / "bin"
    folder.mkdir()
    own = isolated_command(folder).parent

    done = run(tmp_path, "--install")
    again = run(tmp_path, "--install")

    assert done.returncode == again.returncode == 0, done.stderr
    assert (tmp_path / ".bashrc").read_text("utf-8").count("completion.bash") == 2  # one line
    assert (tmp_path / ".bashrc").read_text("utf-8").startswith("export MINE=1\n")
    asked = subprocess.run(
        [bash, "--norc", "-c", f". {tmp_path}/.bashrc; {ASK}"],
        env={"HOME": str(tmp_path), "PATH": f"{own}:{Path(sys.executable).parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert asked.stdout == "remove\n"
    assert run(tmp_path, "--uninstall").returncode == 0
    assert (tmp_path / ".bashrc").read_text("utf-8") == "export MINE=1\n"
    assert "nothing to remove" in run(tmp_path, "--uninstall").stdout


@pytest.mark.parametrize(
    ("shell", "files"),
    [
        ("zsh", [".local/share/thoughtgate/completion.zsh", ".zshrc"]),
        ("fish", [".config/fish/completions/thoughtgate.fish"]),
    ],
)
def test_other_shells_load_the_script_too(tmp_path: Path, shell: str, files: list[str]) -> None:
    told = json.loads(run(tmp_path, shell, "--install", "--json").stdout)

    assert told == {"shell": shell, "files": [str(tmp_path / name) for name in files]}
    assert "completion --next --" in (tmp_path / files[0]).read_text("utf-8")


def test_an_unknown_shell_is_told_the_known_ones(tmp_path: Path) -> None:
    for done in (run(tmp_path, "tcsh"), run(tmp_path, shell=""), run(tmp_path, "bash", "zsh")):
        assert done.returncode == 2
        assert "bash, zsh" in done.stderr
        assert done.stdout == ""
