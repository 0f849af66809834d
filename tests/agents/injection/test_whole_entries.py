"""The entry of one file replaces those of all others."""

import json
from pathlib import Path

import pytest
from tests.support.agent_files import OURS, Scene, proxy, server, shim_args

from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.injection.injection import Governed, governed
from thoughtgate.agents.injection.whole_entries import whole_entries
from thoughtgate.agents.rewrite import rewrite


@pytest.fixture
def given(tmp_path: Path) -> Governed:
    scene = Scene(tmp_path, agent="copilot", argv=("copilot", "-p", "hi"))
    user = {"usr": server("user"), "same": server("user"), "off": server("off", disabled=True)}
    scene.write(scene.home / ".copilot" / "mcp-config.json", {"mcpServers": user})
    project = {"proj": server("project"), "same": server("project")}
    scene.write(scene.project / ".mcp.json", {"mcpServers": project})
    plan = scene.plan_to_inject()
    done = rewrite(plan, [OURS], shim_args, proxy)
    return governed(plan, done, plan.search.argv, scene.state)


def _refuse_project(entry: ServerEntry) -> str:
    return "not trusted" if entry.layer.scope == "project" else ""


def test_the_highest_entry_is_given_behind_the_gate_and_a_disabled_one_not(given: Governed) -> None:
    found = whole_entries(given)

    assert set(found.governed) == set(found.servers) == {"usr", "same", "proj"}
    assert all(value["command"] == OURS for value in found.servers.values())
    assert "project" in found.servers["same"]["args"]
    assert json.loads(found.private_file(given).content) == {"mcpServers": found.servers}


def test_a_refused_entry_gives_way_to_one_in_another_file(given: Governed) -> None:
    found = whole_entries(given, _refuse_project)

    assert set(found.governed) == {"usr", "same"}
    assert "user" in found.servers["same"]["args"]
    assert [(one.place, one.reason) for one in found.left_out] == [("proj", "not trusted")]


def test_a_refused_entry_can_hide_one_in_another_file(given: Governed) -> None:
    found = whole_entries(given, _refuse_project, refused_hides=True)

    assert set(found.governed) == {"usr"}
    assert {one.place for one in found.left_out} == {"same", "proj"}
