"""What ``status`` and ``doctor`` know about the servers of agents."""

import json
from pathlib import Path

import pytest
from tests.support.commands import sample_server
from tests.support.installs import FILES, write_agent
from tests.support.wraps import Machine, entry

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.installs.survey import ServerState, survey
from thoughtgate.process.own_command import own_command


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _survey(machine: Machine) -> dict[str, ServerState]:
    around = Search("custom", machine.env, machine.project, machine.home)
    # Some agents also read the files of others: the first one that is found counts.
    found = reversed(survey(machine.state, around, own_command()))
    return {one.server: one for one in found}


def test_each_server_has_a_state(machine: Machine) -> None:
    path = machine.home / FILES["cursor"]
    machine.write_config({"mine": entry()}, path=path)
    machine.run("install")
    document = json.loads(path.read_text("utf-8"))
    document["mcpServers"]["hand"] = {"command": "thoughtgate", "args": ["shim", "--", "x"]}
    document["mcpServers"]["new"] = entry()
    document["mcpServers"]["left"] = {
        "command": "thoughtgate",
        "args": ["shim", "--run", "r", "--", "x"],
    }
    path.write_text(json.dumps(document), "utf-8")
    write_agent(machine, "codex", sample_server())

    found = _survey(machine)

    states = {name: one.status for name, one in found.items()}
    assert states == {
        "mine": "installed",
        "hand": "shim",
        "new": "not governed",
        "left": "wrapped",
        "sample": "not governed",
    }
    assert found["new"].has_installation
    assert not found["sample"].has_installation
    assert found["mine"].as_json()["file"] == str(path)


def test_a_shim_whose_files_are_gone_is_broken(machine: Machine) -> None:
    path, _ = write_agent(machine, "cursor", sample_server())
    machine.run("install")
    program = own_command()[0]
    assert _survey(machine)["sample"] == ServerState(
        "cursor", "sample", str(path), "installed", "", has_installation=True
    )

    machine.policy.rename(machine.top / "moved.yaml")
    assert _survey(machine)["sample"].note == f"{machine.policy} does not exist any more"
    (machine.top / "moved.yaml").rename(machine.policy)
    (journal,) = (machine.state / "installs").glob("*.json")
    for file in (path, journal):
        file.write_text(file.read_text("utf-8").replace(program, "/gone/python"), "utf-8")
    found = _survey(machine)["sample"]
    assert (found.status, found.note) == ("broken", "/gone/python does not exist any more")
    doctor = machine.run("doctor")
    assert doctor.returncode == 1
    assert "/gone/python does not exist any more  ->  thoughtgate install" in doctor.stdout
    assert "broken shim: sample" in machine.run("status").stdout


def test_an_installed_file_of_another_directory_is_looked_at(machine: Machine) -> None:
    machine.write_sample()
    machine.run("install", "custom", "--config-path", str(machine.config))

    found = _survey(machine)

    assert (found["sample"].agent, found["sample"].status) == ("custom", "installed")
    machine.write_sample()
    assert _survey(machine)["sample"].status == "not governed"
    assert machine.run("doctor").returncode == 1


def test_another_installation_and_new_variables_are_noted(machine: Machine) -> None:
    path, _ = write_agent(machine, "claude-code", sample_server())
    machine.run("install")
    document = json.loads(path.read_text("utf-8"))
    document["mcpServers"]["sample"]["env"] = {"LD_PRELOAD": "/evil.so"}
    path.write_text(json.dumps(document), "utf-8")

    assert "redirect its shim" in _survey(machine)["sample"].note
    around = Search("custom", machine.env, machine.project, machine.home)
    other = survey(machine.state, around, ["/opt/thoughtgate"])[0]
    assert other.note == "starts another installation of ThoughtGate"
