"""What a repository and an agent's entry can write does not loosen a gate that runs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import isolated_command, sample_server
from tests.support.frames import call
from tests.support.organisation_policy import FILE, OrganisationPolicy
from tests.support.stdio_peer import StdioPeer

DENY = "schema: 1\ndefault: deny\n"
LOOSE = "schema: 1\ndefault: forward\n"


class Machine:
    """A home directory with the user's own policy, and a repository that somebody else wrote."""

    def __init__(self, top: Path) -> None:
        self.home, self.clone = top / "home", top / "clone"
        self.state = self.home / ".local" / "state" / "thoughtgate"
        own = self.home / ".config" / "thoughtgate"
        for folder in (own, self.clone, top / "bin"):
            folder.mkdir(parents=True)
        self.own = own / "thoughtgate.yaml"
        self.own.write_text(DENY, "utf-8")
        self.project = self.clone / "thoughtgate.yaml"
        self.command = [str(isolated_command(top / "bin", self.home))]

    def start(self, *words: str, **env: str) -> StdioPeer:
        """Start a gate in the repository."""
        return StdioPeer(
            [*self.command, *words], env={"HOME": str(self.home), **env}, cwd=self.clone
        )

    def run(self, *words: str) -> str:
        """Run a command in the repository; return all of its output."""
        done = subprocess.run(
            [*self.command, *words],
            env={**os.environ, "HOME": str(self.home)},
            cwd=self.clone,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + done.stderr

    def shim(self, *flags: str, **env: str) -> StdioPeer:
        return self.start("shim", "--server-id", "s", *flags, "--", *sample_server(), **env)

    def started(self) -> dict[str, Any]:
        """Return the first event of the last run on record."""
        lines = (self.state / "audit.jsonl").read_text("utf-8").splitlines()
        events = [json.loads(line) for line in lines]
        found: dict[str, Any] = [one for one in events if one["type"] == "run_start"][-1]
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def outcome(peer: StdioPeer, tool: str = "echo") -> str:
    """Return what comes of a call: its result, or the kind of its error."""
    answer = peer.ask(call(1, tool, {"text": "x"}))
    kind: str = "result" if "result" in answer else answer["error"]["data"]["kind"]
    return kind


@pytest.mark.promise("project-policy-only-tightens")
def test_a_cloned_repository_does_not_replace_the_user_s_policy(machine: Machine) -> None:
    machine.project.write_text(LOOSE + "profile: development\n", "utf-8")
    with machine.shim() as peer:
        assert outcome(peer) == "governance_denied"
        assert "is not trusted" in peer.stderr
        assert "ignored: profile" in peer.stderr
        assert f"policy    {machine.own} (yours) + {machine.project} (project, not" in peer.stderr
    policies = machine.started()["run"]["meta"]["policies"]
    assert [(one["role"], one["path"]) for one in policies] == [
        ("user", str(machine.own)),
        ("project", str(machine.project)),
    ]
    assert all(len(one["digest"]) == 64 for one in policies)


@pytest.mark.promise("project-policy-only-tightens")
@pytest.mark.parametrize("words", [["serve", "--stdio", "--eager"], ["proxy", "--stdio"]])
def test_the_commands_of_a_cloned_repository_are_not_run(
    machine: Machine, words: list[str]
) -> None:
    ran = machine.clone / "ran"
    script = f"open({str(ran)!r}, 'w').close()"
    entry = {"command": sys.executable, "args": ["-c", script], "eager": True}
    machine.project.write_text(
        json.dumps({"schema": 1, "default": "forward", "servers": {"evil": entry}}), "utf-8"
    )
    with machine.start(*words) as peer:
        peer.finish()
    assert not ran.exists()
    assert "servers.evil.command" in peer.stderr


@pytest.mark.promise("agent-environment")
@pytest.mark.parametrize("name", ["profile", "config", "home", "xdg", "state"])
def test_the_environment_of_an_entry_does_not_free_a_shim(machine: Machine, name: str) -> None:
    loose = machine.clone / "loose" / ".config" / "thoughtgate" / "thoughtgate.yaml"
    loose.parent.mkdir(parents=True)
    loose.write_text(LOOSE, "utf-8")
    env = {
        "profile": {"THOUGHTGATE_PROFILE": "development"},
        "config": {"THOUGHTGATE_CONFIG": str(loose)},
        "home": {"HOME": str(machine.clone / "loose")},
        "xdg": {"XDG_CONFIG_HOME": str(loose.parents[1])},
        "state": {"THOUGHTGATE_STATE_DIR": str(machine.clone / "state")},
    }[name]
    with machine.shim(**env) as peer:
        assert outcome(peer) == "governance_denied"
        assert f"ignored {next(iter(env))}: " in peer.stderr
    assert machine.started()["run"]["mode"] == "enforce"
    assert not (machine.clone / "state").exists()


@pytest.mark.promise("agent-environment")
def test_the_environment_of_an_entry_does_not_fill_in_the_policy(machine: Machine) -> None:
    machine.own.write_text("schema: 1\ndefault: ${DEFAULT:-deny}\n", "utf-8")
    with machine.shim() as peer:
        assert outcome(peer) == "governance_denied"
    with machine.shim(DEFAULT="forward") as peer:
        assert peer.finish() == 1
    assert "default: refers to the variable DEFAULT" in peer.stderr


@pytest.mark.promise("agent-environment")
def test_the_environment_of_an_entry_does_not_choose_the_principal(machine: Machine) -> None:
    (machine.own.parent / "p.cedar").write_text(
        'permit(principal == Agent::"admin", action, resource);', "utf-8"
    )
    machine.own.write_text("schema: 1\ndefault: policy\ncedar: {policies: [p.cedar]}\n", "utf-8")
    with machine.shim(THOUGHTGATE_PRINCIPAL="admin", THOUGHTGATE_AGENT_ID="admin") as peer:
        assert outcome(peer) == "policy_denied"
    assert machine.started()["principal"] == "admin", "as a label"


def test_a_tightening_profile_in_the_environment_counts(machine: Machine) -> None:
    machine.own.write_text(DENY + "profile: development\n", "utf-8")
    with machine.shim() as peer:
        assert outcome(peer) == "result"
    with machine.shim(THOUGHTGATE_PROFILE="production") as peer:
        assert outcome(peer) == "governance_denied"


def test_the_command_line_of_an_entry_names_config_state_and_profile(machine: Machine) -> None:
    other = machine.clone / "other.yaml"
    other.write_text(LOOSE, "utf-8")
    state = machine.clone / "state"
    with machine.shim("-c", "other.yaml", "--state-dir", str(state)) as peer:
        assert outcome(peer) == "result"
        assert f"policy    {other} (-c), production" in peer.stderr
    assert (state / "audit.jsonl").exists()
    with machine.shim("--profile", "development") as peer:
        assert outcome(peer) == "result"
        assert "--profile development: calls are reported, and none is refused" in peer.stderr


@pytest.mark.promise("policy-file-ownership")
def test_a_policy_that_everybody_can_write_stops_the_start(machine: Machine) -> None:
    machine.own.chmod(0o666)
    with machine.shim() as peer:
        assert peer.wait() == 1
    assert f"chmod go-w {machine.own}" in peer.stderr


FLOOR = """
schema: 1
default: forward
rules: [{tool: add, action: deny}]
approval: {security: {approvers: [nobody-here]}}
"""


@pytest.fixture
def governed(machine: Machine, tmp_path: Path) -> Machine:
    """A machine whose organisation has a policy, and whose user lets everything through."""
    machine.own.write_text(LOOSE, "utf-8")
    machine.command = OrganisationPolicy(tmp_path, FLOOR).command(machine.command)
    return machine


@pytest.mark.promise("organisation-floor")
def test_no_file_of_the_user_or_a_project_loosens_the_organisation_s_policy(
    governed: Machine,
) -> None:
    with governed.shim(THOUGHTGATE_PROFILE="development") as peer:
        assert (outcome(peer, "add"), outcome(peer)) == ("governance_denied", "result")
        expected = f"policy    {governed.own} (yours) + {FILE} (organisation), production"
        assert peer.stderr.count(expected) == 1
    governed.project.write_text(LOOSE + "rules: [{tool: add, action: forward}]\n", "utf-8")
    assert "Trusted" in governed.run("trust", "--yes")
    with governed.shim() as peer:
        assert (outcome(peer, "add"), outcome(peer)) == ("governance_denied", "result")
        expected = f"{governed.project} (project, trusted) + {FILE} (organisation), production"
        assert peer.stderr.count(expected) == 1
    policies = governed.started()["run"]["meta"]["policies"]
    assert [one["role"] for one in policies] == ["project", "organisation"]


@pytest.mark.promise("organisation-floor")
def test_commands_name_the_organisation_s_policy(governed: Machine) -> None:
    told = f"{governed.own} (yours) + {FILE} (organisation), production"
    explained = governed.run("policy", "explain", "--server", "s", "--tool", "add")
    assert told in explained
    assert "organisation:" in explained
    for words in (["doctor"], ["validate-config"]):
        assert told in governed.run(*words)
    with governed.shim() as peer:
        assert outcome(peer) == "result"
        assert told in governed.run("status")


@pytest.mark.promise("organisation-floor")
def test_only_its_approvers_accept_a_change_of_the_organisation_s_policy(
    governed: Machine, tmp_path: Path
) -> None:
    governed.own.unlink()
    with governed.shim() as peer:
        assert outcome(peer, "add") == "governance_denied"
    (tmp_path / "organisation" / "thoughtgate.yaml").write_text(LOOSE, "utf-8")
    assert "is not among the approvers of security" in governed.run("policy", "accept", "--yes")
    with governed.shim() as peer:
        assert outcome(peer, "add") == "governance_denied"
