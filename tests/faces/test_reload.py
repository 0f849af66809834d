"""A changed config applies to the running gate, whichever of its files has changed."""

from typing import Any

import pytest
from tests.faces.agents import Agent, HttpAgent
from tests.faces.conftest import Start
from tests.faces.face import STDIO_AGENT, Gate, Setup
from tests.faces.known_drift import part
from tests.faces.outcomes import text_of
from tests.faces.people import decide, wait_until_asked
from tests.faces.record_view import events_since
from tests.support.policy_changes import decide_change

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


@pytest.mark.not_for("stdio has no batches", *STDIO_AGENT)
def test_batch_across_an_edit(start: Start) -> None:
    """Each message is judged once, when it arrives; an edit meanwhile takes nothing back."""
    gate = start(Setup(batched("forward")))
    agent = gate.agent("2025-03-26")
    assert isinstance(agent, HttpAgent)
    agent.send([
        agent.message("b-1", "tools/call", {"name": "yaml_edited", "arguments": {"mark": "b-1"}}),
        agent.message("b-2", "tools/call", {"name": "asked", "arguments": {"mark": "b-2"}}),
        agent.message("b-3", "ping"),
    ])  # fmt: skip
    wait_until_asked(gate, "b-2")
    gate.write_policy(batched("deny"))
    wait_for_kind(gate, agent, "yaml_edited", "governance_denied")
    assert gate.received("b-1") == []
    decide(gate, "b-2", approve=True)
    assert text_of(agent.inbox.answer("b-1")) == "done"
    assert text_of(agent.inbox.answer("b-2")) == "done"
    assert agent.inbox.answer("b-3")["result"] == {}
    posted = agent.post([
        agent.message("b-4", "tools/call", {"name": "yaml_edited", "arguments": {"mark": "b-4"}}),
        agent.message("b-5", "tools/call", {"name": "echo", "arguments": {"mark": "b-5"}}),
    ])  # fmt: skip
    answers = {one["id"]: one for one in posted.messages[-1]}
    assert answers["b-4"]["error"]["data"]["kind"] == "governance_denied"
    assert text_of(answers["b-5"]) == "done"


def batched(action: str) -> dict[str, Any]:
    """Return a config with a rule that can be edited, and one that asks."""
    rules = [
        {"id": "edited", "tool": "yaml_edited", "action": action},
        {"id": "people", "tool": "asked", "action": "approve"},
    ]
    approval = {"default": {"channel": "console", "timeout": "60s"}}
    return {"default": "forward", "rules": rules, "approval": approval}


@pytest.mark.promise("no-silent-loosening")
def test_edited_files(start: Start) -> None:
    """What tightens applies at once; what loosens, or may, is held until a person accepts it."""
    gate = start(Setup(policy("forward"), files={"policy.cedar": PERMIT}))
    agent = gate.agent()
    before = len(gate.records())
    assert text_of(agent.call("yaml_edited", {"mark": "before"})) == "done"
    assert text_of(agent.call("cedar_edited", {"mark": "before"})) == "done"
    gate.write_policy(policy("deny"))
    wait_for_kind(gate, agent, "yaml_edited", "governance_denied")
    assert outcomes(gate, before) == ["applied"]
    assert text_of(agent.call("cedar_edited", {"mark": "unchanged"})) == "done"
    with part("edited_cedar_file", gate):
        (gate.root / "policy.cedar").write_text(FORBID, "utf-8")
        wait_for_kind(gate, agent, "cedar_edited", "policy_denied")
        assert outcomes(gate, before) == ["applied", "held"]
    changes = events_since(gate, before, "policy_changed")
    names = [[file["path"] for file in one["policy"]["changed_files"]] for one in changes]
    assert names == [[str(gate.root / name)] for name in ("thoughtgate.yaml", "policy.cedar")]
    assert all(one["policy"]["sources"][0]["digest"] for one in changes)
    decide_change(gate.state)
    gate.wait(lambda: is_decided(gate, agent, before, 3), "the accepted Cedar file")
    gate.write_policy(policy("forward"))
    gate.wait(lambda: is_decided(gate, agent, before, 4), "the question about the loosened file")
    assert outcomes(gate, before) == ["applied", "held", "accepted", "held"]
    assert kind_of(agent.call("yaml_edited", {"mark": "held"})) == "governance_denied"
    decide_change(gate.state, approve=False)
    gate.wait(lambda: is_decided(gate, agent, before, 5), "the refusal")
    assert kind_of(agent.call("yaml_edited", {"mark": "refused"})) == "governance_denied"
    assert outcomes(gate, before)[-1] == "refused"


def kind_of(answer: dict[str, Any]) -> str:
    """Return the kind of an error."""
    return str(answer["error"]["data"]["kind"])


def outcomes(gate: Gate, before: int) -> list[str]:
    """Return what became of each change."""
    return [one["policy"]["outcome"] for one in events_since(gate, before, "policy_changed")]


def is_decided(gate: Gate, agent: Agent, before: int, count: int) -> bool:
    """Call a tool, because gates look at their files as calls arrive; count the changes."""
    agent.call("echo", {"mark": "look"})
    return len(outcomes(gate, before)) >= count
