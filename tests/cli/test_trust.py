"""``thoughtgate trust``: what it shows, asks and keeps."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from tests.support.commands import thoughtgate
from tests.support.waiting import PATIENCE_S
from tests.support.warm_command import run_warm

from thoughtgate.cli.app import run

LOOSE = """
schema: 1
default: forward
servers:
  files: {command: run-me, args: [--now, "a b"], env: {KEY: "${MY_SECRET}"}}
  web: {url: "https://example.com/mcp", auth: {token_env: WEB_TOKEN}}
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    own = tmp_path / "config" / "thoughtgate" / "thoughtgate.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("schema: 1\ndefault: deny\n", "utf-8")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thoughtgate.yaml").write_text(LOOSE, "utf-8")
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"),
        "MY_SECRET": "s3cret-value",
    }


def trust(
    environ: dict[str, str], *words: str, folder: str = "work"
) -> subprocess.CompletedProcess[str]:
    return run_warm("trust", *words, env=environ, cwd=Path(environ["HOME"], folder))


def in_force(environ: dict[str, str]) -> list[tuple[str, bool]]:
    cwd = Path(environ["HOME"], "work")
    done = run_warm("validate-config", "--json", env=environ, cwd=cwd)
    return [(one["role"], one["trusted"]) for one in json.loads(done.stdout)["sources"]]


@pytest.mark.promise("project-policy-trust")
def test_a_file_is_shown_before_it_is_trusted(environ: dict[str, str]) -> None:
    path = Path(environ["HOME"], "work", "thoughtgate.yaml")
    assert in_force(environ) == [("user", True), ("project", False)]

    done = trust(environ, "--yes")

    assert done.returncode == 0, done.stderr
    assert "server files: run-me --now 'a b'" in done.stdout
    assert "server web: https://example.com/mcp" in done.stdout
    assert "MY_SECRET, WEB_TOKEN" in done.stdout
    assert "s3cret-value" not in done.stdout
    assert "LOOSENS" in done.stdout
    assert done.stdout.splitlines()[-1] == f"Trusted: {path}"
    assert in_force(environ) == [("project", True)]


def test_json_reports_and_trusts_only_with_yes(environ: dict[str, str]) -> None:
    seen = json.loads(trust(environ, "--json").stdout)
    assert (seen["trusted"], seen["commands"]["files"]) == (False, "run-me --now 'a b'")
    assert {change["effect"] for change in seen["changes"]} >= {"loosens"}
    assert in_force(environ)[0] == ("user", True)
    assert json.loads(trust(environ, "--json", "--yes").stdout)["trusted"]
    assert in_force(environ) == [("project", True)]


@pytest.mark.promise("project-policy-trust")
def test_trust_ends_with_any_change_and_can_be_withdrawn(environ: dict[str, str]) -> None:
    path = Path(environ["HOME"], "work", "thoughtgate.yaml")
    trust(environ, str(path), "--yes", folder=".")
    assert "  trusted, " in trust(environ, "--list").stdout
    path.write_text(LOOSE + "# more\n", "utf-8")
    assert "  changed since, " in trust(environ, "--list").stdout
    assert in_force(environ) == [("user", True), ("project", False)]
    trust(environ, "--yes")
    assert in_force(environ) == [("project", True)]
    assert trust(environ, "--remove", str(path)).returncode == 0
    assert trust(environ, "--list").stdout == ""
    assert in_force(environ) == [("user", True), ("project", False)]
    assert "is not trusted" in trust(environ, "--remove", str(path)).stderr
    trust(environ, "--yes")
    path.unlink()
    (entry,) = json.loads(trust(environ, "--list", "--json").stdout)
    assert entry["status"] == "cannot be read"


def test_without_a_terminal_nothing_is_trusted(environ: dict[str, str]) -> None:
    done = trust(environ)
    assert done.returncode == 2
    assert "use --yes" in done.stderr
    assert in_force(environ)[0] == ("user", True)


def test_without_a_file_there_is_nothing_to_trust(environ: dict[str, str]) -> None:
    done = trust(environ, folder="config")
    assert done.returncode == 1
    assert "there is no config file to trust" in done.stderr


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 1), ("no\n", 1)])
def test_a_person_is_asked_on_a_terminal(environ: dict[str, str], answer: str, code: int) -> None:
    here, there = pty.openpty()
    os.write(here, answer.encode())
    done = subprocess.run(
        thoughtgate("trust"),
        env=environ,
        cwd=Path(environ["HOME"], "work"),
        stdin=there,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(there)
    os.close(here)
    assert done.returncode == code
    assert b"Trust this file? [y/N]" in done.stderr
    assert (in_force(environ) == [("project", True)]) == (code == 0)


@pytest.mark.promise("project-policy-trust")
def test_an_agent_cannot_trust_a_file(environ: dict[str, str]) -> None:
    done = trust({**environ, "THOUGHTGATE_ACTIVE": "1"}, "--yes")
    assert done.returncode == 2
    assert "a governed agent started this process" in done.stderr
    assert in_force(environ)[0] == ("user", True)


@pytest.mark.promise("project-policy-trust")
def test_what_is_shown_is_what_is_trusted(
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(environ["HOME"], "work", "thoughtgate.yaml")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(path.parent)
    opened = os.open

    def replaced_once_read(name: str | Path, *args: int, **kwargs: int) -> int:
        descriptor = opened(name, *args, **kwargs)
        if str(name) == str(path):
            path.unlink()
            path.write_text("schema: 1\ndefault: forward\n", "utf-8")
        return descriptor

    monkeypatch.setattr(os, "open", replaced_once_read)

    assert run(["trust", "--yes"]) == 0

    assert "MY_SECRET" in capsys.readouterr().out
    assert in_force(environ) == [("user", True), ("project", False)]
