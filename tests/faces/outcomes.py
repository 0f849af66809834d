"""What an agent is told, compared in one way through every face."""

from typing import Any, Final

from tests.faces.agents import Agent

from thoughtgate.errors import code_of

Body = dict[str, Any]

MESSAGES: Final[dict[str, str]] = {
    "not_exposed": "there is nothing by that name here",
    "governance_denied": "denied by a rule",
    "policy_denied": "denied by policy",
    "insufficient_scope": "the agent's token does not have the scopes that this needs",
    "rate_limited": "too many calls; try again later",
    "budget": "the budget for this call is used up",
    "duplicate": "the same call was made just now",
    "breaker": "this call failed too often and is paused",
    "approval_rejected": "a person refused this call",
    "approval_timeout": "nobody answered the approval request in time; "
    "the call was not made and may be tried again",
    "approval_withdrawn": "the approval request was withdrawn; the call was not made",
    "service_unavailable": "the gate cannot take this call now",
}
"""Kind -> what agents are told and what stands in the record, in every face."""


def text_of(answer: Body) -> str:
    """Return the text of a tool's result."""
    assert "result" in answer, answer
    text: str = answer["result"]["content"][0]["text"]
    return text


def check_refused(
    agent: Agent, answer: Body, kind: str, gate: str, name: str, *, modern: bool = False
) -> None:
    """Fail unless an answer is the refusal that every face must give.

    The error names the tool as the agent knows it. ``serve`` may add the server, because it
    has several.
    """
    assert "error" in answer, answer
    error = answer["error"]
    data = dict(error["data"])
    data.pop("server", None)
    data.pop("retry_after", None)
    scopes = data.pop("scopes", []), data.pop("missing_scopes", [])
    assert all(scopes) is (kind == "insufficient_scope")
    assert data.pop("correlation_id")
    assert data == {"kind": kind, "gate": gate, "tool": agent.prefix + name}
    assert error["code"] == code_of(kind, modern=modern)
    assert error["message"] == MESSAGES[kind]
