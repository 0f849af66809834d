"""Pinned definitions in the shared store."""

import json
from collections.abc import Iterator

import pytest
from tests.support.approvals import NOW, an_approval

from thoughtgate.core.approval import Approval, Vote
from thoughtgate.core.definitions.pinned import define
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.pins import (
    ACCEPTED,
    FIRST_SEEN,
    HELD,
    MAX_HISTORY,
    REFUSED,
    Pin,
    PinStore,
    server_key,
    server_of,
)

KEY = server_key("files", ("npx", "files"))
FOUND = ({"check": "hidden-characters", "tier": "hard", "where": "/description:1-2", "what": "x"},)


def pin(name: str, text: str, status: str = HELD, key: str = KEY) -> Pin:
    said = define("tool", name, {"name": name, "description": text})
    by = FIRST_SEEN if status == ACCEPTED else ""
    return Pin(key, "tool", name, said.digest, status, said.text, FOUND, NOW, by)


@pytest.fixture
def approvals(location: StoreLocation) -> Iterator[ApprovalStore]:
    store = ApprovalStore(open_database(location))
    yield store
    store.close()


@pytest.fixture
def pins(approvals: ApprovalStore) -> PinStore:
    return approvals.pins()


def question(change_set: str) -> Approval:
    owner = f"definitions:{change_set}"
    about = {"id": "aaaaaa", "digest": change_set, "server": "files", "kind": "definition"}
    return an_approval(**about, tool=KEY, arguments="{}", remember=False, owner=owner)


def statuses(pins: PinStore, key: str = KEY) -> dict[tuple[str, str], str]:
    return {
        (one.name, json.loads(one.text).get("description", "")): one.status
        for one in pins.of_server(key)
    }


def test_servers_that_are_called_the_same_do_not_share_pins(pins: PinStore) -> None:
    other = server_key("files", ("npx", "other"))
    assert other != KEY
    assert {server_of(KEY), server_of(other), server_of(server_key("files", ()))} == {"files"}
    assert server_key("a", ("bc",)) != server_key("a", ("b", "c"))
    pins.add(KEY, [pin("read", "one", ACCEPTED)], [], NOW)
    assert pins.of_server(other) == []
    assert pins.servers() == [KEY]


def test_what_was_first_seen_is_kept_with_its_findings(pins: PinStore) -> None:
    pins.add(KEY, [pin("read", "one", ACCEPTED)], ["tools/list"], NOW)
    whole, found = sorted(pins.of_server(KEY), key=lambda one: one.kind)
    assert (whole.kind, whole.name) == ("list", "tools/list")
    assert (found.status, found.by, found.findings) == (ACCEPTED, FIRST_SEEN, FOUND)
    assert found.definition.body["description"] == "one"


def test_a_gate_that_comes_second_does_not_accept_something_else(pins: PinStore) -> None:
    pins.add(KEY, [pin("read", "one", ACCEPTED)], [], NOW)
    pins.add(KEY, [pin("read", "two", ACCEPTED)], [], NOW)
    assert statuses(pins) == {("read", "one"): ACCEPTED, ("read", "two"): HELD}
    assert [one.name for one in pins.waiting()] == ["read"]


def test_a_held_definition_replaces_the_one_held_before(pins: PinStore) -> None:
    pins.add(KEY, [pin("read", "two")], [], NOW)
    pins.add(KEY, [pin("read", "three")], [], NOW)
    assert statuses(pins) == {("read", "three"): HELD}
    pins.take_back(KEY, [("tool", "read")])
    assert statuses(pins) == {}


def test_an_accepted_definition_replaces_the_one_before(pins: PinStore) -> None:
    pins.add(KEY, [pin("read", "one", ACCEPTED), pin("read", "two")], [], NOW)
    decided = pins.decide([pin("read", "two")], ACCEPTED, "terminal:ann", NOW + 1)
    assert [one.name for one in decided] == ["read"]
    assert statuses(pins) == {("read", "two"): ACCEPTED}
    assert pins.decide([pin("read", "two")], ACCEPTED, "terminal:bob", NOW + 2) == []
    assert pins.decide([pin("read", "gone")], ACCEPTED, "terminal:bob", NOW + 2) == []
    (past,) = pins.history(KEY, "tool", "read")
    assert (past.status, past.by, past.at) == (ACCEPTED, "terminal:ann", NOW + 1)


def test_the_history_of_a_definition_is_bounded(pins: PinStore) -> None:
    pins.add(KEY, [pin("read", "one")], [], NOW)
    for number in range(MAX_HISTORY + 2):
        pins.decide([pin("read", "one")], (ACCEPTED, REFUSED)[number % 2], "terminal:ann", NOW)
    assert len(pins.history(KEY, "tool", "read")) == MAX_HISTORY


def test_a_definition_that_cannot_be_shown_cannot_be_accepted(pins: PinStore) -> None:
    unreadable = pin("read", "one")._replace(text="", digest="unreadable")
    pins.add(KEY, [unreadable], [], NOW)
    assert pins.decide([unreadable], ACCEPTED, "terminal:ann", NOW) == []
    assert pins.decide([unreadable], REFUSED, "terminal:ann", NOW) != []


@pytest.mark.parametrize("approve", [True, False])
def test_an_answer_settles_exactly_what_was_asked(
    approvals: ApprovalStore, pins: PinStore, *, approve: bool
) -> None:
    pins.add(KEY, [pin("read", "one", ACCEPTED), pin("read", "two"), pin("new", "x")], [], NOW)
    pins.offer(KEY, "set", [pin("read", "two")])
    assert isinstance(approvals.ask_standing(question("set"), NOW), Approval)
    approvals.vote("aaaaaa", [Vote("terminal:ann", approve, NOW + 1)], NOW + 1)
    kept = (
        {("read", "two"): ACCEPTED}
        if approve
        else {("read", "one"): ACCEPTED, ("read", "two"): REFUSED}
    )
    assert statuses(pins) == {**kept, ("new", "x"): HELD}


def test_a_forgotten_server_is_seen_for_the_first_time_again(pins: PinStore) -> None:
    pins.add(KEY, [pin("read", "one", ACCEPTED)], ["tools/list"], NOW)
    before = pins.state()
    pins.forget(KEY)
    assert pins.of_server(KEY) == []
    assert pins.state() != before
