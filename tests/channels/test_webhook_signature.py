"""Signatures: nothing altered, moved, old or replayed passes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.channels import webhook_signature as signing
from thoughtgate.channels.webhook_signature import (
    DECISION,
    QUESTION,
    Nonces,
    SignatureHeaders,
    read_signature,
    sign,
    signature_error,
)

KEY, NOW, NONCE = b"key", 1_700_000_000.0, "0123456789abcdef"


def test_what_was_signed_passes() -> None:
    signed = sign(KEY, QUESTION, b"{}", NONCE, NOW)

    assert signature_error(KEY, QUESTION, b"{}", signed, NOW + 100) == ""
    assert signature_error(KEY, QUESTION, b"{}", read_signature(signed.headers()), NOW) == ""


def test_headers_are_found_in_any_case() -> None:
    signed = sign(KEY, QUESTION, b"{}", NONCE, NOW)

    assert (
        read_signature({name.upper(): value for name, value in signed.headers().items()}) == signed
    )


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

    assert signature_error(key, purpose, body, signed, at) == expected


def test_no_signature_is_unsigned() -> None:
    assert signature_error(KEY, QUESTION, b"{}", read_signature({}), NOW) == "unsigned"


def test_a_short_nonce_does_not_pass() -> None:
    assert (
        signature_error(KEY, QUESTION, b"", sign(KEY, QUESTION, b"", "short", NOW), NOW)
        == "wrong nonce"
    )


def test_a_timestamp_that_is_no_number_does_not_pass() -> None:
    signed = SignatureHeaders(
        "soon", NONCE, "v1=" + signing._signature(KEY, QUESTION, "soon", NONCE, b"")
    )

    assert signature_error(KEY, QUESTION, b"", signed, NOW) == "out of date"


def test_parts_cannot_be_moved_into_one_another() -> None:
    one = signing._signature(KEY, "ab", "c", "d", b"")

    assert one != signing._signature(KEY, "a", "bc", "d", b"")
    assert one != signing._signature(KEY, "ab", "", "cd", b"")


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
    assert signature_error(KEY, QUESTION, b"{}", SignatureHeaders(timestamp, nonce, signature), NOW)
