"""``thoughtgate install``: shims for good, through the real command and real servers."""

import itertools
import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import AGENT, sample_server, thoughtgate
from tests.support.frames import call
from tests.support.installs import FILES, commands_of, write_agent
from tests.support.stdio_peer import StdioPeer
from tests.support.warm_command import run_warm
from tests.support.wraps import HOLD, Machine, entry, kind_of, text_of


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, HOLD)


def _installed(machine: Machine, *words: str) -> list[dict[str, Any]]:
    done = machine.run("install", "--json", *words)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kind", FILES)
def test_a_server_of_every_agent_is_put_behind_the_gate_and_back(
    machine: Machine, kind: str
) -> None:
    path, original = write_agent(machine, kind, sample_server("--name", "x y"))

    (report,) = _installed(machine, kind)

    assert report["files"] == [{"path": str(path), "servers": ["sample"], "changed": True}]
    assert report["not_governed"] == report["not_started"] == report["problems"] == []
    (command,) = commands_of(machine, kind).values()
    before = command[: command.index("--")]
    own = ["shim", "--server-id", "sample", "-c", str(machine.policy)]
    assert before[-7:] == [*own, "--state-dir", str(machine.state)]
    assert command[command.index("--") + 1 :] == sample_server("--name", "x y")
    written = path.read_bytes()
    assert _installed(machine, kind)[0]["files"][0]["changed"] is False
    assert path.read_bytes() == written

    assert machine.run("uninstall", kind).returncode == 0
    assert path.read_bytes() == original
    assert machine.left_in(path.parent) == []
    assert list((machine.state / "installs").rglob("*.json")) == []


@pytest.mark.parametrize("kind", ["codex", "cursor", "opencode"])
def test_an_installed_server_is_governed_by_the_config_that_was_named(
    machine: Machine, kind: str
) -> None:
    write_agent(machine, kind, sample_server())
    _installed(machine, kind)
    (command,) = commands_of(machine, kind).values()
    # The agent's environment names another config and state directory; argv wins.
    told = {"THOUGHTGATE_CONFIG": "/nowhere", "THOUGHTGATE_STATE_DIR": "/nowhere", "HOME": "/"}

    with StdioPeer([*AGENT, *command], env=told) as peer:
        assert text_of(peer.ask(call(1, "echo", {"text": "hello"}))) == "hello"
        assert kind_of(peer.ask(call(2, "divide", {"a": 1, "b": 1}))) == "governance_denied"
        assert peer.finish() == 0

    assert len(machine.events("tool_call_decision")) == 2


def test_without_an_agent_all_that_have_a_config_are_installed(machine: Machine) -> None:
    kinds = ["claude-code", "cursor", "codex"]
    originals = dict(write_agent(machine, kind, sample_server()) for kind in kinds)

    reports = _installed(machine)

    # Some agents also read the files of others.
    assert {one["agent"] for one in reports} >= set(kinds)
    assert all(path.read_bytes() != text for path, text in originals.items())
    assert machine.run("uninstall").returncode == 0
    assert all(path.read_bytes() == text for path, text in originals.items())


def test_a_machine_without_agents_is_told_so(machine: Machine) -> None:
    done = machine.run("install")

    assert done.returncode == 0
    assert "no MCP servers found" in done.stderr


def test_a_new_server_is_taken_in_by_installing_again(machine: Machine) -> None:
    path, _ = write_agent(machine, "claude-code", sample_server())
    _installed(machine)
    document = json.loads(path.read_text("utf-8"))
    document["mcpServers"]["new"] = entry()
    path.write_text(json.dumps(document), "utf-8")
    assert "new" in machine.run("status").stdout
    assert machine.run("doctor").returncode == 1

    report = _installed(machine)[0]

    assert report["files"][0]["servers"] == ["new", "sample"]
    assert all("shim" in command for command in commands_of(machine, "claude-code").values())
    healthy = machine.run("doctor")
    assert healthy.returncode == 0
    assert "Claude Code has 2 servers behind the gate for good" in healthy.stdout
    machine.run("uninstall")
    document["mcpServers"]["sample"] = entry()
    assert json.loads(path.read_text("utf-8")) == document


def test_the_servers_of_all_projects_and_disabled_ones_are_included(machine: Machine) -> None:
    path = machine.home / ".claude.json"
    document = {"projects": {"/far/away": {"mcpServers": {"there": entry(disabled=True)}}}}
    path.write_text(json.dumps(document), "utf-8")

    (report,) = _installed(machine, "claude")

    assert report["files"][0]["servers"] == ["there"]


def test_variables_for_the_server_do_not_reach_the_shim(machine: Machine) -> None:
    variables = {"LD_LIBRARY_PATH": "/mine", "HOME": "/other", "PLAIN": "1"}
    path = machine.home / FILES["cursor"]
    machine.write_config({"sample": entry(env=variables)}, path=path)
    original = path.read_bytes()
    _installed(machine)
    document = json.loads(path.read_text("utf-8"))["mcpServers"]["sample"]
    (command,) = commands_of(machine, "cursor").values()

    assert document["env"] == {"LD_LIBRARY_PATH": "", "HOME": "", "PLAIN": "1"}
    (kept,) = (machine.state / "installs" / "entries").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    with StdioPeer([*AGENT, *command], env=document["env"]) as peer:
        peer.ask(call(1, "echo", {"text": "hello"}))
        server = int(machine.wait_for_event("server_started")["server"]["pid"])
        environ = Path(f"/proc/{server}/environ").read_bytes().split(b"\0")
        assert {b"LD_LIBRARY_PATH=/mine", b"HOME=/other", b"PLAIN=1"} <= set(environ)
        peer.finish()
    assert machine.run("doctor").returncode == 0

    machine.run("uninstall")
    assert path.read_bytes() == original
    assert not kept.exists()


def test_a_server_whose_variables_are_unknown_is_named_and_does_not_start(
    machine: Machine,
) -> None:
    path = machine.home / FILES["cursor"]
    machine.write_config({"sample": entry(env={"LD_PRELOAD": "${env:NOT_SET}"})}, path=path)

    report = _installed(machine)[0]

    assert report["not_started"] == [
        "sample (the variable LD_PRELOAD refers to NOT_SET, which is not set)"
    ]
    (command,) = commands_of(machine, "cursor").values()
    with StdioPeer(command) as peer:
        assert peer.wait() == 2
        assert "this server is not started" in peer.stderr


def test_a_remote_server_is_reached_through_a_proxy_behind_a_shim(machine: Machine) -> None:
    path = machine.home / FILES["cursor"]
    headers = {"Authorization": "Bearer hush-hush"}
    machine.write_config(
        {
            "far": {"url": "https://example.com/mcp", "headers": headers},
            "own": {"url": "https://example.com/${env:WHERE}"},
        },
        path=path,
    )

    report = _installed(machine)[0]

    assert report["files"][0]["servers"] == ["far"]
    assert [one["server"] for one in report["not_governed"]] == ["own"]
    command = commands_of(machine, "cursor")["far"]
    assert "hush" not in str(command)
    kept = Path(command[command.index("proxy") + 3])
    assert kept.stat().st_mode & 0o777 == 0o600
    assert json.loads(kept.read_text("utf-8"))["servers"]["far"]["headers"] == headers
    assert machine.run("unwrap").returncode == 0
    assert kept.exists()
    machine.run("uninstall")
    assert not kept.exists()


def test_calls_to_a_remote_server_are_judged_and_recorded(machine: Machine) -> None:
    upstream = machine.top / "upstream.json"
    program, *args = sample_server()
    settings = {
        "schema": 1,
        "default": "forward",
        "servers": {"sample": {"command": program, "args": args}},
        "listen": {"transport": "http"},
    }
    upstream.write_text(json.dumps(settings), "utf-8")
    listening = thoughtgate("proxy", "-c", str(upstream), "--listen", "127.0.0.1:0")
    with StdioPeer(listening, env={"THOUGHTGATE_STATE_DIR": str(machine.top / "other")}) as http:
        http.wait_for_stderr("listening on")
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", http.stderr)
        assert found is not None, http.stderr
        path = machine.home / FILES["cursor"]
        machine.write_config({"far": {"url": found[0]}}, path=path)
        _installed(machine)
        (command,) = commands_of(machine, "cursor").values()
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        hello["clientInfo"] = {"name": "test", "version": "1"}
        with StdioPeer([*AGENT, *command]) as peer:
            greeting = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
            assert "result" in peer.ask(greeting)
            peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            assert text_of(peer.ask(call(1, "echo", {"text": "hello"}))) == "hello"
            assert kind_of(peer.ask(call(2, "divide", {"a": 1, "b": 1}))) == "governance_denied"
            peer.finish()

    assert {one["server_name"] for one in machine.events("tool_call_decision")} == {"far"}


def test_a_shim_that_somebody_wrote_by_hand_is_replaced_by_ours_and_restored(
    machine: Machine,
) -> None:
    by_hand = thoughtgate("shim", "--server-id", "mine", "--", *sample_server())
    path, original = write_agent(machine, "cursor", by_hand)

    _installed(machine)

    (command,) = commands_of(machine, "cursor").values()
    with StdioPeer([*AGENT, *command]) as peer:
        assert kind_of(peer.ask(call(1, "divide", {"a": 1, "b": 1}))) == "governance_denied"
        peer.finish()
    assert {one["server_name"] for one in machine.events("tool_call_decision")} == {"sample"}
    machine.run("uninstall")
    assert path.read_bytes() == original


def test_a_dry_run_shows_the_difference_and_changes_nothing(machine: Machine) -> None:
    path, original = write_agent(machine, "cursor", sample_server())

    done = machine.run("install", "--dry-run")

    assert done.returncode == 0
    assert f"+++ {path} (installed)" in done.stdout
    assert '"shim"' in done.stdout
    assert path.read_bytes() == original
    assert not (machine.state / "installs").exists()
    _installed(machine)
    assert machine.run("install", "--dry-run").stdout == ""


def test_a_config_that_is_tracked_by_git_is_named(machine: Machine) -> None:
    path = machine.project / ".cursor" / "mcp.json"
    machine.write_config({"sample": entry()}, path=path)
    for words in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *words], cwd=machine.project, check=True, timeout=30)

    assert f"{path} is tracked by git" in machine.run("install", "cursor").stderr


def test_an_invalid_policy_or_agent_changes_nothing(machine: Machine) -> None:
    path, original = write_agent(machine, "cursor", sample_server())

    assert machine.run("install", "nobody").returncode == 2
    assert machine.run("install", "custom").returncode == 2
    machine.policy.write_text("schema: 1\n", "utf-8")
    assert machine.run("install").returncode == 1
    assert path.read_bytes() == original


def test_a_broken_config_of_one_agent_does_not_stop_the_others(machine: Machine) -> None:
    broken, _ = write_agent(machine, "cursor", sample_server())
    broken.write_text("{", "utf-8")
    path, original = write_agent(machine, "codex", sample_server())

    done = machine.run("install")

    assert done.returncode == 2
    assert f"Cursor: {broken}" in done.stderr
    assert path.read_bytes() != original


def test_while_an_agent_is_wrapped_its_config_is_left_alone(machine: Machine) -> None:
    original = machine.write_sample()
    told = ("custom", "--config-path", str(machine.config))
    with machine.wrap() as run:
        run.open()
        done = machine.run("install", *told)
        assert done.returncode == 2
        assert f"process {run.peer.pid}" in done.stderr
        assert run.finish() == 0
    assert machine.config.read_bytes() == original


def test_wrap_uses_its_own_policy_on_an_installed_config_and_leaves_it_installed(
    machine: Machine,
) -> None:
    original = machine.write_config({"sample": entry(env={"LD_LIBRARY_PATH": "/mine"})})
    _installed(machine, "custom", "--config-path", str(machine.config))
    installed = machine.config.read_bytes()
    other = machine.top / "other.yaml"
    other.write_text("schema: 1\ndefault: forward\nrules: [{tool: echo, action: deny}]\n", "utf-8")

    with machine.wrap("-c", str(other)) as run:
        run.open()
        assert kind_of(run.call("echo", {"text": "x"})) == "governance_denied"
        assert text_of(run.call("add", {"a": 1, "b": 1})) == "2"
        environ = Path(f"/proc/{run.pid_of_server()}/environ").read_bytes().split(b"\0")
        assert b"LD_LIBRARY_PATH=/mine" in environ
        refused = machine.run("uninstall")
        assert refused.returncode == 2
        assert f"process {run.peer.pid}" in refused.stderr
        assert run.finish() == 0

    assert machine.config.read_bytes() == installed
    assert machine.run("uninstall").returncode == 0
    assert machine.config.read_bytes() == original


def test_two_installations_at_once_end_like_one(machine: Machine) -> None:
    kinds = ["claude-code", "cursor", "codex"]
    originals = dict(write_agent(machine, kind, sample_server()) for kind in kinds)
    env = {**os.environ, **machine.env}
    both = [
        subprocess.Popen(
            thoughtgate("install"), env=env, cwd=machine.project, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = [one.communicate(timeout=60)[1] for one in both]

    assert [one.returncode for one in both] == [0, 0], said
    for path in originals:
        assert path.read_bytes().count(b'"shim"') == 1
    machine.run("uninstall")
    assert all(path.read_bytes() == text for path, text in originals.items())


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("cursor", "nothing"),
        pytest.param("codex", "nothing", marks=pytest.mark.long),
        pytest.param("cursor", "installed", marks=pytest.mark.long),
        pytest.param("codex", "installed", marks=pytest.mark.long),
    ],
)
def test_an_installation_that_is_killed_at_any_step_can_be_undone_or_repeated(
    machine: Machine, kind: str, first: str
) -> None:
    path, original = write_agent(machine, kind, sample_server())
    env = {**os.environ, **machine.env}
    for step in itertools.count(1):
        if first == "installed":
            machine.run("install", "--profile", "development")
        done = run_warm("install", kind, env=env, cwd=machine.project, kill_at=step)
        if done.returncode == 0:
            break
        assert done.returncode == -9
        _check_recoverable(machine, path, original, by=step % 2)
    assert step > 10


@pytest.mark.long
def test_a_kill_leaves_no_variables_or_urls_behind(machine: Machine) -> None:
    path = machine.home / FILES["windsurf"]
    servers = {"sample": entry(env={"HOME": "/x"}), "far": {"url": "https://example.com/mcp"}}
    original = machine.write_config(servers, path=path)
    env = {**os.environ, **machine.env}
    for step in itertools.count(1):
        done = run_warm("install", env=env, cwd=machine.project, kill_at=step)
        if done.returncode == 0:
            break
        _check_recoverable(machine, path, original, by=step % 2, servers=2)
        for folder in ("installs/entries", "remotes"):
            assert list((machine.state / folder).glob("*")) == []


def _check_recoverable(
    machine: Machine, path: Path, original: bytes, *, by: int, servers: int = 1
) -> None:
    """Undo, or install again and then undo."""
    if by:
        assert machine.run("install").returncode == 0
        assert path.read_bytes().count(b'"shim"') == servers
        assert b"development" not in path.read_bytes()
    assert machine.run("uninstall").returncode == 0
    assert path.read_bytes() == original
    assert machine.left_in(path.parent) == []


def test_a_file_that_the_agent_keeps_locked_is_not_said_to_be_installed(machine: Machine) -> None:
    path, original = write_agent(machine, "claude-code", sample_server())
    lock = path.with_name(".claude.json.lock")
    lock.mkdir()
    later = time.time() + 3600  # never stale, however slow the machine
    os.utime(lock, (later, later))

    done = machine.run("install")

    assert done.returncode == 2
    assert "is being written by the agent; try again" in done.stderr
    assert "behind the gate" not in done.stderr
    assert path.read_bytes() == original
    lock.rmdir()
    assert machine.run("uninstall").returncode == 0


def test_an_agents_own_lock_is_respected(machine: Machine) -> None:
    path, original = write_agent(machine, "claude-code", sample_server())
    lock = path.with_name(".claude.json.lock")
    lock.mkdir()
    release = threading.Timer(0.5, lock.rmdir)
    release.start()

    _installed(machine, "claude-code")

    release.join(timeout=10)
    assert path.read_bytes() != original
