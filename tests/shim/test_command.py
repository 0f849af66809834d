"""``thoughtgate shim`` as a command: its arguments, its exit codes, and a clean stdout."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.commands import ROOT, sample_server, shim, thoughtgate
from tests.support.frames import line as frame
from tests.support.frames import request
from tests.support.shim_peer import ALLOW_ALL, ShimPeer
from tests.support.waiting import PATIENCE_S

from thoughtgate.errors import UsageError
from thoughtgate.gate.run_file import run_path
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.shim import command as module
from thoughtgate.shim.command import Options, parse_options

PING = frame(request(1, "ping")) + b"\n"


def _run(
    tmp_path: Path, *args: str, data: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    full = {**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"), **(env or {})}
    return subprocess.run(
        thoughtgate("shim", "--state-dir", str(tmp_path / "state"), *args),
        input=data,
        capture_output=True,
        env=full,
        cwd=tmp_path,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--", "a", "--help"], Options(("a", "--help"))),
        (["--server-id", "s", "--", "a"], Options(("a",), server="s")),
        (["--server-name=s", "--", "a"], Options(("a",), server="s")),
        (["-c", "f", "--profile", "development", "--", "a"], Options(("a",), config="f", profile="development")),
        (["--state-dir", "/s", "--", "a"], Options(("a",), state_dir="/s")),
        (["--config=f=g", "--audit", "stderr", "--", "a"], Options(("a",), config="f=g", audit="stderr")),
        (["--run", "k", "--governance-endpoint", "u", "--", "a"], Options(("a",), run="k", endpoint="u")),
        (["--", "a", "--", "b"], Options(("a", "--", "b"))),
        (["--run", "k", "--entry", "e", "--", "a"], Options(("a",), run="k", entry="e")),
        (["--skip", "3", "--", "thoughtgate", "shim", "--", "a", "b"], Options(("a", "b"))),
        (["-h"], Options((), help=True)),
        (["--server-id", "s", "--help", "--", "a"], Options((), help=True)),
    ],
)  # fmt: skip
def test_arguments_are_read(arguments: list[str], options: Options) -> None:
    assert parse_options(arguments) == options


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--"],
        ["--skip", "1", "--", "a"],
        ["--skip", "-1", "--", "a"],
        ["--skip", "\u0663", "--", "a"],
        ["echo"],
        ["--server-id"],
        ["--server-id", "--", "a"],
        ["--server-id=", "--", "a"],
        ["--no-such", "--", "a"],
        ["--profile", "staging", "--", "a"],
        ["-c", "f"],
    ],
)
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_options(arguments)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["--no-such-flag"], 2),
        (["--help"], 0),
        (["-h"], 0),
        (["--profile", "x", "--", "true"], 2),
        (["-c", "missing.yaml", "--", "true"], 1),
        (["--audit", "stdout", "--", "true"], 2),
        (["--audit", "/dev/stdout", "--", "true"], 2),
        (["--audit", "/proc/self/fd/1", "--", "true"], 2),
        (["--audit", "/dev/full", "--", "true"], 2),
    ],
)
def test_nothing_but_mcp_ever_stands_on_stdout(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    done = _run(tmp_path, *arguments)

    assert (done.stdout, done.returncode) == (b"", code)
    assert done.stderr


def test_a_crash_of_the_gate_keeps_stdout_clean_and_is_no_config_error(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import thoughtgate.core.session as s\n"
        "def boom(self, event): raise RuntimeError('boom')\n"
        "s.Session.receive = boom\n"
    )
    (tmp_path / "c.yaml").write_text(ALLOW_ALL)
    env = {"PYTHONPATH": str(tmp_path)}
    args = ["-c", "c.yaml", "--", *sample_server("--ignore-eof")]
    done = _run(tmp_path, *args, data=PING, env=env)

    assert (done.stdout, done.returncode) == (b"", 2)
    assert b"RuntimeError: boom" in done.stderr
    assert b'"status":"FAILED"' in (tmp_path / "state" / "audit.jsonl").read_bytes()


BAD = """\
schema: 1
default: maybe
unknown_key: 1
rules:
  - {tool: x, action: explode}
"""


@pytest.mark.promise("no-accidental-freedom")
def test_a_wrong_config_tells_every_problem_and_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    flag = tmp_path / "started"
    done = _run(tmp_path, "-c", "bad.yaml", "--", "touch", str(flag), data=PING)

    assert (done.returncode, done.stdout) == (1, b"")
    for key in (b"default", b"unknown_key", b"rules[0].action"):
        assert key in done.stderr
    assert not flag.exists()
    assert not (tmp_path / "state" / "audit.jsonl").exists()


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_an_empty_or_unreadable_config_is_not_an_open_gate(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    done = _run(tmp_path, "-c", "bad.yaml", "--", "true")

    assert (done.returncode, done.stdout) == (1, b"")


def test_a_config_that_sends_the_record_to_stdout_is_refused(tmp_path: Path) -> None:
    text = ALLOW_ALL + "listen: {transport: http}\naudit: {sink: stdout}\n"
    (tmp_path / "c.yaml").write_text(text)
    done = _run(tmp_path, "-c", "c.yaml", "--", "true", data=PING)

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"audit.sink" in done.stderr


def test_a_missing_secret_of_the_record_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(ALLOW_ALL + "audit: {sign_key_env: NOT_SET_HERE}\n")
    done = _run(tmp_path, "-c", "c.yaml", "--", "touch", "started")

    assert done.returncode == 1
    assert b"NOT_SET_HERE" in done.stderr
    assert not (tmp_path / "started").exists()


def test_without_a_config_the_starter_policy_is_announced(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, None) as peer:
        assert peer.ask(request(1, "ping"))["result"] == {}
        assert "starter policy applies" in peer.stderr
        peer.finish()
        assert peer.record()[0]["run"]["policy"]["policy_id"] == "starter"


def test_a_server_without_an_id_is_called_by_its_command(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(ALLOW_ALL)
    done = _run(tmp_path, "-c", "c.yaml", "--", "/bin/cat")

    assert done.returncode == 0
    assert b'"server_name":"cat"' in (tmp_path / "state" / "audit.jsonl").read_bytes()


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_descriptor_does_not_become_something_else(tmp_path: Path, closed: int) -> None:
    """A record opened as descriptor 1 would have MCP frames in it."""
    (tmp_path / "c.yaml").write_text(ALLOW_ALL)
    command = shim(sample_server(), "-c", str(tmp_path / "c.yaml"))
    code = f"import os,sys; os.close({closed}); os.execv(sys.argv[1], sys.argv[1:])"
    env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        input=b"" if closed == 0 else PING,
        capture_output=True,
        env=env,
        check=False,
        timeout=30,
    )
    text = (tmp_path / "state" / "audit.jsonl").read_text()

    assert done.returncode == 0
    assert all(line.startswith('{"v":') for line in text.splitlines())
    assert done.stdout == (b'{"jsonrpc":"2.0","id":1,"result":{}}\n' if closed == 2 else b"")


def test_a_stderr_that_nobody_reads_does_not_stop_the_traffic(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 65536)
    except BlockingIOError:
        os.set_blocking(writer, True)
    config = ALLOW_ALL.replace("forward", "deny")
    (tmp_path / "c.yaml").write_text(config)
    process = subprocess.Popen(
        shim(sample_server(), "-c", str(tmp_path / "c.yaml"), "--profile", "development"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=writer,
        env={**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state")},
    )
    try:
        data = b"".join(
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}\n' % n
            for n in range(50)
        )
        out, _ = process.communicate(data, timeout=20)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        os.close(reader)
        os.close(writer)

    assert out.count(b"\n") == 50
    assert process.returncode == 0


def test_the_module_is_the_same_as_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "thoughtgate", "shim", "--help"],
        capture_output=True,
        check=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
    )

    assert (done.stdout, b"Usage: thoughtgate shim" in done.stderr) == (b"", True)


HEAVY = {"asyncio", "pydantic", "cedarpy", "orjson", "dataclasses", "subprocess", "threading", "http",
         "typer", "ruamel", "pathlib", "sqlite3", "ssl"}  # fmt: skip


def test_a_shim_that_asks_the_service_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "import thoughtgate.cli.entry, thoughtgate.shim.command\n"
        "import thoughtgate.shim.service_authority\n"
        "print('\\n'.join(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=PATIENCE_S,
    )

    assert HEAVY.isdisjoint(done.stdout.split())


def test_a_shim_waits_without_working(tmp_path: Path) -> None:
    """An idle shim sleeps: no wake-up while nothing happens."""
    with ShimPeer(tmp_path) as peer:
        peer.ask(request(1, "ping"))

        def switches() -> int:
            text = Path(f"/proc/{peer.pid}/status").read_text()
            return sum(
                int(line.split()[1]) for line in text.splitlines() if "ctxt_switches" in line
            )

        before = switches()
        time.sleep(0.5)  # a lull, in which nothing may happen
        assert switches() - before < 10


@pytest.mark.promise("agent-environment")
def test_the_environment_does_not_choose_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "account_home", lambda: "/home/ann")
    environ = {"HOME": "/evil", "XDG_STATE_HOME": "/evil", "THOUGHTGATE_STATE_DIR": "/evil"}
    run = "runs/k.json"

    told = module._as_told(Options(("a",), run="k"), environ)
    assert run_path("k", told) == f"{state_directory({'HOME': '/home/ann'})}/{run}"
    told = module._as_told(Options(("a",), run="k", state_dir="/state"), environ)
    assert run_path("k", told) == f"/state/{run}"
    assert module._as_told(Options(("a",), run="/state/k.json"), environ) is environ
    with pytest.raises(UsageError, match="absolute"):
        parse_options(["--state-dir", "state", "--", "a"])
