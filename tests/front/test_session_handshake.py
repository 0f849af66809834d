"""The handshake that a session id carries."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.json_values import json_values

from thoughtgate.front.session_handshake import (
    MAX_SEALED,
    Handshake,
    handshake_of,
    parse_handshake,
)

PARAMS: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"elicitation": {}, "roots": {"listChanged": True}, "experimental": {"x": {}}},
    "clientInfo": {"name": "agent", "version": "1.2", "title": "An Agent"},
}


def test_another_gate_learns_what_the_agent_said() -> None:
    made = handshake_of(PARAMS, 1_700_000_000.9)
    read = parse_handshake(made.render())
    assert read == made
    assert read.opened_at == 1_700_000_000
    assert read.params == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}, "roots": {"listChanged": True}},
        "clientInfo": {"name": "agent", "version": "1.2"},
    }


@given(json_values())
def test_whatever_an_agent_sends_fits_into_an_id(params: Any) -> None:
    text = handshake_of(params, 5.0).render()
    assert len(text) <= MAX_SEALED
    assert "." not in text
    assert text.isascii()
    assert parse_handshake(text) is not None


def test_what_is_too_long_is_left_out() -> None:
    capabilities: dict[str, Any] = {"sampling": {str(number): {} for number in range(200)}}
    long = handshake_of({**PARAMS, "capabilities": capabilities}, 5.0)
    read = parse_handshake(long.render())
    assert read == Handshake(5, "2025-06-18", ("agent", "1.2"), {})
    names = {"name": "\u1234" * 200, "version": "\u1234" * 200}
    assert parse_handshake(handshake_of({"clientInfo": names}, 5.0).render()) == Handshake(5)


@pytest.mark.parametrize("text", ["", "x", "e30", "W10", "WzFd", "\u00e9", "bnVsbA"])
def test_what_is_no_handshake_is_none(text: str) -> None:
    assert parse_handshake(text) is None


@given(st.text(max_size=50))
def test_no_text_breaks_the_parser(text: str) -> None:
    parse_handshake(text)
