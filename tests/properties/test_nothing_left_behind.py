"""A session that says it is untouched is as good as a new one: the gateway lets it serve again.

Whatever happened before, whoever gets it next must see nothing of it: no answer of
another's, no id that is taken, no prompt, no task.
"""

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.support.frames import error, notification, request, result
from tests.support.session_play import ASK, NO, YES, agent, judged, new_session, server

from thoughtgate.core.commands import Command, WriteRecord
from thoughtgate.core.events import (
    AgentGone,
    AnswerInspected,
    CallerGone,
    ListScreened,
    NotSent,
    PersonAsked,
    ServerGone,
    TaskAnswered,
    TaskMade,
    Ticked,
)
from thoughtgate.core.record_events import FRAME_REFUSED, REQUEST_FAILED
from thoughtgate.core.session import Session

KEYS = st.sampled_from([1, 2, "a"])
TIMES = st.sampled_from([0.0, 5.0, 100.0])
CAPABLE = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
CALL = {"name": "x", "_meta": {"progressToken": 9}}
NUMBERED = {FRAME_REFUSED, REQUEST_FAILED}
"""Records of errors, which are numbered within a session."""
MASKED = YES._replace(redact=True)


def _happenings(key: Any, at: float) -> list[Any]:
    return [
        agent(request(key, "tools/call", CALL), at),
        agent(request(key, "tools/call", {**CALL, "task": {}}), at),
        agent(request(key, "tools/list"), at),
        agent(request(key, "ping"), at),
        agent(request(key, "initialize", CAPABLE), at),
        agent(notification("notifications/cancelled", {"requestId": key}), at),
        agent(result(key, {}), at),
        server(result(key, {"content": []}), at),
        server(result(key, {"tools": [{"name": "x"}]}), at),
        server(error(key, -1, "no"), at),
        server(request(key, "roots/list"), at),
        server(notification("notifications/progress", {"progressToken": 9, "progress": 1}), at),
        judged(key, YES, at),
        judged(key, NO, at),
        judged(key, ASK, at),
        judged(key, MASKED, at),
        ListScreened(key, frozenset({"x"}), at),
        AnswerInspected(key, {"jsonrpc": "2.0", "id": key, "result": {}}, at),
        PersonAsked(key, "tg-prompt-1", "may it?", at),
        TaskMade(key, {"result": {"task": {}}}, at),
        TaskAnswered(key, None, at),
        NotSent(key, "service_unavailable", at),
        CallerGone(key, at),
        AgentGone(at),
        ServerGone("it fell over", at),
        Ticked(at),
    ]


HAPPENINGS = st.builds(
    lambda key, at, number: _happenings(key, at)[number % len(_happenings(key, at))],
    KEYS,
    TIMES,
    st.integers(0, 1000),
)


def _said(session: Session, happening: Any) -> list[Command]:
    """Return what a session says, but for the number that tells one refusal from another."""
    return [
        command
        for command in session.receive(happening)
        if not (isinstance(command, WriteRecord) and command.record.type in NUMBERED)
        and b'"correlation_id":"1.e' not in getattr(command, "data", b"")
    ]


@settings(max_examples=500, deadline=None)
@given(st.lists(HAPPENINGS, max_size=12), st.lists(HAPPENINGS, min_size=1, max_size=8))
def test_an_untouched_session_says_what_a_new_one_says(before: list[Any], after: list[Any]) -> None:
    used, fresh = new_session(), new_session()
    for happening in before:
        used.receive(happening)
    if not used.is_untouched:
        event("touched")
        return
    event("untouched" if before else "new")
    for happening in after:
        assert _said(used, happening) == _said(fresh, happening)
