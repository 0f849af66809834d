"""The files under ``deploy/`` that people copy: each is well-formed and fits the others."""

import json
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.support.commands import ROOT
from tests.support.deployed_config import KEY_FILE, problems
from tests.support.doc_blocks import FENCE
from tests.support.warm_command import run_warm

from thoughtgate.front.pages import Pages
from thoughtgate.version import __version__

DEPLOY = ROOT / "deploy"
FILES = DEPLOY / "separate-user"
CHART = DEPLOY / "helm" / "thoughtgate"
DROP_INS = DEPLOY / "systemd" / "thoughtgate.service.d"
GUIDES = [
    ROOT / "docs" / "guides" / f"{name}.md" for name in ("kubernetes", "containers", "systemd")
]
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
    # With KillMode=control-group, servers would be gone before the calls in progress have finished.
    assert found["KillMode"] == ["mixed"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("drop_ins", [[], sorted(DROP_INS.iterdir())], ids=["alone", "gateway"])
def test_systemd_accepts_the_unit(drop_ins: list[Path], tmp_path: Path) -> None:
    # systemd-analyze also checks that the program exists.
    folder = tmp_path / DROP_INS.name
    folder.mkdir()
    copy = tmp_path / "thoughtgate.service"
    for source, target in [
        (FILES / copy.name, copy),
        *((one, folder / one.name) for one in drop_ins),
    ]:
        text = source.read_text("utf-8").replace("/usr/local/bin/thoughtgate", sys.executable)
        target.write_text(text, "utf-8")
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


@pytest.mark.parametrize("path", ["examples/gateway.yaml", "kubernetes/sidecar.yaml"])
def test_the_configs_of_gateways_are_valid(path: str, tmp_path: Path) -> None:
    documents = list(YAML(typ="safe").load_all(DEPLOY / path))
    found = [one["data"]["gate.yaml"] for one in documents if one.get("kind") == "ConfigMap"]
    for text in found or [(DEPLOY / path).read_text("utf-8")]:
        assert problems(text, tmp_path) == []


def _blocks(language: str) -> list[tuple[str, str, str]]:
    found = []
    for guide in GUIDES:
        for block in FENCE.finditer(guide.read_text("utf-8")):
            kind, *marks = block["info"].split()
            if kind == language:
                found.append((guide.stem, " ".join(marks), block["body"]))
    return found


def test_every_config_in_the_guides_is_valid(tmp_path: Path) -> None:
    checked = []
    for guide, mark, body in _blocks("yaml"):
        assert isinstance(YAML(typ="safe").load(body), dict)
        if mark == "file=gate.yaml":
            assert problems(body, tmp_path) == [], guide
            checked.append(guide)
        else:
            # The tests of the chart render these.
            assert mark.endswith("values.yaml"), guide
    assert checked == ["containers", "systemd"]


def test_the_image_runs_without_root_and_without_a_shell() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    final = re.sub(r"\\\n\s*", " ", text.rpartition("\nFROM ")[2])
    commands = dict(
        line.split(" ", 1) for line in final.splitlines()[1:] if not line.startswith("#")
    )
    assert commands["USER"] == "10001:10001"
    assert json.loads(commands["ENTRYPOINT"]) == ["thoughtgate"]
    assert json.loads(commands["CMD"])[:2] == SERVE
    program = json.loads(commands["HEALTHCHECK"].rpartition("CMD ")[2])
    compile(program[3], "HEALTHCHECK", "exec")
    assert b"/health" in Pages().public_routes()
    assert "/health" in program[3]


def test_the_build_sends_nothing_but_the_package() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    kept = [line for line in lines if line.startswith("!")]
    assert lines[2] == "*"
    assert kept == ["!pyproject.toml", "!README.md", "!LICENSE", "!src"]


def test_the_compose_file_gives_each_gate_its_own_state_and_time_to_stop() -> None:
    services = YAML(typ="safe").load(DEPLOY / "compose.yaml")["services"]
    listen = YAML(typ="safe").load(DEPLOY / "examples" / "gateway.yaml")["listen"]
    gates = [services["gate-1"], services["gate-2"]]
    states = [volume for gate in gates for volume in gate["volumes"] if "/var/lib" in volume]
    assert states == ["state-1:/var/lib/thoughtgate", "state-2:/var/lib/thoughtgate"]
    for gate in gates:
        assert gate["read_only"] is True
        assert gate["cap_drop"] == ["ALL"]
        assert f"./session-keys:{KEY_FILE}:ro" in gate["volumes"]
        assert "ports" not in gate
        needed = seconds(listen["lame_duck"]) + seconds(listen["drain"])
        assert seconds(gate["stop_grace_period"]) > needed
    assert services["balancer"]["ports"] == ["127.0.0.1:8080:8080"]


def test_the_unit_gives_the_gate_time_to_stop() -> None:
    listen = YAML(typ="safe").load(DEPLOY / "examples" / "gateway.yaml")["listen"]
    needed = seconds(listen["lame_duck"]) + seconds(listen["drain"])
    assert seconds(unit()["TimeoutStopSec"][0]) > needed


def seconds(text: str) -> int:
    assert text.endswith("s")
    return int(text.removesuffix("s"))


@pytest.mark.skipif(
    shutil.which("haproxy") is None, reason="HAProxy is not installed (Debian: haproxy)"
)
def test_haproxy_accepts_its_config() -> None:
    file = DEPLOY / "haproxy" / "haproxy.cfg"
    subprocess.run(["haproxy", "-c", "-q", "-f", str(file)], check=True, timeout=30)


def test_the_chart_runs_this_version() -> None:
    chart = YAML(typ="safe").load(CHART / "Chart.yaml")
    assert chart["appVersion"] == __version__


def test_every_value_of_the_chart_is_in_its_schema() -> None:
    values = YAML(typ="safe").load(CHART / "values.yaml")
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    assert set(values) | {"global"} == set(schema["properties"])
    for name, section in schema["properties"].items():
        if section.get("additionalProperties") is False:
            assert set(section["properties"]) == set(values[name]), name
