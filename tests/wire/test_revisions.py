"""Telling a request's era from its own words, and its progress token."""

from typing import Any

import pytest
from tests.support.frames import envelope

from thoughtgate.wire.revisions import (
    LATEST,
    LATEST_LEGACY,
    SUPPORTED,
    is_modern,
    progress_token,
    version_in,
)


def test_the_latest_revisions_are_supported() -> None:
    assert (LATEST_LEGACY, LATEST) == ("2025-11-25", "2026-07-28")
    assert {LATEST_LEGACY, LATEST} <= set(SUPPORTED)


def test_a_self_describing_request_is_modern() -> None:
    params = {"_meta": envelope()}

    assert version_in(params) == LATEST
    assert is_modern(params)


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"_meta": None},
        {"_meta": []},
        {"_meta": {}},
        {"_meta": {"io.modelcontextprotocol/protocolVersion": 20260728}},
    ],
)
def test_anything_else_is_legacy(params: Any) -> None:
    assert version_in(params) is None
    assert not is_modern(params)


@pytest.mark.parametrize(
    ("params", "token"),
    [
        ({"_meta": {"progressToken": 0}}, 0),
        ({"_meta": {"progressToken": "a"}}, "a"),
        ({"_meta": {"progressToken": True}}, None),
        ({"_meta": {"progressToken": 1.5}}, None),
        ({"_meta": {"progressToken": [1]}}, None),
        ({"_meta": {}}, None),
        ({"_meta": 5}, None),
        ({}, None),
        ("params", None),
    ],
)
def test_only_strings_and_integers_are_progress_tokens(params: Any, token: Any) -> None:
    assert progress_token(params) == token
