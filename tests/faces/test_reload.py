"""A changed config applies to the running gate, whichever of its files has changed."""

from typing import Any

from tests.faces.agents import Agent
from tests.faces.conftest import Start
from tests.faces.face import Gate, Setup
from tests.faces.known_drift import part
from tests.faces.outcomes import text_of
from tests.faces.record_view import events_since

PERMIT = '@id("edited") permit(principal, action, resource == Tool::"sample/cedar_edited");\n'
FORBID = '@id("edited") forbid(principal, action, resource == Tool::"sample/cedar_edited");\n'


def policy(action: str) -> dict[str, Any]:
    """Return a config whose one rule about a tool can be edited."""
    return {
        "default": "forward",
        "rules": [
            {"id": "edited", "tool": "yaml_edited", "action": action},
            {"id": "cedar", "tool": "cedar_edited", "action": "policy"},
        ],
        "cedar": {"policies": ["policy.cedar"]},
    }


def wait_for_kind(gate: Gate, agent: Agent, tool: str, kind: str) -> None:
    """Call a tool until it is refused."""

    def refused() -> bool:
        answer = agent.call(tool, {"mark": "reload"})
        return bool(answer.get("error", {}).get("data", {}).get("kind") == kind)

    gate.wait(refused, f"{kind} for {tool}")


def test_edited_files(start: Start) -> None:
    gate = start(Setup(policy("forward"), files={"policy.cedar": PERMIT}))
    agent = gate.agent()
    before = len(gate.records())
    assert text_of(agent.call("yaml_edited", {"mark": "before"})) == "done"
    assert text_of(agent.call("cedar_edited", {"mark": "before"})) == "done"
    gate.write_policy(policy("deny"))
    wait_for_kind(gate, agent, "yaml_edited", "governance_denied")
    assert len(events_since(gate, before, "policy_changed")) == 1
    assert text_of(agent.call("cedar_edited", {"mark": "unchanged"})) == "done"
    with part("edited_cedar_file", gate):
        (gate.root / "policy.cedar").write_text(FORBID, "utf-8")
        wait_for_kind(gate, agent, "cedar_edited", "policy_denied")
