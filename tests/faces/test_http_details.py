"""What only HTTP has: mirrored headers, sessions, hosts, origins, addresses."""

from typing import Any

import pytest
from tests.faces.agents import HttpAgent
from tests.faces.conftest import Start
from tests.faces.face import HTTP_SERVER, STDIO_AGENT, Gate, Setup
from tests.faces.known_drift import part
from tests.faces.outcomes import text_of
from tests.faces.record_view import events_since

pytestmark = pytest.mark.not_for("the agent does not use HTTP", *STDIO_AGENT)

MODERN = pytest.mark.parametrize("modern", [True], ids=["2026-07-28"])
MISMATCHES = {
    "mcp-method": "tools/list",
    "mcp-name": "denied",
    "mcp-protocol-version": "2025-11-25",
}


def connect(gate: Gate) -> HttpAgent:
    """Return an agent over HTTP."""
    agent = gate.agent()
    assert isinstance(agent, HttpAgent)
    return agent


def modern_call(agent: HttpAgent, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a call of revision 2026-07-28."""
    return agent.message("h-1", "tools/call", {"name": tool, "arguments": arguments}, modern=True)


@MODERN
@pytest.mark.parametrize("header", MISMATCHES)
def test_header_contradicts_the_body(gate: Gate, header: str, *, modern: bool) -> None:
    agent = connect(gate)
    start = len(gate.records())
    mark = f"header-{header}"
    body = modern_call(agent, "echo", {"mark": mark})
    posted = agent.post(body, {header: MISMATCHES[header]})
    assert posted.status == 400
    assert posted.messages[0]["error"]["code"] == -32020
    assert gate.received(mark) == []
    with part("header_mismatch_on_record", gate):
        gate.wait(lambda: events_since(gate, start, "frame_refused"), "the refusal on record")


@MODERN
def test_mirrored_argument(gate: Gate, *, modern: bool) -> None:
    agent = connect(gate)
    agent.ask("tools/list", modern=True)
    posted = agent.post(modern_call(agent, "regional", {"region": "eu", "mark": "region-same"}))
    assert posted.status == 200
    assert text_of(posted.messages[-1]) == "done"
    if gate.face.name in HTTP_SERVER:
        (entry,) = [one for one in gate.received_entries() if "region-same" in str(one["body"])]
        assert entry["headers"]["mcp-param-region"] == "eu"
        assert entry["headers"]["mcp-name"] == "regional"


@MODERN
def test_mirrored_argument_contradicts_the_body(gate: Gate, *, modern: bool) -> None:
    agent = connect(gate)
    agent.ask("tools/list", modern=True)
    body = modern_call(agent, "regional", {"region": "eu", "mark": "region-other"})
    posted = agent.post(body, {"mcp-param-region": "us"})
    assert posted.status == 400
    assert posted.messages[0]["error"]["code"] == -32020
    assert gate.received("region-other") == []


@pytest.mark.promise("mirrored-headers-checked")
@MODERN
def test_mirrored_argument_before_any_list(start: Start, *, modern: bool) -> None:
    """The gate lists the tools itself, and then compares."""
    gate = start(Setup({"default": "forward"}, entry={"expose": {"block": ["hidden_tool"]}}))
    agent = connect(gate)
    region = {"mcp-param-region": "us"}
    body = modern_call(agent, "regional", {"region": "eu", "mark": "other"})
    other = agent.post(body, region)
    assert other.status == 400
    assert other.messages[0]["error"]["code"] == -32020
    refused = [
        agent.post(modern_call(agent, tool, {"mark": "unlisted"}), region)
        for tool in ("hidden_tool", "no_such_tool")
    ]
    assert [one.status for one in refused] == [400, 400]
    # Each refusal has its own id; nothing else may tell a hidden tool from an unknown one.
    for one in refused:
        assert one.messages[0]["error"]["data"].pop("correlation_id")
    assert refused[0].messages == refused[1].messages
    assert gate.received("other") == gate.received("unlisted") == []
    assert len(events_since(gate, 0, "frame_refused")) == 3
    body = modern_call(agent, "regional", {"region": "us", "mark": "same"})
    assert text_of(agent.post(body, region).messages[-1]) == "done"


@MODERN
def test_mirrored_argument_of_the_first_call(start: Start, *, modern: bool) -> None:
    gate = start(Setup({"default": "forward"}))
    agent = connect(gate)
    body = modern_call(agent, "regional", {"region": "us", "mark": "first"})
    posted = agent.post(body, {"mcp-param-region": "us"})
    assert posted.status == 200
    assert text_of(posted.messages[-1]) == "done"
    assert len(gate.received("first")) == 1


@pytest.mark.promise("mirrored-headers-checked")
@MODERN
def test_mirrored_argument_that_no_list_can_confirm(start: Start, *, modern: bool) -> None:
    gate = start(Setup({"default": "forward"}, server_flags=("--unlisted",)))
    agent = connect(gate)
    body = modern_call(agent, "regional", {"region": "us", "mark": "unconfirmed"})
    for _ in range(2):
        posted = agent.post(body, {"mcp-param-region": "us"})
        assert posted.status == 400
        assert posted.messages[0]["error"]["data"]["kind"] == "header_mismatch"
        assert "has not listed this tool" in posted.messages[0]["error"]["message"]
    assert gate.received("unconfirmed") == []


def test_unknown_session(gate: Gate) -> None:
    agent = connect(gate)
    start = len(gate.records())
    body = agent.message("u-1", "tools/call", {"name": "echo", "arguments": {"mark": "no-session"}})
    posted = agent.post(body, {"mcp-session-id": "there-is-no-such-session"})
    assert posted.status == 404
    assert gate.received("no-session") == []
    with part("unknown_session_on_record", gate):
        gate.wait(lambda: events_since(gate, start, "frame_refused"), "the refusal on record")


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("host", "example.com", 421), ("origin", "https://example.com", 403)],
    ids=["host", "origin"],
)
def test_foreign_web_page(gate: Gate, header: str, value: str, status: int) -> None:
    agent = connect(gate)
    start = len(gate.records())
    body = agent.message("w-1", "tools/call", {"name": "echo", "arguments": {"mark": "foreign"}})
    assert agent.post(body, {header: value}).status == status
    assert gate.received("foreign") == []
    gate.wait(
        lambda: [
            one for one in events_since(gate, start, "agent_auth_rejected")
            if one["agent"]["method"] == header
        ],
        "the rejection on record",
    )  # fmt: skip


def test_another_loopback_address(start: Start) -> None:
    gate = start(Setup({"default": "forward"}, host="127.0.0.2"))
    assert text_of(gate.agent().call("echo", {"mark": "loopback"})) == "done"
