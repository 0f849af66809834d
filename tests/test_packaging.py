"""What is shipped: a pure wheel and an sdist, dependencies with reasons, workflows that check."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server
from tests.support.self_contained import INITIALIZE
from tests.support.stdio_peer import StdioPeer
from tests.support.wraps import Machine, WrappedAgent, text_of
from tools.source_tree import ROOT

from thoughtgate.version import __version__

PIPX_RUN = ["pipx", "run", "--spec"]
NO_OTHER_PYTHON = {
    "UV_PYTHON": sys.executable,
    "UV_PYTHON_DOWNLOADS": "never",
    "PIPX_DEFAULT_PYTHON": sys.executable,
}
"""Makes the tools use this Python, and fetch none."""

PYPROJECT = (ROOT / "pyproject.toml").read_text("utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder


def _workflow(name: str) -> str:
    return (ROOT / ".github" / "workflows" / name).read_text("utf-8")


@pytest.mark.requirement("FR30")
def test_a_pure_wheel_and_an_sdist_are_built(built: Path) -> None:
    names = sorted(path.name for path in built.iterdir())

    assert len(names) == 2
    assert any(name.endswith("-py3-none-any.whl") for name in names)
    assert any(name.endswith(".tar.gz") for name in names)


@pytest.mark.requirement("FR30")
def test_the_wheel_holds_the_package_and_its_command(built: Path) -> None:
    wheel = next(built.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        points = next(name for name in names if name.endswith("entry_points.txt"))
        command = archive.read(points).decode()

    assert "thoughtgate/py.typed" in names
    assert "thoughtgate/testing/sample_server.py" in names
    assert not [name for name in names if name.startswith(("tests/", "tools/", "bench/"))]
    assert "thoughtgate = thoughtgate.cli.entry:main" in command


@pytest.mark.requirement("FR30")
def test_the_wheel_installs_into_an_empty_place_and_runs(built: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    wheel = next(built.glob("*.whl"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(target), str(wheel)], check=True, timeout=120)

    program = "import thoughtgate, sys; print(thoughtgate.__file__)"
    run = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert run.stdout.startswith(str(target))


@pytest.mark.long
@pytest.mark.requirement("FR30")
@pytest.mark.parametrize(("tool", "run"), [("uv", ["uvx", "--from"]), ("pipx", PIPX_RUN)])
def test_the_wheel_runs_without_being_installed(
    tool: str, run: list[str], built: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True, timeout=120)
    install = [str(tools / "bin" / "pip"), "install", "--quiet", tool]
    subprocess.run(install, check=True, timeout=240)
    command = [str(tools / "bin" / run[0]), *run[1:], str(next(built.glob("*.whl"))), "thoughtgate"]
    machine = Machine(tmp_path / "machine")
    # uv brings certificates of its own, pip and pipx use the machine's.
    env = {**os.environ, **machine.env, **NO_OTHER_PYTHON, "UV_SYSTEM_CERTS": "1"}

    done = subprocess.run(
        [*command, "--version"], env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout.startswith("thoughtgate "), done.stderr

    server = sample_server()
    shim = [*command, "shim", "--state-dir", str(machine.state), "--", *server]
    with StdioPeer(shim, env=env) as peer:
        peer.send(INITIALIZE)
        assert "serverInfo" in peer.receive()["result"]
        peer.finish()

    # wrap starts its shims by a path into the tool's cache, and says so where the path remains.
    original = machine.write_sample()
    told = ["--agent-type", "custom", "--config-path", str(machine.config)]
    wrap = [*command, "wrap", *told]
    agent = ["env", f"PYTHONPATH={ROOT}", *machine.agent()]  # which pipx would take away
    with WrappedAgent(machine, [*wrap, "--strict", "--", *agent]) as running:
        running.open()
        assert text_of(running.call("echo", {"text": "x"})) == "x"
        assert running.finish() == 0
    assert machine.config.read_bytes() == original
    done = subprocess.run(
        [*wrap, "--no-restore", "--", "true"],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "may vanish" in done.stderr


@pytest.mark.long
def test_the_sbom_lists_what_an_installation_consists_of() -> None:
    subprocess.run(["make", "sbom"], cwd=ROOT, check=True, capture_output=True, timeout=400)
    sbom = json.loads((ROOT / "dist" / "thoughtgate.cdx.json").read_text("utf-8"))

    about = sbom["metadata"]["component"]
    assert (about["name"], about["version"]) == ("thoughtgate", __version__)
    listed = {one["name"].lower() for one in sbom["components"] if one["version"]}
    assert {"cedarpy", "orjson", "uvloop", "textual", "pyjwt", "starlette"} <= listed
    assert not listed & {"pip", "pytest", "mypy", "pyinstaller", "cyclonedx-bom"}
    assert str(ROOT) not in json.dumps(sbom)


@pytest.mark.requirement("FR30")
def test_a_tag_builds_installs_and_publishes() -> None:
    release = _workflow("release.yml")

    assert 'tags: ["v*"]' in release
    for step in (".ci/run", "make build", "thoughtgate demo", "gh-action-pypi-publish"):
        assert step in release


@pytest.mark.requirement("NFR-S4")
def test_the_dependencies_are_audited_in_ci_and_before_a_release() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert "make audit-dependencies" in _workflow("ci.yml")
    assert "make audit-dependencies" in _workflow("release.yml")
    assert "pip-audit" in makefile


@pytest.mark.requirement("NFR-M2")
def test_full_branch_coverage_of_the_policy_room_is_a_gate_in_ci() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert "make coverage" in _workflow("ci.yml")
    assert "--branch --source src/thoughtgate/policy" in makefile
    assert "--fail-under 100" in makefile


@pytest.mark.requirement("NFR-M1")
def test_every_dependency_stands_with_its_reason() -> None:
    project: dict[str, Any] = tomllib.loads(PYPROJECT)["project"]
    extras = [one for group in project["optional-dependencies"].values() for one in group]
    wanted = [*project["dependencies"], *(one for one in extras if "thoughtgate[" not in one)]

    for dependency in wanted:
        line = next(line for line in PYPROJECT.splitlines() if f'"{dependency}"' in line)
        assert re.search(r"# \S+", line), f"{dependency} has no reason"


def test_ci_runs_what_a_contributor_runs() -> None:
    runner = ROOT / ".ci" / "run"

    assert ".ci/run" in _workflow("ci.yml")
    assert "make test" in runner.read_text("utf-8")
    assert runner.stat().st_mode & 0o111
