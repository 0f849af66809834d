"""``thoughtgate uninstall``: agents' configs as they were."""

import itertools
import json
import os
import signal
from pathlib import Path

import pytest
from tests.support.commands import sample_server
from tests.support.installs import write_agent
from tests.support.warm_command import run_warm
from tests.support.wraps import Machine, entry


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_with_nothing_installed_there_is_nothing_to_do(machine: Machine) -> None:
    done = machine.run("uninstall")

    assert done.returncode == 0
    assert "nothing to restore" in done.stderr


@pytest.mark.parametrize("kind", ["cursor", "codex"])
def test_edits_since_are_kept_and_only_our_words_removed(machine: Machine, kind: str) -> None:
    path, original = write_agent(machine, kind, sample_server())
    machine.run("install")
    path.write_bytes(path.read_bytes() + b"\n\n" + (b"# more" if kind == "codex" else b"// more"))

    done = machine.run("uninstall", "--json")

    assert json.loads(done.stdout) == {"restored": [str(path)], "warnings": [], "problems": []}
    more = b"# more" if kind == "codex" else b"// more"
    assert path.read_bytes() == original + b"\n\n" + more


def test_a_file_of_two_agents_stays_for_the_other(machine: Machine) -> None:
    path = machine.project / ".mcp.json"
    original = machine.write_config({"sample": entry()}, path=path)
    machine.run("install", "claude-code", "vscode")
    installed = path.read_bytes()
    assert installed != original

    done = machine.run("uninstall", "vscode")

    assert "stays behind the gate for claude-code" in done.stderr
    assert path.read_bytes() == installed
    machine.run("uninstall", "claude-code")
    assert path.read_bytes() == original


@pytest.mark.promise("config-restored")
def test_a_repository_that_becomes_a_link_does_not_reach_the_user_s_own_file(
    machine: Machine,
) -> None:
    mine = machine.home / ".claude.json"
    original = machine.write_config({"sample": entry()}, path=mine)
    # The files are restored in an order that nobody can choose: some of these come first.
    projects = [machine.top / f"repository{number}" for number in range(4)]
    for project in projects:
        file = project / ".mcp.json"
        machine.write_config({"sample": entry(url="https://evil.example/mcp")}, path=file)
        machine.project = project
        done = machine.run("install", "claude-code")
        assert done.returncode == 0, done.stderr
        file.unlink()
        file.symlink_to(mine)

    done = machine.run("uninstall")

    assert mine.read_bytes() == original
    assert done.returncode == 2
    for project in projects:
        assert f"{project / '.mcp.json'}: could not be restored" in done.stderr


def test_one_file_can_be_chosen(machine: Machine) -> None:
    cursor, before = write_agent(machine, "cursor", sample_server())
    codex, other = write_agent(machine, "codex", sample_server())
    machine.run("install")

    assert machine.run("uninstall", "--config-path", str(cursor)).returncode == 0

    assert cursor.read_bytes() == before
    assert codex.read_bytes() != other


def test_a_shim_that_somebody_wrote_by_hand_is_not_ours(machine: Machine) -> None:
    by_hand = ["thoughtgate", "shim", "--server-id", "a", "--", "npx", "x"]
    path, original = write_agent(machine, "cursor", by_hand)

    machine.run("uninstall")

    assert path.read_bytes() == original


def test_what_a_killed_wrap_left_is_restored_first(machine: Machine) -> None:
    original = machine.write_sample()
    machine.run("install", "custom", "--config-path", str(machine.config))
    with machine.wrap() as run:
        run.wait_until_ready()
        for pid in run.peer.descendants():
            if pid != run.agent_pid:
                os.kill(pid, signal.SIGKILL)
        run.signal(signal.SIGKILL)
        run.wait()
    assert b"--run" in machine.config.read_bytes()

    assert machine.run("uninstall", "custom").returncode == 0

    assert machine.config.read_bytes() == original
    assert machine.left_in(machine.project) == []


def test_a_file_that_was_removed_is_not_made_again(machine: Machine) -> None:
    path, original = write_agent(machine, "cursor", sample_server())
    machine.run("install")
    path.unlink()

    done = machine.run("uninstall")

    assert done.returncode == 0
    assert not path.exists()
    (kept,) = (machine.state / "installs").glob("*.original")
    assert str(kept) in done.stderr
    assert kept.read_bytes() == original


@pytest.mark.parametrize("kind", ["cursor", pytest.param("codex", marks=pytest.mark.long)])
def test_an_uninstallation_that_is_killed_at_any_step_can_be_repeated(
    machine: Machine, kind: str
) -> None:
    path, original = write_agent(machine, kind, sample_server())
    env = {**os.environ, **machine.env}
    for step in itertools.count(1):
        machine.run("install")
        done = run_warm("uninstall", env=env, cwd=machine.project, kill_at=step)
        if done.returncode == 0:
            break
        assert done.returncode == -9
        assert machine.run("uninstall").returncode == 0
        assert path.read_bytes() == original
        assert machine.left_in(path.parent) == []
    assert step > 5
