"""The shapes of messages: values that cannot be changed."""

import pytest

from thoughtgate.wire.message import NOTIFICATION, REQUEST, RESPONSE, Fault, Message


def test_the_three_shapes_have_different_names() -> None:
    assert len({REQUEST, RESPONSE, NOTIFICATION}) == 3


def test_a_message_cannot_be_changed_after_it_was_judged() -> None:
    message = Message(REQUEST, 1, "ping", {}, b"{}")

    with pytest.raises(AttributeError):
        message.raw = b"other"  # type: ignore[misc]  # the assignment is what is tested


def test_a_fault_is_answered_unless_it_says_otherwise() -> None:
    fault = Fault("parse_error", "no", "malformed_json")

    assert fault.answerable
    assert fault.id is None
