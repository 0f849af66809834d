"""Noticing entries that appear in an agent's files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.wraps import entry

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.config_watch import ConfigWatch
from thoughtgate.agents.discovery import discover

OURS = {"command": "thoughtgate", "args": ["shim", "--server-id", "a", "--run", "/r", "--", "x"]}


def _write(path: Path, servers: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")


def _watch(top: Path, agent: str = "cursor") -> ConfigWatch:
    home, project = top / "home", top / "project"
    home.mkdir(exist_ok=True)
    project.mkdir(exist_ok=True)
    return ConfigWatch(discover(Search(agent, env={}, cwd=project, home=home)))


def _names(watch: ConfigWatch) -> list[str]:
    return sorted(one.name for one in watch.added())


def test_new_and_changed_entries_are_noticed_and_ours_are_not(tmp_path: Path) -> None:
    user, project = tmp_path / "home/.cursor/mcp.json", tmp_path / "project/.cursor/mcp.json"
    _write(user, {"a": OURS, "off": entry(disabled=True)})
    watch = _watch(tmp_path)
    assert _names(watch) == []

    _write(user, {"a": OURS, "off": entry(), "b": entry()})
    _write(project, {"c": entry()})
    assert _names(watch) == _names(watch) == ["b", "c", "off"]
    watch.accept(watch.added(), {})
    assert _names(watch) == []

    _write(user, {"a": {"command": "x"}})
    assert _names(watch) == ["a"]
    assert [one.file for one in watch.added()] == [str(user)]


@pytest.mark.promise("repository-servers")
def test_what_is_added_between_the_plan_and_the_watch_is_noticed(tmp_path: Path) -> None:
    user = tmp_path / "home/.cursor/mcp.json"
    _write(user, {"a": entry(), "b": entry()})
    plan = discover(Search("cursor", env={}, cwd=tmp_path, home=tmp_path / "home"))
    wrapped = json.dumps({"mcpServers": {"a": OURS, "b": OURS}}).encode()

    # Another process writes both files at once: one entry as it was, and one more.
    _write(user, {"a": entry(), "b": OURS, "late": entry()})
    assert _names(ConfigWatch(plan)) == ["late"]
    watch = ConfigWatch(plan, {user.resolve(): wrapped})
    assert _names(watch) == ["a", "late"]

    # The same again while what was found is put behind the gate.
    watch.accept(watch.added(), {user.resolve(): wrapped})
    assert _names(watch) == ["a", "late"]


def test_an_entry_that_comes_back_is_new(tmp_path: Path) -> None:
    user = tmp_path / "home/.cursor/mcp.json"
    _write(user, {"b": entry()})
    watch = _watch(tmp_path)
    user.unlink()
    assert _names(watch) == []
    _write(user, {"b": entry()})
    assert _names(watch) == ["b"]


@pytest.mark.promise("repository-servers")
def test_a_change_that_keeps_size_and_time_is_noticed(tmp_path: Path) -> None:
    user = tmp_path / "home/.cursor/mcp.json"
    _write(user, {"b": entry(disabled=True)})
    watch = _watch(tmp_path)
    assert _names(watch) == []
    before, text = user.stat(), user.read_text("utf-8")

    user.write_text(text.replace("true", "null"), "utf-8")
    os.utime(user, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert _names(watch) == ["b"]


def test_a_file_that_is_being_written_keeps_its_entries(tmp_path: Path) -> None:
    user = tmp_path / "home/.cursor/mcp.json"
    _write(user, {"b": entry()})
    watch = _watch(tmp_path)
    user.write_text('{"mcpServers": {"b"', "utf-8")
    assert _names(watch) == []
    user.write_text('{"mcpServers": [1, {}], "other": 1}', "utf-8")
    assert _names(watch) == []
    user.write_text('{"mcpServers": {"b": 1, // a comment\n "d": {"command": "x"}}}', "utf-8")
    assert _names(watch) == ["d"]


def test_what_no_file_rewrites_is_noticed_with_the_reason(tmp_path: Path) -> None:
    watch = _watch(tmp_path, "gemini")
    manifest = tmp_path / "home/.gemini/extensions/x/gemini-extension.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"mcpServers": {"z": {"command": "z"}}}), "utf-8")
    (found,) = watch.added()
    assert (found.file, found.reason) == (str(manifest), "servers of an extension")


@pytest.mark.promise("repository-servers")
def test_the_caller_decides_which_command_lines_are_ours(tmp_path: Path) -> None:
    user = tmp_path / "home/.cursor/mcp.json"
    _write(user, {"a": entry()})
    (tmp_path / "project").mkdir()
    plan = discover(Search("cursor", env={}, cwd=tmp_path / "project", home=tmp_path / "home"))
    watch = ConfigWatch(plan, is_ours=lambda argv: argv[0] != "/repo/thoughtgate")
    assert _names(watch) == []

    _write(user, {"a": entry(), "b": OURS | {"command": "/repo/thoughtgate"}, "c": OURS})
    assert _names(watch) == ["b"]
