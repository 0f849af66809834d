"""``thoughtgate doctor``: finds problems and shows how to fix them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.audit_cli import command
from tests.support.waiting import reap
from tests.support.wraps import Machine

from thoughtgate.cli import doctor as module
from thoughtgate.gate.run_file import RunFile, write_run_file


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _findings(machine: Machine) -> dict[str, dict[str, Any]]:
    listed = json.loads(machine.run("doctor", "--json").stdout)
    return {one["check"]: one for one in listed}


def test_a_healthy_machine_is_told_so(machine: Machine) -> None:
    done = machine.run("doctor")

    assert done.returncode == 0
    assert "ERROR" not in done.stdout
    for check in ("program", "command", "state", "config", "record", "wraps"):
        assert f"  {check}: " in done.stdout


def test_a_record_that_the_config_names_is_in_the_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, state = tmp_path / "thoughtgate.yaml", tmp_path / "state"
    config.write_text("schema: 1\ndefault: deny\naudit: {file: here.jsonl}\n", "utf-8")
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(state))

    found = command(capsys, "doctor", "-c", str(config), "--json").json

    told = {one["check"]: one["message"] for one in found}
    assert told["record"] == str(state / "here.jsonl")


def test_the_configs_of_agents_are_looked_into(machine: Machine) -> None:
    shim = {"command": "/nowhere/thoughtgate", "args": ["shim", "--server-id", "a", "--", "cat"]}
    servers = {"a": shim, "b": {"command": "cat"}, "c": {"type": "http", "url": "https://c"}}
    machine.write_config(servers, path=machine.home / ".claude.json")
    codex = machine.home / ".codex/config.toml"
    codex.parent.mkdir()
    codex.write_text("broken [", "utf-8")
    gemini = machine.home / ".gemini/settings.json"
    gemini.parent.mkdir()
    gemini.write_text('{"mcpServers": {}}', "utf-8")

    done = machine.run("doctor")

    assert done.returncode == 1
    assert (
        "ok     agents: Claude Code: a (behind a shim), b (not governed), c (remote)" in done.stdout
    )
    assert f"ERROR  agents: Codex: {codex}: not valid TOML" in done.stdout
    assert f"ok     agents: Gemini CLI: {gemini}: No MCP servers found in config" in done.stdout
    assert done.stdout.count("starts /nowhere/thoughtgate, which is not there") == 1


def test_a_wrapped_entry_is_known_from_the_journal_and_any_other_is_left_over(
    machine: Machine,
) -> None:
    path = machine.home / ".claude.json"
    machine.write_config({"b": {"command": "cat"}}, path=path)
    machine.run("wrap", "--no-restore", "--agent-type", "claude-code", "--", "true")
    wrapped = path.read_text("utf-8")

    assert "agents: Claude Code: b (wrapped)" in machine.run("doctor").stdout

    machine.run("unwrap")
    path.write_text(wrapped, "utf-8")
    done = machine.run("doctor")
    assert done.returncode == 1
    assert "Claude Code: b (left wrapped)" in done.stdout
    assert "starts the shim of a wrap that is unknown here  ->  thoughtgate unwrap" in done.stdout


def test_a_wrong_config_is_named_with_its_command(machine: Machine) -> None:
    machine.policy.write_text("schema: 1\n", "utf-8")

    done = machine.run("doctor")

    assert done.returncode == 1
    assert "validate-config" in done.stdout


def test_a_variable_that_the_config_needs_is_missed(machine: Machine) -> None:
    machine.policy.write_text("schema: 1\ndefault: deny\naudit: {sign_key_env: NO_SUCH_KEY}\n")
    done = machine.run("doctor")

    assert done.returncode == 1
    assert "ERROR  environment: audit.sign_key_env: the variable NO_SUCH_KEY is not set" in (
        done.stdout
    )


def test_a_signing_key_that_no_gate_starts_with_is_wrong(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT_KEY", "q" * 31)
    machine.policy.write_text("schema: 1\ndefault: deny\naudit: {sign_key_env: SHORT_KEY}\n")
    done = machine.run("doctor")

    assert done.returncode == 1
    assert "ERROR  environment: audit.sign_key_env: the key in the variable SHORT_KEY is too" in (
        done.stdout
    )
    assert "qq" not in done.stdout


def test_a_living_wrap_is_no_fault(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        found = _findings(machine)["wraps"]
        assert found["ok"]
        assert str(run.peer.pid) in found["message"]
        inside = run.order("run", command=[*_command(), "doctor"])["said"]
        assert "inside a wrapped agent; thoughtgate status" in inside["stdout"]
        run.finish()


def _command() -> list[str]:
    from tests.support.commands import thoughtgate

    return thoughtgate()


def test_a_run_file_of_a_dead_service_is_found_and_unwrap_mends_it(machine: Machine) -> None:
    pid = os.posix_spawnp("true", ["true"], {})
    reap(pid)
    place = machine.state / "runs" / "k.json"
    write_run_file(str(place), RunFile("127.0.0.1", 1, "t", "production", pid))

    assert not _findings(machine)["runs"]["ok"]
    machine.run("unwrap")
    assert "runs" not in _findings(machine)


def test_a_run_file_that_others_can_read_is_found(machine: Machine) -> None:
    place = machine.state / "runs" / "k.json"
    write_run_file(str(place), RunFile("127.0.0.1", 1, "t", "production", os.getpid()))
    place.chmod(0o644)

    assert "chmod 600" in _findings(machine)["runs"]["message"]


def test_a_state_directory_of_another_user_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)

    (found,) = module._check_wraps(tmp_path)

    assert (found.ok, "belongs to another user" in found.message) == (False, True)


def test_a_damaged_store_is_found(machine: Machine) -> None:
    machine.state.mkdir(mode=0o700)
    (machine.state / "thoughtgate.db").write_bytes(b"not a database, by far" * 100)

    found = _findings(machine)["store"]

    assert not found["ok"]
    assert found["fix"].startswith("mv ")


def test_a_shim_that_variables_can_replace_is_named(machine: Machine) -> None:
    shim = {"command": "thoughtgate", "args": ["shim", "--", "server"]}
    fine = {"command": "server", "env": {"PYTHONPATH": "x"}}
    path = machine.home / ".cursor" / "mcp.json"
    machine.write_config(
        {"a": {**shim, "env": {"PYTHONPATH": "x"}}, "b": shim, "c": fine}, path=path
    )

    done = machine.run("doctor")

    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
    assert f"shims: mcpServers.a in {path}" in line
    assert "thoughtgate wrap" in line


def test_an_installation_that_may_vanish_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "runs_from_cache", lambda: True)

    named = [one for one in module._check(None) if "may vanish" in one.message]

    assert [(one.check, one.ok) for one in named] == [("command", True)]
    assert named[0].fix == "uv tool install thoughtgate"
