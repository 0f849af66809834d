"""The files under ``deploy/`` that people copy: each is well-formed and fits the others."""

import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.support.commands import ROOT
from tests.support.warm_command import run_warm

FILES = ROOT / "deploy" / "separate-user"
GUIDE = ROOT / "docs" / "guides" / "separate-user.md"

SERVE = ["serve", "--http"]


def read_yaml(name: str) -> Any:
    return YAML(typ="safe").load(FILES / name)


def test_the_policy_is_valid_and_requires_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "x" * 32)
    done = run_warm("validate-config", "-c", str(FILES / "gate.yaml"))
    assert done.returncode == 0, done.stderr
    assert read_yaml("gate.yaml")["listen"]["auth"]["token_env"] == "AGENT_TOKEN"


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (FILES / "thoughtgate.service").read_text("utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def test_the_systemd_unit_runs_the_gate_as_its_own_user() -> None:
    found = unit()
    assert found["User"] == ["thoughtgate"]
    assert found["StateDirectoryMode"] == ["0700"]
    assert found["Environment"] == ["THOUGHTGATE_STATE_DIR=/var/lib/thoughtgate"]
    assert shlex.split(found["ExecStart"][0])[1:3] == SERVE


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    # systemd-analyze also checks that the program exists.
    text = (FILES / "thoughtgate.service").read_text("utf-8")
    copy = tmp_path / "thoughtgate.service"
    copy.write_text(text.replace("/usr/local/bin/thoughtgate", sys.executable), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if "thoughtgate" in line]
    assert complaints == []


def test_the_launchd_job_runs_the_gate_as_its_own_user_without_a_secret_in_it() -> None:
    job = plistlib.loads((FILES / "dev.thoughtgate.gate.plist").read_bytes())
    assert job["UserName"] == "_thoughtgate"
    assert list(job["EnvironmentVariables"]) == ["THOUGHTGATE_STATE_DIR"]
    shell, flag, script = job["ProgramArguments"]
    assert (shell, flag) == ("/bin/sh", "-c")
    assert " ".join(SERVE) in script
    subprocess.run(["sh", "-n", "-c", script], check=True, timeout=10)


def test_the_container_publishes_the_port_on_the_loopback_interface_only() -> None:
    service = read_yaml("compose.yaml")["services"]["thoughtgate"]
    assert service["command"][:2] == SERVE
    assert service["ports"] == ["127.0.0.1:8080:8080"]
    assert "./gate.yaml:/etc/thoughtgate/gate.yaml:ro" in service["volumes"]
    lines = (FILES / "Dockerfile").read_text("utf-8").splitlines()
    assert "USER thoughtgate" in lines


def test_the_guide_names_every_file() -> None:
    text = GUIDE.read_text("utf-8")
    for name in ("gate.yaml", "thoughtgate.service", "dev.thoughtgate.gate.plist", "gate.env"):
        assert name in text
