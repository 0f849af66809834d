"""What gates tell each other about sessions: which have ended, and messages for their requests."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from thoughtgate.stores.engines.sqlite import SqliteDatabase, open_sqlite
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.sessions import MESSAGE_S, SessionStore


@pytest.fixture
def stores(location: StoreLocation) -> Iterator[tuple[SessionStore, SessionStore]]:
    """Return the stores of two gates."""
    with contextlib.ExitStack() as stack:
        made = [SessionStore(open_database(location)) for _ in range(2)]
        for one in made:
            stack.callback(one.close)
        yield made[0], made[1]


def test_a_session_that_ended_at_one_gate_has_ended_at_the_other(
    stores: tuple[SessionStore, SessionStore],
) -> None:
    one, other = stores
    now = time.time()
    before = other.latest_end()
    assert not other.is_ended("a")
    one.end("a", now + 60, now)
    one.end("a", now + 60, now)
    one.end("b", now + 60, now)
    assert other.is_ended("a")
    names, rev = other.ended_since(before)
    assert names == ["a", "b"]
    assert other.ended_since(rev) == ([], rev)
    assert other.latest_end() == rev


def test_an_ended_session_is_remembered_as_long_as_its_id_could_be_used(
    stores: tuple[SessionStore, SessionStore],
) -> None:
    one, other = stores
    now = time.time()
    one.end("old", now - 5, now)
    one.end("new", now + 60, now)
    assert not other.is_ended("old")
    assert other.is_ended("new")


class AheadDatabase(SqliteDatabase):
    """A store whose clock is an hour ahead of this machine's."""

    def time(self, at: float) -> float:
        return at + 3600.0


def test_an_ended_session_is_remembered_although_the_clock_of_the_store_is_ahead(
    tmp_path: Path,
) -> None:
    made = open_sqlite(tmp_path)
    made.close()
    connection = sqlite3.connect(made.path, isolation_level=None)
    with contextlib.closing(SessionStore(AheadDatabase(connection, made.path))) as store:
        now = time.time()
        store.end("first", now + 60, now)
        store.end("second", now + 60, now)
        assert store.is_ended("first")


def test_a_message_is_taken_once(stores: tuple[SessionStore, SessionStore]) -> None:
    one, other = stores
    now = time.time()
    number = one.send("a", b'{"id":1}', now)
    one.send("b", b"{}", now)
    (carried,) = other.waiting({"a", "c"})
    assert (carried.number, carried.session, carried.body) == (number, "a", b'{"id":1}')
    assert one.is_waiting(number)
    assert other.take(number)
    assert not one.take(number)
    assert not one.is_waiting(number)
    assert other.waiting({"a"}) == []


def test_messages_are_in_their_order_and_expire(stores: tuple[SessionStore, SessionStore]) -> None:
    one, other = stores
    now = time.time()
    one.send("a", b"lost", now - MESSAGE_S - 60)
    for text in (b"1", b"2", b"3"):
        one.send("a", text, now)
    assert [carried.body for carried in other.waiting({"a"})] == [b"1", b"2", b"3"]


def test_every_change_is_noticed(stores: tuple[SessionStore, SessionStore]) -> None:
    from tests.support.waiting import wait_for

    one, other = stores
    now = time.time()
    seen = other.state()
    number = one.send("a", b"{}", now)
    wait_for(lambda: other.state() != seen, what="the message")
    seen = one.state()
    other.take(number)
    wait_for(lambda: one.state() != seen, what="that it was taken")
    seen = other.state()
    one.end("a", now + 60, now)
    wait_for(lambda: other.state() != seen, what="the end")
