"""Previews: masked before they are cut, and never longer than they may be."""

import pytest

from thoughtgate.policy.previews import MAX_INSPECT, TRUNCATED, preview
from thoughtgate.policy.redaction import Redactor
from thoughtgate.wire.canonical import canonical_json

REDACTOR = Redactor()


def test_a_short_value_is_shown_whole_whether_or_not_its_text_is_known() -> None:
    value = {"b": 1, "a": "ü"}
    text = canonical_json(value)
    assert preview(value, text, 10, 100, REDACTOR) == (text, False)
    assert preview(value, "", 10, 100, REDACTOR) == (text, False)


def test_a_secret_is_masked_although_the_text_is_known() -> None:
    value = {"password": "hunter2"}
    text, _ = preview(value, canonical_json(value), 10, 100, REDACTOR)
    assert "hunter2" not in text


@pytest.mark.parametrize("limit", [0, 5, 20, 40])
def test_a_long_value_is_cut(limit: int) -> None:
    text, is_cut = preview({"a": "ü" * 100}, "", 10, limit, REDACTOR)
    assert is_cut
    assert text.endswith(TRUNCATED)
    assert len(text.encode()) <= max(limit, len(TRUNCATED))


def test_a_value_of_exactly_the_limit_is_whole() -> None:
    text = canonical_json({"a": "x" * 10})
    assert preview({"a": "x" * 10}, text, 10, len(text), REDACTOR) == (text, False)


def test_a_value_of_a_huge_request_is_not_looked_at() -> None:
    assert preview({"a": 1}, "", MAX_INSPECT + 1, 100, REDACTOR) == (TRUNCATED, True)
