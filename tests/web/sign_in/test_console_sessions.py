"""Codes, sessions and form tokens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.testing.fake_clock import FakeClock
from thoughtgate.web.sign_in import console_sessions as module
from thoughtgate.web.sign_in.console_sessions import (
    FORM_S,
    LINK_S,
    MAX_SESSIONS,
    SESSION_S,
    ConsoleSession,
    ConsoleSessions,
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sessions(clock: FakeClock) -> ConsoleSessions:
    return ConsoleSessions(8080, clock)


def new_code(sessions: ConsoleSessions) -> str:
    return sessions.new_link().rpartition("/")[2]


def signed_in(sessions: ConsoleSessions) -> ConsoleSession:
    value = sessions.sign_in(new_code(sessions))
    assert value is not None
    session = sessions.find(value)
    assert session is not None
    return session


def test_a_code_signs_in_once(sessions: ConsoleSessions) -> None:
    code = new_code(sessions)

    assert sessions.sign_in(code) is not None
    assert sessions.sign_in(code) is None


def test_a_code_that_nobody_used_expires(sessions: ConsoleSessions, clock: FakeClock) -> None:
    early, late = new_code(sessions), new_code(sessions)
    clock.advance(LINK_S - 1)
    assert sessions.sign_in(early) is not None
    clock.advance(1)

    assert sessions.sign_in(late) is None


def test_a_wrong_code_signs_nobody_in(sessions: ConsoleSessions) -> None:
    new_code(sessions)

    assert sessions.sign_in("guess") is None
    assert sessions.sign_in("") is None


def test_the_link_holds_the_code(sessions: ConsoleSessions) -> None:
    link = sessions.new_link()

    assert link.startswith("http://127.0.0.1:8080/login/")
    assert sessions.sign_in(link.rpartition("/")[2]) is not None


def test_consoles_on_other_ports_have_other_cookies(clock: FakeClock) -> None:
    assert ConsoleSessions(1, clock).cookie != ConsoleSessions(2, clock).cookie


def test_a_cookie_that_nobody_was_given_is_nobodys(sessions: ConsoleSessions) -> None:
    assert sessions.find("made up") is None


def test_a_session_ends_by_itself(sessions: ConsoleSessions, clock: FakeClock) -> None:
    value = sessions.sign_in(new_code(sessions)) or ""
    clock.advance(SESSION_S + 1)

    assert sessions.find(value) is None


def test_a_session_ends_when_its_browser_signs_out(sessions: ConsoleSessions) -> None:
    value = sessions.sign_in(new_code(sessions)) or ""
    session = sessions.find(value)
    assert session is not None
    sessions.sign_out(session)

    assert sessions.find(value) is None


def test_the_oldest_session_ends_when_there_are_too_many(sessions: ConsoleSessions) -> None:
    values = [sessions.sign_in(new_code(sessions)) or "" for _ in range(MAX_SESSIONS + 1)]

    assert sessions.find(values[0]) is None
    assert all(sessions.find(value) for value in values[1:])


def test_a_form_is_good_for_once(sessions: ConsoleSessions) -> None:
    session = signed_in(sessions)
    token = sessions.form_token(session, "decide", "a1")

    assert sessions.spend(session, token, "decide", "a1")
    assert not sessions.spend(session, token, "decide", "a1")


@pytest.mark.parametrize(
    "about",
    [("decide", "a2"), ("revoke", "a1"), ("decidea", "1"), ("decide", "a1", ""), ("decide",)],
)
def test_a_form_is_good_for_what_it_was_made_for(
    sessions: ConsoleSessions, about: tuple[str, ...]
) -> None:
    session = signed_in(sessions)
    token = sessions.form_token(session, "decide", "a1")

    assert not sessions.spend(session, token, *about)
    assert sessions.spend(session, token, "decide", "a1"), "a failed attempt must not spend it"


def test_a_form_of_another_session_is_no_good(sessions: ConsoleSessions) -> None:
    mine, other = signed_in(sessions), signed_in(sessions)

    assert not sessions.spend(mine, sessions.form_token(other, "decide", "a1"), "decide", "a1")


def test_an_old_form_is_no_good(sessions: ConsoleSessions, clock: FakeClock) -> None:
    session = signed_in(sessions)
    token = sessions.form_token(session, "decide")
    clock.advance(FORM_S + 1)

    assert not sessions.spend(session, token, "decide")


def test_used_forms_are_forgotten_once_they_are_too_old(
    sessions: ConsoleSessions, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SPENT", 2)
    session = signed_in(sessions)
    tokens = [sessions.form_token(session, "x") for _ in range(3)]

    assert [sessions.spend(session, token, "x") for token in tokens] == [True, True, False]
    clock.advance(FORM_S + 1)
    assert sessions.spend(session, sessions.form_token(session, "x"), "x")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_no_text_is_a_token(text: str) -> None:
    sessions = ConsoleSessions(1, FakeClock())

    assert not sessions.spend(signed_in(sessions), text, "decide")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_altered_token_is_good(data: st.DataObject) -> None:
    sessions = ConsoleSessions(1, FakeClock())
    session = signed_in(sessions)
    token = sessions.form_token(session, "decide")
    at = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("0123456789abcdef."))
    altered = token[:at] + letter + token[at + 1 :]

    assert sessions.spend(session, altered, "decide") == (altered == token)
