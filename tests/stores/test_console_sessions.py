"""Sessions of the console in the store, on both engines."""

import time
from collections.abc import Iterator

import pytest

from thoughtgate.stores.console_sessions import ConsoleSessionStore
from thoughtgate.stores.open_database import StoreLocation, open_database

NOW = time.time()


@pytest.fixture
def stores(location: StoreLocation) -> Iterator[tuple[ConsoleSessionStore, ConsoleSessionStore]]:
    """Return the stores of two gates."""
    both = tuple(ConsoleSessionStore(open_database(location)) for _ in range(2))
    yield both[0], both[1]
    for each in both:
        each.close()


def add(store: ConsoleSessionStore, ident: str, subject: str = "ann", at: float = NOW) -> None:
    store.add(ident, subject, at + 100, at, per_person=2, total=3)


def test_a_session_exists_at_every_gate_until_it_expires(
    stores: tuple[ConsoleSessionStore, ConsoleSessionStore],
) -> None:
    one, other = stores
    add(one, "a")
    found = other.find("a", NOW)
    assert found is not None
    assert found.subject == "ann"
    assert found.expires_at == pytest.approx(NOW + 100, abs=0.001)
    assert other.find("a", NOW + 101) is None
    assert other.find("b", NOW) is None


def test_a_session_that_was_ended_exists_nowhere(
    stores: tuple[ConsoleSessionStore, ConsoleSessionStore],
) -> None:
    one, other = stores
    add(one, "a")
    other.end("a")
    assert one.find("a", NOW) is None


def test_the_oldest_sessions_end_when_there_are_too_many(
    stores: tuple[ConsoleSessionStore, ConsoleSessionStore],
) -> None:
    one, other = stores
    for number, (ident, subject) in enumerate([("a", "ann"), ("b", "bob"), ("c", "ann")]):
        add(one, ident, subject, NOW + number)
    add(other, "d", "ann", NOW + 3)
    assert [bool(one.find(ident, NOW)) for ident in "abcd"] == [False, True, True, True]
    add(other, "e", "eve", NOW + 4)
    assert [bool(one.find(ident, NOW)) for ident in "abcde"] == [False, False, True, True, True]
    add(other, "f", "eve", NOW + 300)
    assert [bool(one.find(ident, NOW)) for ident in "cdef"] == [False, False, False, True]


def test_a_form_is_used_once(stores: tuple[ConsoleSessionStore, ConsoleSessionStore]) -> None:
    one, other = stores
    assert one.use_form(b"n", NOW + 10, NOW)
    assert not other.use_form(b"n", NOW + 10, NOW)
    assert other.use_form(b"m", NOW + 10, NOW)
