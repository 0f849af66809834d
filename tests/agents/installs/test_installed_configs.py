"""Config files that stay behind the gate: journals, originals, locks."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.agent_files import OURS, Scene, server

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.installs.installed_configs import InstalledConfigs
from thoughtgate.agents.journal import INSTALLS
from thoughtgate.agents.locks import FileLock
from thoughtgate.agents.rewrite import rewrite
from thoughtgate.errors import ConfigError, Conflict

AT = "2026-01-01T00:00:00Z"


class Installer:
    """Installs Cursor's files of a scene, as the command does."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.path = scene.home / ".cursor" / "mcp.json"

    @property
    def search(self) -> Search:
        return Search("cursor", {}, self.scene.project, self.scene.home)

    @contextlib.contextmanager
    def changing(self) -> Iterator[tuple[InstalledConfigs, Plan]]:
        with InstalledConfigs.changing(self.scene.state) as configs:
            plan = configs.plan(self.search)
            configs.lock(file.real for file in plan.files)
            yield configs, plan

    def install(self, word: str = "v1", agent: str = "cursor") -> None:
        """Install with a word on the shim's command line."""

        def shim(entry: ServerEntry) -> list[str]:
            return ["shim", "--server-id", entry.id, "--profile", word, "--"]

        with self.changing() as (configs, plan):
            done = rewrite(plan, [OURS], shim)
            assert all(configs.write(one, agent, AT) for one in done.files)
            configs.drop_empty(plan, done.files)

    def uninstall(self) -> None:
        with InstalledConfigs.changing(self.scene.state) as configs:
            for journal in list(configs.journals.values()):
                assert not configs.remove(journal).problems


@pytest.fixture
def installer(tmp_path: Path) -> Installer:
    made = Installer(Scene(tmp_path, agent="cursor"))
    made.scene.write(made.path, {"mcpServers": {"a": server(), "b": server("uvx", "b")}})
    return made


def test_other_options_replace_the_old_command_lines(installer: Installer) -> None:
    original = installer.path.read_bytes()
    installer.install("v1")
    installer.install("v2")

    text = installer.path.read_bytes()
    assert (text.count(b'"v1"'), text.count(b'"v2"'), text.count(b'"shim"')) == (0, 2, 2)
    (journal,) = InstalledConfigs(installer.scene.state).journals.values()
    assert len(journal.files[0].entries) == 2
    installer.uninstall()
    assert installer.path.read_bytes() == original
    assert installer.scene.litter() == []


def test_a_file_that_changes_before_it_is_written_is_planned_again(installer: Installer) -> None:
    with installer.changing() as (configs, plan):
        done = rewrite(plan, [OURS], lambda entry: ["shim", "--server-id", entry.id, "--"])
        installer.path.write_bytes(b'{"mcpServers": {}}')

        assert not any(configs.write(one, "cursor", AT) for one in done.files)

    assert installer.path.read_bytes() == b'{"mcpServers": {}}'
    assert InstalledConfigs(installer.scene.state).journals == {}


def test_an_upgrade_that_cannot_be_written_leaves_the_old_journal(installer: Installer) -> None:
    original = installer.path.read_bytes()
    installer.install("v1")
    installed = installer.path.read_bytes()
    with installer.changing() as (configs, plan):
        done = rewrite(plan, [OURS], lambda entry: ["shim", "--server-id", entry.id, "--"])
        (one,) = done.files
        locked = replace(one, file=replace(one.file, lock_directory=True))
        lock = installer.path.with_name("mcp.json.lock")
        lock.write_text("not a directory", "utf-8")
        with pytest.raises(Conflict, match="is being written by the agent"):
            configs.write(locked, "cursor", AT)
        lock.unlink()

    assert installer.path.read_bytes() == installed
    installer.uninstall()
    assert installer.path.read_bytes() == original


def test_a_file_without_servers_is_forgotten(installer: Installer) -> None:
    installer.install()
    installer.path.write_bytes(b"{}")

    installer.install()

    assert InstalledConfigs(installer.scene.state).journals == {}
    assert list((installer.scene.state / INSTALLS).glob("*.original")) == []


def test_a_file_that_a_wrap_holds_is_not_touched(installer: Installer) -> None:
    installer.install()
    installed = installer.path.read_bytes()
    lock = FileLock(installer.path)
    try:
        with pytest.raises(Conflict, match="locked by another"):
            installer.install("v2")
        with pytest.raises(Conflict, match="locked by another"):
            installer.uninstall()
    finally:
        lock.release()
    assert installer.path.read_bytes() == installed


def test_a_wrap_on_top_is_undone_first_if_it_was_killed(installer: Installer) -> None:
    original = installer.path.read_bytes()
    installer.install()
    configs = installer.scene.configs(restore_on_exit=False)
    configs.acquire()
    configs.write(lambda plan: rewrite(plan, [OURS], _wrapped))
    configs.release()
    assert b"--run" in installer.path.read_bytes()

    installer.uninstall()

    assert installer.path.read_bytes() == original


def _wrapped(entry: ServerEntry) -> list[str]:
    return ["shim", "--server-id", entry.id, "--run", "run1", "--skip", str(entry.skipped), "--"]


def test_a_journal_that_cannot_be_read_is_named(installer: Installer) -> None:
    installer.install()
    (file,) = (installer.scene.state / INSTALLS).glob("*.json")
    file.write_text("{", "utf-8")

    found = InstalledConfigs(installer.scene.state)

    assert found.journals == {}
    assert str(file) in str(found.problems[0])
    # Installed again, the text with our entries would count as the original.
    assert str(file) in str(found.plan(installer.search).problems[0])


def test_a_directory_that_cannot_be_locked_is_named(installer: Installer) -> None:
    lock = installer.path.with_name("mcp.json.thoughtgate-lock")
    lock.mkdir()
    with pytest.raises(ConfigError, match="cannot be locked"):
        installer.install()


def test_a_file_that_cannot_be_undone_is_not_installed_again(installer: Installer) -> None:
    installer.install()
    installer.path.write_bytes(installer.path.read_bytes() + b"}")

    plan = InstalledConfigs(installer.scene.state).plan(installer.search)

    assert plan.problems
    assert all(problem.file == str(installer.path) for problem in plan.problems)
