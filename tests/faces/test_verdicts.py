"""Every verdict of every gate, through every face: the answer, the server's side, the record."""

from typing import Any

import pytest
from tests.faces.face import FACES, SERVE, Gate
from tests.faces.outcomes import MESSAGES, check_refused, text_of
from tests.faces.record_view import CallRecord, calls_on_record, check_calls

TRANSPARENT = tuple(face.name for face in FACES if face.name not in SERVE)

CEDAR_ERROR = "error while evaluating policy `policy4`: record does not have the attribute `absent`"

BLOCKED: dict[str, tuple[str, str, str | None, str]] = {
    # tool: kind, gate, rule, what the record says
    "denied": ("governance_denied", "rules", "closed", "it is closed"),
    "unmatched": ("governance_denied", "default", "default", "no rule matches"),
    "scoped": (
        "insufficient_scope",
        "rules",
        "scoped",
        "the token lacks the scopes tools:read tools:write",
    ),
    "hidden_tool": ("not_exposed", "visibility", None, "tool is not exposed"),
    "cedar_no": ("policy_denied", "cedar", "no", "a policy forbids it"),
    "cedar_error": ("policy_denied", "cedar", None, CEDAR_ERROR),
}


def refused_record(
    call: CallRecord, kind: str, gate: str, rule: str | None, summary: str
) -> CallRecord:
    """Return the record of a call that the gates refused."""
    return call.blocked(gate, rule, kind, summary, MESSAGES[kind])


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
def test_forwarded(gate: Gate, *, modern: bool) -> None:
    agent = gate.agent()
    arguments = {"mark": f"forwarded-{modern}", "text": "hello"}
    answer = agent.call("echo", arguments, modern=modern)
    assert text_of(answer) == "hello"
    assert answer["result"].get("resultType") == ("complete" if modern else None)
    (received,) = gate.received(arguments["mark"])
    assert (received["params"]["name"], received["params"]["arguments"]) == ("echo", arguments)
    check_calls(gate, arguments["mark"], CallRecord("echo", arguments).allowed("open").ended("OK"))


def test_transport_on_record(gate: Gate) -> None:
    gate.agent().call("denied", {"mark": "transport"})
    (call,) = calls_on_record(gate, "transport")
    assert call[0]["call"]["transport"] == f"mcp_{gate.face.agent}"


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("tool", BLOCKED)
def test_blocked(gate: Gate, tool: str, *, modern: bool) -> None:
    agent = gate.agent()
    kind, by, rule, summary = BLOCKED[tool]
    arguments = {"mark": f"blocked-{tool}-{modern}"}
    check_refused(agent, agent.call(tool, arguments, modern=modern), kind, by, tool, modern=modern)
    assert gate.received(arguments["mark"]) == []
    check_calls(
        gate,
        arguments["mark"],
        refused_record(CallRecord(tool, arguments), kind, by, rule, summary),
    )


def test_cedar_permit(gate: Gate) -> None:
    arguments = {"mark": "cedar-permit"}
    assert text_of(gate.agent().call("cedar_yes", arguments)) == "done"
    assert len(gate.received("cedar-permit")) == 1
    expected = CallRecord("cedar_yes", arguments).allowed("yes", "cedar", "a policy permits it")
    check_calls(gate, "cedar-permit", expected.ended("OK"))


@pytest.mark.not_for(
    "a transparent face does not list the server's tools by itself: the rules judge the name, "
    "and the server says that it has no such tool",
    *TRANSPARENT,
)
def test_unknown_tool_looks_like_a_hidden_one(gate: Gate) -> None:
    agent = gate.agent()
    answer = agent.call("none_such", {"mark": "unknown-tool"})
    check_refused(agent, answer, "not_exposed", "visibility", "none_such")
    assert gate.received("unknown-tool") == []


@pytest.mark.not_for("serve knows which tools there are and refuses the others itself", *SERVE)
def test_unknown_tool_is_the_servers_to_refuse(gate: Gate) -> None:
    arguments = {"mark": "unknown-tool"}
    answer = gate.agent().call("none_such", arguments)
    assert answer["error"] == {"code": -32602, "message": "there is no such tool"}
    error = {
        "class": "upstream_error",
        "code": -32602,
        "message": "the server answered with an error",
    }
    expected = CallRecord("none_such", arguments).allowed("open").ended("ERROR", error)
    check_calls(gate, "unknown-tool", expected)


def test_error_of_the_server_passes(gate: Gate) -> None:
    arguments = {"mark": "server-error", "do": "error"}
    answer = gate.agent().call("echo", arguments)
    assert answer["error"] == {"code": -32050, "message": "as the call wanted"}
    error = {
        "class": "upstream_error",
        "code": -32050,
        "message": "the server answered with an error",
    }
    expected = CallRecord("echo", arguments).allowed("open").ended("ERROR", error)
    check_calls(gate, "server-error", expected)


def test_failed_tool_is_an_error_on_record(gate: Gate) -> None:
    arguments = {"mark": "tool-failed", "do": "fail"}
    answer = gate.agent().call("echo", arguments)
    assert answer["result"]["isError"] is True
    expected = CallRecord("echo", arguments).allowed("open").ended("ERROR", is_error=True)
    check_calls(gate, "tool-failed", expected)


LIMITED = {
    # tool: kind, limit, how many calls pass, what the record says
    "limited": ("rate_limited", "rate", 2, "more than 2 calls"),
    "budgeted": ("budget", "budget", 2, "2 calls are spent"),
    "repeated": ("duplicate", "twice", 1, "the same call was just made"),
}


@pytest.mark.parametrize("tool", LIMITED)
def test_limit(gate: Gate, tool: str) -> None:
    agent = gate.agent()
    kind, limit, allowed, summary = LIMITED[tool]
    arguments = {"mark": f"limit-{tool}"}
    for _ in range(allowed):
        assert text_of(agent.call(tool, arguments)) == "done"
    check_refused(agent, agent.call(tool, arguments), kind, "limits", tool)
    assert len(gate.received(arguments["mark"])) == allowed
    passed = [CallRecord(tool, arguments).allowed("open").ended("OK") for _ in range(allowed)]
    check_calls(gate, arguments["mark"], *passed, throttled(tool, arguments, kind, limit, summary))


def test_breaker(gate: Gate) -> None:
    agent = gate.agent()
    arguments = {"mark": "limit-breaking", "do": "error"}
    for _ in range(2):
        assert agent.call("breaking", arguments)["error"]["code"] == -32050
    # Under wrap the shim hands the ends of calls over to the service, which counts them.
    ended = "tool_call_end"
    gate.wait(
        lambda: (
            [call[-1]["type"] for call in calls_on_record(gate, "limit-breaking")] == [ended] * 2
        ),
        "two failed calls on record",
    )
    check_refused(agent, agent.call("breaking", arguments), "breaker", "limits", "breaking")
    assert len(gate.received("limit-breaking")) == 2
    error = {
        "class": "upstream_error",
        "code": -32050,
        "message": "the server answered with an error",
    }
    failed = [
        CallRecord("breaking", arguments).allowed("open").ended("ERROR", error) for _ in range(2)
    ]
    last = throttled("breaking", arguments, "breaker", "fuse", "it failed too often")
    check_calls(gate, "limit-breaking", *failed, last)


def throttled(tool: str, arguments: Any, kind: str, limit: str, summary: str) -> CallRecord:
    """Return the record of a call that a limit refused."""
    record = CallRecord(tool, arguments)
    record.decided("THROTTLE", "limits", limit, kind.upper(), summary)
    return record.refused(kind, MESSAGES[kind])


RESOURCES: dict[str, tuple[str, str, str | None, str]] = {
    "face:///closed": ("governance_denied", "rules", "resource-closed", ""),
    "face:///hidden": ("not_exposed", "visibility", None, "resource is not exposed"),
}


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
def test_resource_forwarded(gate: Gate, *, modern: bool) -> None:
    before = len(calls_of(gate, "face:///open"))
    answer = gate.agent().ask("resources/read", {"uri": "face:///open"}, modern=modern)
    assert answer["result"]["contents"][0]["text"] == "the text"
    expected = CallRecord("face:///open", {}, kind="resource", method="resources/read")
    expected.allowed("resource-open").ended("OK")
    check_calls(gate, "face:///open", *[expected] * (before + 1))


@pytest.mark.parametrize("uri", RESOURCES)
def test_resource_blocked(gate: Gate, uri: str) -> None:
    agent = gate.agent()
    kind, by, rule, summary = RESOURCES[uri]
    answer = agent.ask("resources/read", {"uri": uri})
    assert (answer["error"]["data"]["kind"], answer["error"]["data"]["gate"]) == (kind, by)
    assert answer["error"]["message"] == MESSAGES[kind]
    assert gate.received(uri) == []
    call = CallRecord(uri, {}, kind="resource", method="resources/read")
    check_calls(gate, uri, refused_record(call, kind, by, rule, summary))


PROMPTS: dict[str, tuple[str, str, str | None, str]] = {
    "shut": ("governance_denied", "rules", "prompt-shut", ""),
    "hidden_prompt": ("not_exposed", "visibility", None, "prompt is not exposed"),
}


def test_prompt_forwarded(gate: Gate) -> None:
    arguments = {"mark": "prompt-forwarded"}
    answer = gate.agent().ask("prompts/get", {"name": "greet", "arguments": arguments})
    assert answer["result"]["messages"][0]["content"]["text"] == "prompt greet"
    (received,) = gate.received("prompt-forwarded")
    assert received["params"]["name"] == "greet"
    expected = CallRecord("greet", arguments, kind="prompt", method="prompts/get")
    check_calls(gate, "prompt-forwarded", expected.allowed("prompt-open").ended("OK"))


@pytest.mark.parametrize("name", PROMPTS)
def test_prompt_blocked(gate: Gate, name: str) -> None:
    agent = gate.agent()
    kind, by, rule, summary = PROMPTS[name]
    arguments = {"mark": f"prompt-{name}"}
    answer = agent.ask("prompts/get", {"name": name, "arguments": arguments})
    check_refused(agent, answer, kind, by, name)
    call = CallRecord(name, arguments, kind="prompt", method="prompts/get")
    check_calls(gate, arguments["mark"], refused_record(call, kind, by, rule, summary))


def calls_of(gate: Gate, name: str) -> list[Any]:
    """Return the starts of calls of one name on record."""
    return [
        one for one in gate.records()
        if one["type"] == "tool_call_start" and one["call"]["tool_name"] == name
    ]  # fmt: skip


WOULD_BLOCK = {
    "denied": ("BLOCK", "rules", "closed", "GOVERNANCE_DENIED", "it is closed"),
    "unmatched": ("BLOCK", "default", "default", "GOVERNANCE_DENIED", "no rule matches"),
    "hidden_tool": ("BLOCK", "visibility", None, "NOT_EXPOSED", "tool is not exposed"),
    "cedar_no": ("BLOCK", "cedar", "no", "POLICY_DENIED", "a policy forbids it"),
}


@pytest.mark.parametrize("tool", WOULD_BLOCK)
def test_development_profile_forwards_and_says_so(observing: Gate, tool: str) -> None:
    action, by, rule, code, summary = WOULD_BLOCK[tool]
    arguments = {"mark": f"development-{tool}"}
    assert text_of(observing.agent().call(tool, arguments)) == "done"
    assert len(observing.received(arguments["mark"])) == 1
    record = CallRecord(tool, arguments, profile="development")
    record.decided(action, by, rule, code, summary, enforced=False, outcome="WOULD_BLOCK")
    check_calls(observing, arguments["mark"], record.ended("OK"))


def test_development_profile_tells_the_operator(observing: Gate) -> None:
    observing.agent().call("denied", {"mark": "development-told"})
    observing.wait(lambda: "WOULD_BLOCK" in observing.stderr, "WOULD_BLOCK on standard error")


def test_development_profile_asks_nobody(observing: Gate) -> None:
    arguments = {"mark": "development-asked"}
    assert text_of(observing.agent().call("asked", arguments)) == "done"
    record = CallRecord("asked", arguments, profile="development")
    more = {
        "enforced": False,
        "auto_approved": True,
        "workflow": "default",
        "outcome": "WOULD_BLOCK",
    }
    record.decided("HOLD", "rules", "people", "APPROVE", "", **more)
    check_calls(observing, "development-asked", record.ended("OK"))
