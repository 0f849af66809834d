"""What the gate itself says on the wire."""

import json

import pytest

from thoughtgate.errors import KINDS, code_of
from thoughtgate.wire.replies import (
    MESSAGES,
    error_object,
    render,
    render_cancelled,
    render_error,
    render_progress,
)


def test_each_kind_has_its_words() -> None:
    assert MESSAGES.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("modern", [False, True])
def test_an_error_has_its_code_its_kind_and_its_words(kind: str, *, modern: bool) -> None:
    body = json.loads(render_error("a", kind, modern=modern))

    assert body == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {
            "code": code_of(kind, modern=modern),
            "message": MESSAGES[kind],
            "data": {"kind": kind},
        },
    }


def test_facts_stand_in_data_and_empty_ones_do_not() -> None:
    error = error_object(
        "budget",
        message="no more",
        gate="limits",
        tool="t",
        correlation_id="c.1",
        details={"retry_after": 2.5},
    )

    assert error["message"] == "no more"
    assert error["data"] == {
        "kind": "budget",
        "gate": "limits",
        "tool": "t",
        "correlation_id": "c.1",
        "retry_after": 2.5,
    }


def test_an_unreadable_id_is_null() -> None:
    assert json.loads(render_error(None, "parse_error"))["id"] is None


def test_progress_has_the_callers_token_in_its_own_type() -> None:
    for token in (0, "0"):
        body = json.loads(render_progress(token, 3, "waiting"))
        assert body["params"] == {"progressToken": token, "progress": 3, "message": "waiting"}
        assert body["method"] == "notifications/progress"
        assert "id" not in body


def test_a_cancellation_names_the_request() -> None:
    body = json.loads(render_cancelled(7, "late"))

    assert body["method"] == "notifications/cancelled"
    assert body["params"] == {"requestId": 7, "reason": "late"}


def test_a_rendered_message_is_one_line_even_with_line_ends_in_it() -> None:
    line = render({"text": "a\nb\rc\u2028d"})

    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line) == {"text": "a\nb\rc\u2028d"}


def test_what_the_gate_renders_has_one_line_for_every_reader() -> None:
    line = render({"t": "a\u2028b\u2029c\u0085d", "é": "é"})
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line) == {"t": "a\u2028b\u2029c\u0085d", "é": "é"}
