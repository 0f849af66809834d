"""What a request carries beyond name and arguments: the same through every face."""

import json
from typing import Any, Final

import pytest
from tests.faces.face import Gate
from tests.faces.outcomes import text_of
from tests.faces.people import decide, wait_until_asked
from tests.faces.record_view import CallRecord, check_calls
from tests.faces.test_holds import by_person

OTHERS: Final[dict[str, Any]] = {
    "cwd": "/etc",
    "inputResponses": {"who": {"action": "accept", "content": {"name": "ann"}}},
}
ROOT: Final = {"com.example/root": "/etc"}
EXTRA: Final[dict[str, Any]] = {**OTHERS, "_meta": ROOT}
BOOKKEEPING: Final[dict[str, Any]] = {
    "claudecode/toolUseId": "toolu_01",
    "vscode.requestId": "request_5",
    "baggage": "a=1",
}


@pytest.mark.promise("params-are-bound")
@pytest.mark.parametrize("modern", [False, True])
def test_forwarded(gate: Gate, *, modern: bool) -> None:
    agent = gate.agent()
    arguments = {"mark": f"extra-sent-{modern}"}
    meta = {**BOOKKEEPING, **ROOT}
    reply = agent.call("echo", arguments, modern=modern, _meta=meta, **OTHERS)
    assert text_of(reply) == "done"
    record = CallRecord("echo", arguments, extra=EXTRA).allowed("open")
    check_calls(gate, arguments["mark"], record.ended("OK"))


@pytest.mark.promise("params-are-bound")
def test_held(gate: Gate) -> None:
    agent = gate.agent()
    arguments = {"mark": "extra-held"}
    ident = agent.start_call("asked", arguments, _meta={**BOOKKEEPING, **ROOT}, **OTHERS)
    asked = wait_until_asked(gate, "extra-held")
    assert json.loads(asked.extra) == EXTRA
    decide(gate, "extra-held", approve=True)
    assert text_of(agent.inbox.answer(ident)) == "done"
    record = CallRecord("asked", arguments, extra=EXTRA).held("people")
    record.answered("approved", executes=True, kind=None, **by_person(approve=True))
    check_calls(gate, "extra-held", record.ended("OK"))


@pytest.mark.parametrize("modern", [False, True])
def test_bookkeeping_alone_is_not_extra(gate: Gate, *, modern: bool) -> None:
    agent = gate.agent()
    arguments = {"mark": f"extra-none-{modern}"}
    meta = {**BOOKKEEPING, "progressToken": f"t-{modern}"}
    assert text_of(agent.call("echo", arguments, modern=modern, _meta=meta)) == "done"
    check_calls(gate, arguments["mark"], CallRecord("echo", arguments).allowed("open").ended("OK"))


@pytest.mark.promise("names-are-masked")
def test_a_secret_in_a_uri_is_not_on_record(gate: Gate) -> None:
    agent = gate.agent()
    secret = "hunter2hunter2hunter2"
    start = len(gate.records())
    agent.ask("resources/read", {"uri": f"face:///closed?credential={secret}"})
    calls = gate.wait(
        lambda: [
            one
            for one in gate.records()[start:]
            if one["type"] == "tool_call_end" and "call" in one
        ],
        "the end of the call",
    )
    assert "face:///closed?credential=[" in calls[0]["call"]["tool_name"]
    assert secret not in json.dumps(gate.records())
