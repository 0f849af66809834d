"""The proxy command: its flags, its exit codes, and what it prints where."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.support.http_gate import config_for
from tests.support.http_upstream import HttpUpstream, free_port, text_result
from tests.support.proxy_process import ProxyProcess, environment, proxy_command
from tests.support.waiting import within


def _run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        proxy_command(*arguments),
        env=environment(directory),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.requirement("FR9", "FR25", "FR29")
@pytest.mark.parametrize("text", ["", "nonsense: [", "schema: 1\n", "schema: 1\ndefault: maybe\n"])
def test_a_wrong_config_is_exit_code_1_and_nothing_starts(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    done = _run(tmp_path, "-c", "bad.yaml", "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert not (tmp_path / "state" / "audit.jsonl").exists()


def test_a_missing_config_is_exit_code_1(tmp_path: Path) -> None:
    done = _run(tmp_path, "-c", "missing.yaml", "--stdio", "--state-dir", str(tmp_path / "state"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "missing.yaml" in done.stderr


def test_a_listener_for_others_without_authentication_is_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(config_for("http://127.0.0.1:9/mcp"))
    done = _run(tmp_path, "-c", "c.yaml", "--listen", "0.0.0.0:0")
    assert done.returncode == 1
    assert "listen.auth" in done.stderr


def test_usage_errors_are_exit_code_2_and_off_stdout(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(config_for("http://127.0.0.1:9/mcp"))
    for arguments in (
        ["--nonsense"],
        ["-c", "c.yaml", "--stdio", "--listen", "127.0.0.1:1", "--state-dir", "state"],
    ):
        done = _run(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (2, "")


def test_a_command_is_answered_with_the_way_to_run_it(tmp_path: Path) -> None:
    done = _run(tmp_path, "--listen", "127.0.0.1:0", "--", "npx", "-y", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "thoughtgate servers add --id NAME -- npx -y x" in done.stderr


@pytest.mark.requirement("FR29")
def test_a_server_that_cannot_be_started_is_exit_code_2(tmp_path: Path) -> None:
    text = "schema: 1\ndefault: deny\nservers:\n  kid: {command: /nonexistent/server}\n"
    (tmp_path / "c.yaml").write_text(text)
    done = _run(tmp_path, "-c", "c.yaml", "--listen", "127.0.0.1:0")
    assert done.returncode == 2
    assert "could not be started" in done.stderr


@pytest.mark.requirement("S004-SETTINGS")
def test_the_environment_names_listener_upstream_and_limits(tmp_path: Path) -> None:
    with HttpUpstream(lambda received: text_result(received, "x")) as upstream:
        environ = {
            "THOUGHTGATE_LISTEN": f"127.0.0.1:{free_port()}",
            "THOUGHTGATE_UPSTREAM": upstream.url,
            "THOUGHTGATE_MAX_REQUEST_BODY_BYTES": "1500",
        }
        config = tmp_path / "c.yaml"
        config.write_text("schema: 1\ndefault: forward\n")
        with ProxyProcess(tmp_path, ["-c", str(config)], environ=environ) as proxy:
            import http.client

            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
            headers = {"content-type": "application/json"}
            connection.request("POST", "/mcp", b" " * 2000, headers)
            assert connection.getresponse().status == 413
            connection.close()
            assert proxy.stop() == 0


def test_the_record_may_go_to_stdout_where_the_agent_is_on_http(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(config_for(f"http://127.0.0.1:{free_port()}/mcp"))
    arguments = ["-c", str(config), "--listen", "127.0.0.1:0", "--audit", "stdout"]
    with ProxyProcess(tmp_path, arguments) as proxy:
        assert proxy.stop() == 0
        assert proxy.process.stdout is not None
        lines = within(proxy.process.stdout.read).splitlines()
        types = [json.loads(line)["type"] for line in lines]
        assert (types[0], types[-1]) == ("run_start", "run_end")
        assert set(types[1:-1]) <= {"server_unreachable"}
    refused = _run(
        tmp_path, "-c", str(config), "--stdio", "--audit", "stdout", "--state-dir", "state"
    )
    assert (refused.returncode, refused.stdout) == (2, "")


def test_help_shows_the_ways_to_run_it(tmp_path: Path) -> None:
    done = _run(tmp_path, "--help")
    assert done.returncode == 0
    for word in ("--server", "--stdio", "--listen", "--upstream", "--workers", "Examples"):
        assert word in done.stdout
