"""Signatures: nothing altered, moved, old or replayed passes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.channels import webhook_signature as signing
from thoughtgate.channels.webhook_signature import (
    DECISION,
    QUESTION,
    Nonces,
    Signed,
    sign,
    signed_by,
    why_not,
)

KEY, NOW, NONCE = b"key", 1_700_000_000.0, "0123456789abcdef"


def test_what_was_signed_passes() -> None:
    signed = sign(KEY, QUESTION, b"{}", NONCE, NOW)

    assert why_not(KEY, QUESTION, b"{}", signed, NOW + 100) == ""
    assert why_not(KEY, QUESTION, b"{}", signed_by(signed.headers()), NOW) == ""


def test_headers_are_found_in_any_case() -> None:
    signed = sign(KEY, QUESTION, b"{}", NONCE, NOW)

    assert signed_by({name.upper(): value for name, value in signed.headers().items()}) == signed


@pytest.mark.parametrize(
    ("key", "purpose", "body", "at", "expected"),
    [
        (b"other", QUESTION, b"{}", NOW, "wrong signature"),
        (KEY, DECISION, b"{}", NOW, "wrong signature"),
        (KEY, QUESTION, b"{ }", NOW, "wrong signature"),
        (KEY, QUESTION, b"{}", NOW + 301, "out of date"),
        (KEY, QUESTION, b"{}", NOW - 301, "out of date"),
    ],
)
def test_what_differs_does_not_pass(
    key: bytes, purpose: str, body: bytes, at: float, expected: str
) -> None:
    signed = sign(KEY, QUESTION, b"{}", NONCE, NOW)

    assert why_not(key, purpose, body, signed, at) == expected


def test_no_signature_is_unsigned() -> None:
    assert why_not(KEY, QUESTION, b"{}", signed_by({}), NOW) == "unsigned"


def test_a_short_nonce_does_not_pass() -> None:
    assert why_not(KEY, QUESTION, b"", sign(KEY, QUESTION, b"", "short", NOW), NOW) == "wrong nonce"


def test_a_timestamp_that_is_no_number_does_not_pass() -> None:
    signed = Signed("soon", NONCE, "v1=" + signing._seal(KEY, QUESTION, "soon", NONCE, b""))

    assert why_not(KEY, QUESTION, b"", signed, NOW) == "out of date"


def test_parts_cannot_be_moved_into_one_another() -> None:
    one = signing._seal(KEY, "ab", "c", "d", b"")

    assert one != signing._seal(KEY, "a", "bc", "d", b"")
    assert one != signing._seal(KEY, "ab", "", "cd", b"")


def test_a_nonce_counts_once_and_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "MAX_NONCES", 2)
    nonces = Nonces()

    assert nonces.take("a", NOW)
    assert not nonces.take("a", NOW)
    assert nonces.take("b", NOW)
    assert not nonces.take("c", NOW), "a flood is refused, not let through"
    assert nonces.take("c", NOW + 2 * signing.WINDOW_S + 1)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80), st.text(max_size=20), st.text(max_size=40))
def test_no_made_up_signature_passes(signature: str, timestamp: str, nonce: str) -> None:
    assert why_not(KEY, QUESTION, b"{}", Signed(timestamp, nonce, signature), NOW)
