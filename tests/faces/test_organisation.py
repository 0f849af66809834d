"""The organisation's policy is asked through every face, and nothing beside it loosens it."""

import json
import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.faces.conftest import Start
from tests.faces.face import Gate, Setup
from tests.faces.outcomes import text_of
from tests.faces.record_view import events_since
from tests.support.commands import ROOT, thoughtgate
from tests.support.organisation_policy import FILE, OrganisationPolicy
from tests.support.policy_changes import policy_questions

from thoughtgate.core.approval import Approval, Refusal, Vote
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.clock import now

FLOOR: dict[str, Any] = {
    "schema": 1,
    "default": "forward",
    "rules": [
        {"id": "never", "tool": "denied", "action": "deny"},
        {"id": "second", "tool": "regional", "action": "deny"},
    ],
    "approval": {"default": {"channel": "console", "approvers": ["olga"], "timeout": "60s"}},
}
LOOSER = {**FLOOR, "rules": FLOOR["rules"][:1]}
USER = {
    "default": "forward",
    "rules": [{"id": "mine", "tool": "denied", "action": "forward"}],
    "approval": {"default": {"channel": "console", "approvers": ["ursula"], "timeout": "60s"}},
}
"""A user who lets everything through, and names other approvers."""


@pytest.fixture
def organisation(tmp_path: Path) -> OrganisationPolicy:
    return OrganisationPolicy(tmp_path, json.dumps(FLOOR))


def run(gate: Gate, *args: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of the user beside the gate, on the same machine."""
    env = {"THOUGHTGATE_STATE_DIR": str(gate.state), "HOME": str(gate.root)}
    return subprocess.run(
        gate.setup.machine(thoughtgate(*args)),
        env={**os.environ, **env, "PYTHONPATH": str(ROOT)},
        cwd=gate.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def kind_of(answer: dict[str, Any]) -> str:
    return str(answer["error"]["data"]["kind"])


@pytest.mark.promise("organisation-floor")
def test_floor(start: Start, organisation: OrganisationPolicy) -> None:
    """The floor decides against the user's file, a flag and a variable, and is named."""
    gate = start(
        Setup(
            {**USER, "profile": "development"},
            flags=("--profile", "development"),
            machine=organisation.command,
        )
    )
    agent = gate.agent()
    assert kind_of(agent.call("denied", {"mark": "floor"})) == "governance_denied"
    assert gate.received("floor") == []
    assert text_of(agent.call("echo", {"mark": "free"})) == "done"
    named = [line for line in gate.stderr.splitlines() if f"{FILE} (organisation)" in line]
    assert len(named) == 1, gate.stderr
    assert str(gate.config) in named[0]
    assert named[0].endswith("production")
    (decision, *_) = events_since(gate, 0, "tool_call_decision")
    assert decision["decision"]["rule_id"] == "organisation:never"
    status = run(gate, "status")
    assert f"{FILE} (organisation)" in status.stdout, status


@pytest.mark.promise("organisation-floor")
def test_floor_change(start: Start, organisation: OrganisationPolicy) -> None:
    """The approvers that the organisation names accept a looser floor, and no others."""
    gate = start(Setup({**USER, "reload": "auto"}, machine=organisation.command))
    agent = gate.agent()
    before = len(gate.records())
    assert kind_of(agent.call("regional", {"mark": "first"})) == "governance_denied"
    organisation.write(json.dumps(LOOSER))
    gate.wait(lambda: changed(gate, agent, before), "the question about the looser floor")
    (question,) = policy_questions(gate.state)
    assert (question.tool, question.approvers) == (FILE, ("olga",))
    assert kind_of(agent.call("regional", {"mark": "held"})) == "governance_denied"
    assert isinstance(vote(gate, question, "ursula"), Refusal)
    assert isinstance(vote(gate, question, "olga"), Approval)
    gate.wait(lambda: changed(gate, agent, before)[1:], "the accepted floor")
    assert changed(gate, agent, before) == ["held", "accepted"]
    assert text_of(agent.call("regional", {"mark": "accepted"})) == "done"
    assert kind_of(agent.call("denied", {"mark": "still"})) == "governance_denied"


def changed(gate: Gate, agent: Any, before: int) -> list[str]:
    """Call a tool, because gates look at their files as calls arrive; return what changed."""
    agent.call("echo", {"mark": "look"})
    return [one["policy"]["outcome"] for one in events_since(gate, before, "policy_changed")]


def vote(gate: Gate, question: Approval, name: str) -> Approval | Refusal:
    """Approve as a person at the terminal."""
    with closing(open_store(str(gate.state))) as store:
        return store.vote(question.id, [Vote(f"terminal:{name}", True, now())], now())
