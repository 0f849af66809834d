"""The ``serve`` command: its options, its exit codes, and a stdout with nothing but MCP."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.support.commands import thoughtgate
from tests.support.frames import call, initialize, request
from tests.support.hub import Served, sample, serving, write_config


def run(tmp_path: Path, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {
        "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"),
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
    }
    return subprocess.run(
        thoughtgate("serve", "--state-dir", str(tmp_path / "state"), *words),
        input=stdin,
        capture_output=True,
        env=env,
        cwd=tmp_path,
        timeout=20,
        check=False,
    )


@pytest.mark.requirement("S002-10")
@pytest.mark.parametrize(
    "words", [["--stdio", "--help"], ["--stdio", "--nonsense"], ["--stdio", "--namespace"]]
)
def test_help_and_usage_never_reach_stdout_in_stdio_mode(tmp_path: Path, words: list[str]) -> None:
    done = run(tmp_path, *words)

    assert done.stdout == b""
    assert b"--" in done.stderr


@pytest.mark.requirement("S002-03")
def test_a_missing_or_wrong_config_exits_with_1_before_anything_starts(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("schema: 1\ndefault: maybe\nservers: {a.b: {command: x}}\n")

    absent = run(tmp_path, "--stdio", "-c", "absent.yaml")
    broken = run(tmp_path, "--stdio", "--config", str(wrong))

    assert (absent.returncode, broken.returncode) == (1, 1)
    assert absent.stdout == broken.stdout == b""
    assert b"default" in broken.stderr
    assert b"servers.a.b" in broken.stderr


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ("{}", b"no server is configured"),
        (
            "{a: {command: x}, b: {command: x}}\nnamespaces: {one: [a], two: [b]}",
            b"the choices are: one, two",
        ),
    ],
)
def test_a_config_that_serves_nobody_is_warned_of(
    tmp_path: Path, servers: str, told: bytes
) -> None:
    (tmp_path / "c.yaml").write_text(f"schema: 1\ndefault: deny\nservers: {servers}\n")
    assert told in run(tmp_path, "--stdio", "-c", "c.yaml").stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--stdio", "--http", "127.0.0.1:0"],
        ["--http", "nowhere"],
        ["--http", "127.0.0.1:99999"],
        ["--stdio", "--log-level", "loud"],
    ],
)
def test_contradicting_or_wrong_options_exit_with_2(tmp_path: Path, words: list[str]) -> None:
    done = run(tmp_path, *words)

    assert done.returncode == 2
    assert done.stdout == b""


def test_a_record_on_stdout_is_refused_in_stdio_mode(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"one": sample()})

    done = run(tmp_path, "--stdio", "-c", str(config), "--audit", "stdout")

    assert done.returncode == 1
    assert b"audit" in done.stderr


def test_stdio_is_the_default_and_files_do_for_pipes(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"one": sample()})
    lines = [initialize(0), call(1, "one.echo", {"text": "from a file"})]
    (tmp_path / "in").write_text("".join(json.dumps(line) + "\n" for line in lines))
    env = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        done = subprocess.run(
            thoughtgate("serve", "-c", str(config), "--state-dir", str(tmp_path / "state")),
            stdin=source,
            stdout=target,
            stderr=subprocess.PIPE,
            env=env,
            timeout=20,
            check=False,
        )

    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert done.returncode == 0
    assert [answer["id"] for answer in answers] == [0, 1]


@pytest.mark.requirement("S002-06", "S002-45", "S002-46", "S002-47", "S002-48", "S002-49")
def test_the_log_goes_to_stderr_by_level(tmp_path: Path) -> None:
    servers = {"one": sample(), "bad": {"command": "/nonexistent"}}
    loud, quiet = tmp_path / "loud", tmp_path / "quiet"
    for folder, level in ((loud, "debug"), (quiet, "error")):
        folder.mkdir()
        with serving(
            folder, servers, "--log-level", level, telemetry={"log_format": "json"}
        ) as hub:
            hub.open()
            hub.text(1, "one.echo", {"text": "x"})
            hub.kind(2, "bad.echo")
        lines = [json.loads(line) for line in hub.stderr.splitlines()]
        messages = [line["message"] for line in lines]
        if level == "error":
            assert messages == []
            continue
        assert any("request tools/call" in text for text in messages)
        assert "server running" in messages
        judged = next(line for line in lines if line["message"] == "call judged")
        assert (judged["server_id"], judged["tool"]) == ("one", "echo")
        assert judged["method"] == "tools/call"
        assert [line["message_id"] for line in lines if "message_id" in line] == [0, 1, "1", 2, "2"]
        failed = next(
            line for line in lines if line["level"] == "warn" and line.get("server_id") == "bad"
        )
        assert failed


@pytest.mark.requirement("S002-08")
def test_the_version_is_printed() -> None:
    done = subprocess.run(thoughtgate("--version"), capture_output=True, timeout=20, check=True)

    assert done.stdout.startswith(b"thoughtgate ")


@pytest.mark.requirement("S002-05")
def test_pasted_entries_work_as_they_are(tmp_path: Path) -> None:
    entry = {**sample("--tools", "env"), "type": "stdio", "cwd": ".", "env": {"COLOUR": "blue"}}
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({"schema": 1, "default": "forward", "mcpServers": {"one": entry}}))
    with Served(config, tmp_path / "state", MY_TOKEN="t") as hub:
        hub.open()
        seen = json.loads(hub.text(1, "one.env"))

    assert seen["COLOUR"] == "blue"
    assert not any(name.startswith("THOUGHTGATE_") for name in seen)


def test_without_a_config_the_starter_policy_applies_and_is_announced(tmp_path: Path) -> None:
    done = run(tmp_path, "--stdio", stdin=json.dumps(request(1, "tools/list")).encode() + b"\n")

    names = [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]]
    assert done.returncode == 0
    assert "thoughtgate.servers_list" in names
    assert b"starter policy" in done.stderr
