"""The gate's own list of tools: fetched once, page by page, before the calls that need it."""

import json
from typing import Any

import pytest
from tests.support.frames import call, notification, request, result
from tests.support.session_play import (
    YES,
    agent,
    fails,
    judged,
    new_session,
    play,
    server,
)

from thoughtgate.core.commands import JudgeCall, ScreenList, ToServer
from thoughtgate.core.events import ListScreened, NotSent, ServerGone, Ticked
from thoughtgate.core.session import Session
from thoughtgate.core.tool_listing import DONE, FAILED, LIST_FIRST, MAX_PAGES, WAIT_S
from thoughtgate.testing.playbook import Some

FIRST = "thoughtgate/tools/1"


def listing(*calls: int, **params: Any) -> Session:
    """Return a session that waits for its list."""
    session = new_session()
    for ident in calls or (1,):
        session.receive(agent({**call(ident, "t"), "params": {"name": "t", **params}}))
        session.receive(judged(ident, LIST_FIRST))
    return session


def again(session: Session, event: Any) -> list[tuple[Any, str]]:
    return [(one.key, one.listed) for one in session.receive(event) if isinstance(one, JudgeCall)]


def test_the_list_is_requested_by_the_gate_itself() -> None:
    session = new_session()
    session.receive(agent(call(1, "t")))
    (frame,) = session.receive(judged(1, LIST_FIRST))
    assert isinstance(frame, ToServer)
    assert frame.detached
    assert frame.key == FIRST
    assert json.loads(frame.data)["method"] == "tools/list"


def test_the_request_speaks_the_revision_of_the_call() -> None:
    session = new_session()
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    sent = {"name": "t", "_meta": {**meta, "progressToken": 5}}
    session.receive(agent({**call(1, "t"), "params": sent}))
    (frame,) = session.receive(judged(1, LIST_FIRST))
    assert isinstance(frame, ToServer)
    assert json.loads(frame.data)["params"] == {"_meta": meta}


@pytest.mark.promise("params-are-bound")
def test_nothing_of_a_call_without_a_verdict_reaches_the_server_with_the_list() -> None:
    session = new_session()
    sent = {"name": "t", "_meta": {"x/note": "a secret", "callId": "not an id"}}
    session.receive(agent({**call(1, "t"), "params": sent}))
    (frame,) = session.receive(judged(1, LIST_FIRST))
    assert isinstance(frame, ToServer)
    assert json.loads(frame.data)["params"] == {}


@pytest.mark.promise("annotations")
def test_the_call_is_judged_again_when_the_list_is_complete() -> None:
    session = listing(1, 2)
    page = result(FIRST, {"tools": [{"name": "t"}, 5], "nextCursor": "more"})
    (screen,) = session.receive(server(page))
    assert screen == ScreenList(FIRST, "tools/list", ({"name": "t"},), 0.0, False)
    (frame,) = session.receive(ListScreened(FIRST, frozenset(), 0.0))
    assert isinstance(frame, ToServer)
    assert json.loads(frame.data)["params"] == {"cursor": "more"}
    session.receive(server(result(FIRST, {"tools": []})))
    assert again(session, ListScreened(FIRST, frozenset(), 0.0)) == [(1, DONE), (2, DONE)]


@pytest.mark.parametrize(
    "event",
    [
        server(result(FIRST, {"tools": 5})),
        server({"jsonrpc": "2.0", "id": FIRST, "error": {"code": 1, "message": ""}}),
        NotSent(FIRST, "upstream_connection_failed", 0.0),
        Ticked(WAIT_S + 1),
    ],
    ids=["unreadable", "error", "not sent", "late"],
)
def test_without_a_list_the_call_is_judged_all_the_same(event: Any) -> None:
    assert again(listing(), event) == [(1, FAILED)]


def test_a_list_without_end_is_given_up() -> None:
    session = listing()
    page = server(result(FIRST, {"tools": [], "nextCursor": "x"}))
    for _ in range(MAX_PAGES - 1):
        session.receive(page)
        session.receive(ListScreened(FIRST, frozenset(), 0.0))
    assert again(session, page) == [(1, FAILED)]


def test_a_call_that_ended_meanwhile_is_not_judged() -> None:
    session = listing(1)
    session.receive(ServerGone("gone", 0.0))
    assert session.receive(ListScreened(FIRST, frozenset(), 0.0)) == []


def test_the_agent_cannot_take_the_id_of_the_list_nor_see_it() -> None:
    (
        play(listing())
        .when(agent(request(FIRST, "ping"))).then(fails(FIRST, "invalid_request"))
        .when(server(result(FIRST, {"tools": []}))).then(Some(ScreenList))
        .when(ListScreened(FIRST, frozenset(), 0.0)).then(Some(JudgeCall))
        .when(judged(1, YES)).then(Some(ToServer))
    )  # fmt: skip


@pytest.mark.promise("annotations")
def test_the_list_takes_no_id_that_a_request_of_the_agent_has() -> None:
    session = new_session()
    session.receive(agent(request(FIRST, "ping")))
    session.receive(agent(call(2, "t")))
    (frame,) = session.receive(judged(2, LIST_FIRST))
    assert isinstance(frame, ToServer)
    assert frame.key == "thoughtgate/tools/2"


@pytest.mark.promise("annotations")
def test_the_agent_gets_no_list_that_comes_late() -> None:
    session = listing()
    session.receive(Ticked(WAIT_S + 1))
    (
        play(session)
        .when(agent(request(FIRST, "ping"))).then(fails(FIRST, "invalid_request"))
        .when(server(result(FIRST, {"tools": [{"name": "hidden"}]}))).then()
    )  # fmt: skip


def test_the_id_of_a_call_that_was_cancelled_meanwhile_is_free_again() -> None:
    session = listing(1)
    session.receive(agent(notification("notifications/cancelled", {"requestId": 1})))
    session.receive(server(result(FIRST, {"tools": []})))
    session.receive(ListScreened(FIRST, frozenset(), 0.0))
    assert session.is_untouched
