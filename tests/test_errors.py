"""The registry of kinds, the exceptions, and how they become exit codes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.errors import (
    KINDS,
    ConfigError,
    Conflict,
    PeerError,
    PeerGone,
    Problem,
    RecordError,
    StoreError,
    ThoughtGateError,
    UsageError,
    code_of,
    exit_code,
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


def test_a_problem_writes_nothing_to_a_terminal_but_text() -> None:
    problem = Problem("servers.a\x1b[2J\nError: é", "no\x07\nsuch file", "c\r.yaml", 3)
    assert str(problem) == r"c\r.yaml:3: servers.a\x1b[2J\nError: é: no\x07" + "\nsuch file"


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_visible_text_is_printable_and_printable_text_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    if text.isprintable():
        assert shown == text
