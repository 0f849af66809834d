"""The registry of kinds, the exceptions, and how they become exit codes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.errors import (
    CAUSES,
    KINDS,
    MAX_RETRY_AFTER_S,
    ConfigError,
    Conflict,
    PeerError,
    PeerGone,
    Problem,
    RecordError,
    ServerExited,
    StoreError,
    ThoughtGateError,
    UsageError,
    code_of,
    exit_code,
    upstream_error,
    visible,
)

STANDARD = {-32700, -32600, -32601, -32602, -32603}


def test_own_codes_leave_the_reserved_range_for_modern_callers() -> None:
    for kind, code in KINDS.items():
        modern = code_of(kind, modern=True)
        assert code_of(kind) == code
        assert modern == (code if code in STANDARD else code + 1000)
        assert not -32099 <= modern <= -32000


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("policy_denied", -32003),
        ("approval_rejected", -32007),
        ("approval_timeout", -32008),
        ("budget", -32009),
        ("service_unavailable", -32013),
        ("governance_denied", -32014),
        ("not_exposed", -32015),
        ("upstream_connection_failed", -32000),
        ("upstream_tls_failed", -32000),
        ("upstream_unauthorized", -32000),
        ("upstream_bad_response", -32000),
        ("insufficient_scope", -32012),
        ("tool_call_timeout", -32001),
    ],
)
@pytest.mark.requirement("ERR-001")
def test_a_kind_has_the_registered_code(kind: str, code: int) -> None:
    assert code_of(kind) == code


def test_an_unknown_kind_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        code_of("no_such_kind")


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("a.b", "is wrong"), "a.b: is wrong"),
        (Problem("", "is empty", "f.yaml"), "f.yaml: is empty"),
        (Problem("a", "is wrong", "f.yaml", 3), "f.yaml:3: a: is wrong"),
    ],
)
def test_a_problem_names_its_place(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_a_config_error_tells_every_problem() -> None:
    error = ConfigError([Problem("a", "one"), Problem("b", "two")])

    assert str(error) == "a: one\nb: two"
    assert [problem.key for problem in error.problems] == ["a", "b"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError([]), 1),
        (UsageError("x"), 2),
        (PeerError("parse_error", "x"), 2),
        (PeerGone("x"), 2),
        (RecordError("x"), 2),
        (StoreError("x"), 2),
        (Conflict("x"), 2),
        (ThoughtGateError("x"), 2),
        (ValueError("x"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_exception_has_one_exit_code(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_a_peer_error_says_how_the_protocol_was_broken() -> None:
    assert PeerError("parse_error", "x").kind == "parse_error"


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_a_cause_has_a_kind_and_a_reason(cause: str) -> None:
    kind, reason = CAUSES[cause]
    error = upstream_error(cause)

    assert kind in KINDS
    assert (error.kind, error.cause, str(error)) == (kind, cause, reason)
    assert error.facts == {"cause": cause, "reason": reason}


def test_an_error_of_a_server_keeps_its_status_and_when_to_try_again() -> None:
    error = upstream_error("unavailable", status=503, retry_after=7)

    assert error.kind == "upstream_bad_response"
    assert error.facts == {
        "cause": "unavailable",
        "status": 503,
        "retry_after": 7,
        "reason": "the server is temporarily unavailable (HTTP status 503)",
    }


@pytest.mark.parametrize(("said", "kept"), [(-1, 0), (10**12, MAX_RETRY_AFTER_S)])
def test_the_time_to_try_again_has_bounds(said: int, kept: int) -> None:
    assert upstream_error("unavailable", retry_after=said).retry_after == kept


def test_a_peer_that_is_gone_has_a_cause() -> None:
    assert PeerGone("x").facts == {"cause": "connection_lost", "reason": "x"}
    assert ServerExited("x").facts == {"cause": "exited", "reason": "x"}


def test_a_problem_writes_nothing_to_a_terminal_but_text() -> None:
    problem = Problem("servers.a\x1b[2J\nError: é", "no\x07\nsuch file", "c\r.yaml", 3)
    assert str(problem) == (
        "c[U+000D].yaml:3: servers.a[U+001B][2J[U+000A]Error: é: no[U+0007]\nsuch file"
    )


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_visible_text_is_printable_and_stays_as_it_is_when_shown_again(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert visible(shown) == shown
    if text.isprintable() and text.isascii():
        assert shown == text


@pytest.mark.promise("approver-sees-invisible-characters")
@pytest.mark.parametrize(
    "char",
    [
        *map(chr, range(0x200B, 0x2010)),
        *map(chr, range(0x202A, 0x202F)),
        *map(chr, range(0x2066, 0x206A)),
        *"\u3164\u115f\u1160\uffa0\u034f\u2800\u00ad\u180b\u180e\u17b4",
        *"\ufe00\ufe0f\U000e0100\U000e0041\ue000\U0010ffff\x00\x1b\x7f\x9b",
        *"\u00a0\u2003\u3000\u2028\ud800",
    ],
)
def test_a_character_that_shows_nothing_or_turns_the_text_is_written_out(char: str) -> None:
    assert visible(f"rm{char}x") == f"rm[U+{ord(char):04X}]x"


@pytest.mark.parametrize("text", ["Größe", "日本語", "a\u0301", "ไม่มีที่นี่", "שָׁלוֹם", "🙂", "नमस्ते"])
def test_the_writing_of_people_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_marks_piled_on_one_character_are_written_out() -> None:
    assert visible("a" + "\u0301" * 6 + "b") == "a" + "\u0301" * 4 + "[U+0301][U+0301]b"
