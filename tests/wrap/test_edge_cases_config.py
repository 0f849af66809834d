"""Edge cases of seed 000, part one: the agent's config files, through the real ``wrap``."""

import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from tests.support.commands import thoughtgate
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, WrappedAgent, entry, text_of

from thoughtgate.version import __version__


@pytest.mark.requirement("EC-STDIO-001")
def test_ec_stdio_001_a_missing_config_is_named_with_its_path(machine: Machine) -> None:
    done = machine.wrap_once()

    assert done.returncode == 1
    assert str(machine.config) in done.stderr
    assert not machine.record.exists()


@pytest.mark.requirement("EC-STDIO-001")
def test_ec_stdio_001_all_expected_places_are_listed(machine: Machine) -> None:
    done = machine.run("wrap", "--", "cursor")

    assert done.returncode == 1
    assert str(machine.home / ".cursor" / "mcp.json") in done.stderr
    assert str(machine.project / ".cursor" / "mcp.json") in done.stderr


@pytest.mark.requirement("EC-STDIO-002")
def test_ec_stdio_002_an_empty_config_is_a_parse_error(machine: Machine) -> None:
    machine.config.write_bytes(b"")

    done = machine.wrap_once()

    assert done.returncode == 1
    assert str(machine.config) in done.stderr
    assert "empty" in done.stderr
    assert machine.config.read_bytes() == b""


@pytest.mark.requirement("EC-STDIO-003")
def test_ec_stdio_003_a_config_without_servers_is_refused(machine: Machine) -> None:
    machine.write_config({})

    done = machine.wrap_once()

    assert done.returncode == 1
    assert "No MCP servers found in config" in done.stderr


@pytest.mark.requirement("EC-STDIO-004")
def test_ec_stdio_004_a_config_with_disabled_servers_only_is_refused(machine: Machine) -> None:
    machine.write_sample(disabled=True)

    done = machine.wrap_once()

    assert done.returncode == 1
    assert "All MCP servers are disabled" in done.stderr


@pytest.mark.requirement("EC-STDIO-005", "S000-F-005")
def test_ec_stdio_005_a_second_wrap_that_cannot_share_the_config_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = machine.write_sample()
    with machine.wrap() as first:
        first.open()

        other = Path(f"{machine.state}-2")
        with monkeypatch.context() as patch:
            patch.setattr(machine, "state", other)
            second = machine.wrap_once()

        assert second.returncode == 2
        assert str(machine.config) in second.stderr
        assert f"process {first.peer.pid}" in second.stderr
        # The one that came first is not disturbed: it still starts servers and calls tools.
        assert text_of(first.call("echo", {"text": "still here"})) == "still here"
        first.order("open")
        assert first.finish() == 0
    assert machine.config.read_bytes() == original


@pytest.mark.requirement("EC-STDIO-006")
def test_ec_stdio_006_a_stale_backup_is_overwritten_with_a_warning(machine: Machine) -> None:
    original = machine.write_sample()
    backup = machine.config.with_name("mcp.json.thoughtgate-backup")
    backup.write_bytes(b"{}")

    done = machine.wrap_once()

    assert done.returncode == 0
    assert "overwrote the backup of an earlier wrap" in done.stderr
    assert machine.config.read_bytes() == original
    assert not backup.exists()


@pytest.mark.requirement("EC-STDIO-007", "S000-F-005", "S000-F-020")
def test_ec_stdio_007_a_config_that_cannot_be_written_stays_as_it_was(machine: Machine) -> None:
    original = machine.write_sample()
    # A backup that is a directory cannot be replaced: the same as a missing permission, for root too.
    blocker = machine.config.with_name("mcp.json.thoughtgate-backup")
    (blocker / "inside").mkdir(parents=True)

    done = machine.wrap_once(agent=["touch", str(machine.top / "ran")])

    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert machine.config.read_bytes() == original
    assert not (machine.top / "ran").exists()


@pytest.mark.requirement("EC-STDIO-008")
def test_ec_stdio_008_an_agent_that_cannot_start_leaves_the_config_as_it_was(
    machine: Machine,
) -> None:
    original = machine.write_sample()

    done = machine.wrap_once(agent=["no-such-agent-anywhere"])

    assert done.returncode == 2
    assert "'no-such-agent-anywhere' could not be started" in done.stderr
    assert machine.config.read_bytes() == original
    assert machine.left_in(machine.project) == []
    assert machine.events("run_end")[0]["run"]["status"] == "FAILED"


@pytest.mark.requirement("EC-STDIO-023", "S000-F-003")
def test_ec_stdio_023_the_servers_key_of_vs_code_is_governed(machine: Machine) -> None:
    path = machine.project / ".vscode" / "mcp.json"
    path.parent.mkdir()
    servers = {"sample": {"type": "stdio", **entry()}}
    path.write_text(json.dumps({"servers": servers, "inputs": []}), "utf-8")
    original = path.read_bytes()
    agent = machine.agent("--key", "servers", config=path)

    with WrappedAgent(machine, thoughtgate("wrap", "--agent-type", "vscode", "--", *agent)) as run:
        run.open()
        assert text_of(run.call("echo", {"text": "code"})) == "code"
        assert run.finish() == 0
    assert machine.events("tool_call_end")[0]["server_name"] == "sample"
    assert path.read_bytes() == original


@pytest.mark.requirement("EC-STDIO-024", "S000-F-003")
def test_ec_stdio_024_the_context_servers_of_zed_are_governed(machine: Machine) -> None:
    path = machine.home / ".config" / "zed" / "settings.json"
    path.parent.mkdir(parents=True)
    text = json.dumps({"theme": "One", "context_servers": {"sample": entry()}}, indent=2)
    path.write_text(f"// my editor\n{text}\n", "utf-8")
    original = path.read_bytes()
    agent = machine.agent("--key", "context_servers", config=path)

    with WrappedAgent(machine, thoughtgate("wrap", "--agent-type", "zed", "--", *agent)) as run:
        run.open()
        assert text_of(run.call("echo", {"text": "zed"})) == "zed"
        assert run.finish() == 0
    assert machine.events("tool_call_end")[0]["server_name"] == "sample"
    assert path.read_bytes() == original


@pytest.mark.requirement("EC-STDIO-025", "S000-F-002")
def test_ec_stdio_025_claude_codes_user_and_project_files_are_both_governed(
    machine: Machine,
) -> None:
    user, project = machine.home / ".claude.json", machine.project / ".mcp.json"
    before = [
        machine.write_config(
            {"sample": entry("--tools", "from_user"), "other": entry()}, path=user
        ),
        machine.write_config({"sample": entry("--tools", "from_project")}, path=project),
    ]
    agent = machine.agent(config=project)

    with WrappedAgent(
        machine, thoughtgate("wrap", "--agent-type", "claude-code", "--", *agent)
    ) as run:
        run.open()
        tools = run.order("ask", method="tools/list")["said"]["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["from_project"]
        for path in (user, project):
            for one in json.loads(path.read_text("utf-8"))["mcpServers"].values():
                assert one["args"][:4] == ["-I", "-m", "thoughtgate", "shim"]
        assert run.finish() == 0
    assert "configured 2 servers: other, sample" in run.stderr
    assert [user.read_bytes(), project.read_bytes()] == before


@pytest.mark.requirement("EC-STDIO-026", "S000-F-004")
@pytest.mark.parametrize("flags", [(), ("--strict",)])
def test_ec_stdio_026_a_server_with_an_undefined_variable_is_named_and_not_started(
    machine: Machine, flags: tuple[str, ...]
) -> None:
    path = machine.project / ".mcp.json"
    unset = {"command": "${NOT_SET_ANYWHERE}", "args": ["${ALSO_UNSET:-fine}"]}
    original = machine.write_config({"sample": unset, "other": entry()}, path=path)

    done = machine.run("wrap", *flags, "--agent-type", "claude-code", "--", "true")

    assert done.returncode == (2 if flags else 0), "--strict refuses to start"
    told = (
        "NOT STARTED: sample (its entry refers to the variable NOT_SET_ANYWHERE, which is not set)"
    )
    assert told in done.stderr
    assert "other (" not in done.stderr
    assert "ALSO_UNSET" not in done.stderr
    assert path.read_bytes() == original


def test_the_shim_of_such_a_server_refuses_to_start_it(machine: Machine) -> None:
    servers = {"sample": {**entry(), "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}}, "other": entry()}
    machine.write_config(servers, path=machine.home / ".claude.json")
    agent = machine.agent(config=machine.home / ".claude.json")
    with WrappedAgent(
        machine, thoughtgate("wrap", "--agent-type", "claude-code", "--", *agent)
    ) as run:
        run.wait_until_ready()
        run.tell("open")
        run.peer.wait_for_stderr("NOT_SET_ANYWHERE, which is not set")
        run.peer.wait_for_stderr("NOT STARTED: sample")


@pytest.mark.requirement("EC-STDIO-001")
def test_a_config_that_cannot_be_read_is_not_called_missing(machine: Machine) -> None:
    machine.config.mkdir()

    done = machine.wrap_once()

    assert done.returncode == 1
    assert done.stderr.count(f"{machine.config}: cannot be read: Is a directory") == 1
    assert "No config file" not in done.stderr


@pytest.mark.requirement("EC-STDIO-038")
def test_a_dry_run_on_a_wrapped_config_shows_what_would_change(machine: Machine) -> None:
    original = machine.write_sample()
    machine.wrap_once("--no-restore")
    wrapped = machine.config.read_bytes()

    done = machine.wrap_once("--dry-run")

    assert done.returncode == 0
    assert f"+++ {machine.config} (wrapped)" in done.stdout
    assert '+        "shim",' in done.stdout
    assert machine.config.read_bytes() == wrapped
    assert machine.run("unwrap").returncode == 0
    assert machine.config.read_bytes() == original


def test_wrap_says_its_version(machine: Machine) -> None:
    done = machine.run("wrap", "--version")
    assert (done.returncode, done.stdout) == (0, f"thoughtgate {__version__}\n")


@pytest.mark.requirement("EC-STDIO-029", "S000-F-007")
def test_ec_stdio_029_the_shim_is_named_by_its_absolute_path(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        text = run.order("text")["said"]
        run.finish()

    command = json.loads(text)["mcpServers"]["sample"]["command"]
    assert Path(command).is_absolute()
    assert os.access(command, os.X_OK)
    python = Path(sys.executable)
    # Its last link stays: Python finds the virtual environment of an installation by it.
    assert command == str(python.parent.resolve() / python.name)


@pytest.mark.requirement("EC-STDIO-034")
def test_ec_stdio_034_a_config_that_is_already_ours_is_not_wrapped_again(machine: Machine) -> None:
    shim = thoughtgate("shim", "--server-id", "sample", "--run", "lost", "--", "server")
    original = machine.write_config({"sample": {"command": shim[0], "args": shim[1:]}})

    done = machine.wrap_once()

    assert done.returncode == 2
    assert "already managed by ThoughtGate" in done.stderr
    assert "thoughtgate unwrap" in done.stderr
    assert machine.config.read_bytes() == original


@pytest.mark.requirement("EC-STDIO-038", "S000-F-007a")
def test_ec_stdio_038_a_dry_run_prints_the_diff_and_touches_nothing(machine: Machine) -> None:
    original = machine.write_sample()

    done = machine.wrap_once("--dry-run", agent=["touch", str(machine.top / "ran")])

    assert done.returncode == 0
    assert done.stdout.startswith(f"--- {machine.config}\n+++ ")
    assert '+        "shim",' in done.stdout
    assert machine.config.read_bytes() == original
    assert machine.left_in(machine.project) == []
    assert not machine.state.exists()
    assert not (machine.top / "ran").exists()


@pytest.mark.requirement("EC-STDIO-039")
def test_ec_stdio_039_a_server_added_during_the_session_is_kept(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        config = json.loads(run.order("text")["said"])
        config["mcpServers"]["added"] = {"command": "new-server", "args": ["--fast"]}
        run.order("write", text=json.dumps(config, indent=2))
        assert run.finish() == 0

    servers = json.loads(machine.config.read_text("utf-8"))["mcpServers"]
    assert servers == {
        "sample": entry(),
        "added": {"command": "new-server", "args": ["--fast"]},
    }


@pytest.mark.requirement("EC-STDIO-040")
def test_ec_stdio_040_a_taken_port_is_named(machine: Machine) -> None:
    original = machine.write_sample()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = machine.wrap_once("--governance-port", str(port))

    assert done.returncode == 2
    assert f"--governance-port {port}" in done.stderr
    assert "in use" in done.stderr
    assert machine.config.read_bytes() == original


@pytest.mark.requirement("EC-STDIO-043")
def test_ec_stdio_043_an_atomic_save_does_not_break_the_lock(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        # As editors save: a new file, renamed over the old one.
        fresh = machine.project / "mcp.json.new"
        fresh.write_bytes(machine.config.read_bytes() + b"\n")
        fresh.rename(machine.config)

        second = machine.wrap_once()
        assert "is rewritten already by another wrap" in second.stderr
        assert run.finish() == 0
    assert json.loads(machine.config.read_text("utf-8"))["mcpServers"] == {"sample": entry()}


@pytest.mark.requirement("EC-STDIO-044")
def test_ec_stdio_044_a_stale_lock_file_is_no_obstacle(machine: Machine) -> None:
    original = machine.write_sample()
    lock = machine.config.with_name("mcp.json.thoughtgate-lock")
    lock.write_text("999999", "utf-8")

    done = machine.wrap_once()

    assert done.returncode == 0
    assert machine.config.read_bytes() == original
    assert not lock.exists()


def test_a_killed_wrap_is_mended_by_its_guardian_and_the_next_wrap_works(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.open()
        run.signal(signal.SIGKILL)
        run.wait()
        run.assert_nothing_left()

    wait_for(lambda: machine.config.read_bytes() == original, what="the config to be put back")
    assert machine.wrap_once().returncode == 0


def test_a_wrap_killed_with_its_guardian_is_mended_by_unwrap(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        guardian = next(pid for pid in run.peer.descendants() if pid != run.agent_pid)
        os.kill(guardian, signal.SIGKILL)
        run.signal(signal.SIGKILL)
        run.wait()
        assert machine.config.read_bytes() != original

        sick = machine.run("doctor")
        assert sick.returncode == 1
        assert "thoughtgate unwrap" in sick.stdout

        mended = machine.run("unwrap")
        assert mended.returncode == 0
        assert f"restored {machine.config}" in mended.stderr
    assert machine.config.read_bytes() == original
    assert machine.run("doctor").returncode == 0


def test_a_wrap_killed_with_its_guardian_is_mended_by_the_next_wrap(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        guardian = next(pid for pid in run.peer.descendants() if pid != run.agent_pid)
        os.kill(guardian, signal.SIGKILL)
        run.signal(signal.SIGKILL)
        run.wait()

    done = machine.wrap_once()

    assert done.returncode == 0
    assert "restored: the wrap that changed it" in done.stderr
    assert machine.config.read_bytes() == original


def test_no_restore_leaves_the_config_wrapped_and_says_how_to_undo_it(machine: Machine) -> None:
    original = machine.write_sample()

    done = machine.wrap_once("--no-restore")

    assert done.returncode == 0
    assert "thoughtgate unwrap" in done.stderr
    assert machine.config.read_bytes() != original
    assert machine.run("unwrap", "--config-path", str(machine.config)).returncode == 0
    assert machine.config.read_bytes() == original


def test_arguments_are_the_same_from_run_to_run(machine: Machine) -> None:
    machine.write_sample()
    seen = set()
    for _ in range(2):
        with machine.wrap() as run:
            run.wait_until_ready()
            seen.add(run.order("text")["said"])
            run.finish()

    assert len(seen) == 1


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_moment_of_the_start_restores_the_config(
    machine: Machine, signal_number: int
) -> None:
    original = machine.write_sample()
    command = thoughtgate(
        "wrap",
        "--agent-type",
        "custom",
        "--config-path",
        str(machine.config),
        "--",
        *machine.agent(),
    )
    with StdioPeer(command, env=machine.env, cwd=machine.project) as peer:
        peer.wait_for_stderr("agent ")
        peer.signal(signal_number)
        peer.wait()
        peer.assert_nothing_left()

    wait_for(lambda: machine.config.read_bytes() == original, what="the config to be put back")


@pytest.mark.requirement("IMP-001")
def test_names_environment_and_exact_arguments_survive(machine: Machine) -> None:
    odd = ["--tools", "env,a b", "--stderr", 'quotes " and \\ and $HOME and -- and \u00e9']
    name = "My server (1)"
    original = machine.write_config({name: entry(*odd, env={"ODD": "a=b c", "EMPTY": ""})})
    with machine.wrap() as run:
        run.open()
        seen = json.loads(text_of(run.call("env", server=name)))
        assert (seen["ODD"], seen["EMPTY"]) == ("a=b c", "")
        run.peer.wait_for_stderr(odd[-1])
        tools = run.order("ask", method="tools/list", server=name)["said"]["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["env", "a b"]
        assert run.finish() == 0
    assert machine.config.read_bytes() == original
    assert machine.events("tool_call_end")[0]["server_name"] == name
