"""``thoughtgate console`` as people run it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import thoughtgate
from tests.support.consoles import RunningConsole
from tests.support.stdio_peer import StdioPeer


def test_it_prints_a_link_that_signs_in_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    with RunningConsole(tmp_path / "state") as console:
        assert console.link.startswith(f"http://127.0.0.1:{console.port}/login/")
        assert console.client().get("/").status == 200
        console.signal(signal.SIGINT)
        assert console.wait() == 0


def test_the_link_stands_alone_on_stdout(tmp_path: Path) -> None:
    env = {"THOUGHTGATE_STATE_DIR": str(tmp_path)}
    with StdioPeer(thoughtgate("console"), env=env) as console:
        line = (console.read_line() or b"").decode()
        assert line.startswith("http://127.0.0.1:")
        console.wait_for_stderr("Ctrl-C")
        console.signal(signal.SIGTERM)
        assert console.wait() == 0
        assert console.remaining_lines() == []


def test_refusals_are_told_on_stderr(tmp_path: Path) -> None:
    with RunningConsole(tmp_path / "state") as console:
        console.client().get("/", {"Host": "evil.example"})
        console.wait_for_stderr("wrong host")


def test_open_opens_the_browser(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!{sys.executable}\nimport sys\nopen({str(opened)!r}, "w").write(sys.argv[1])\n'
    )
    browser.chmod(0o700)
    with RunningConsole(tmp_path / "state", "--open", env={"BROWSER": f"{browser} %s"}) as console:
        console.wait_for_stderr("Ctrl-C")
        console.signal(signal.SIGTERM)
        console.wait()
        assert opened.read_text() == console.link


def run(tmp_path: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        thoughtgate("console", *args),
        env={**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"), **env},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


@pytest.mark.parametrize("name", ["THOUGHTGATE_ACTIVE", "THOUGHTGATE_WRAPPED"])
def test_a_governed_agent_cannot_open_a_console(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, **{name: "1"})

    assert done.returncode == 2
    assert "cannot approve its own calls" in done.stderr


def test_a_wrong_config_is_said_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("schema: 1\n")
    done = run(tmp_path, "-c", str(tmp_path / "bad.yaml"))

    assert done.returncode == 1
    assert "default" in done.stderr
    assert done.stdout == ""


def test_a_taken_port_is_a_clear_error(tmp_path: Path) -> None:
    with RunningConsole(tmp_path / "state") as console:
        done = run(tmp_path, "--port", str(console.port))

        assert done.returncode == 2
        assert "cannot be used" in done.stderr


def test_json_is_json(tmp_path: Path) -> None:
    with RunningConsole(tmp_path / "state") as console:
        assert json.dumps({"url": console.link, "port": console.port})
