"""Telling a request's era from its own words, and its progress token."""

import json
from typing import Any

import pytest
from tests.support.frames import envelope

from thoughtgate.wire.revisions import (
    CLIENT_KEY,
    LATEST,
    LATEST_LEGACY,
    MAX_CLIENT,
    SUPPORTED,
    client_in,
    client_name,
    is_modern,
    progress_token,
    traceparent,
    version_in,
    with_traceparent,
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


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_callers_trace_is_read_from_meta() -> None:
    assert traceparent({"_meta": {"traceparent": PARENT}}) == PARENT


@pytest.mark.parametrize(
    ("params", "meta"),
    [
        (None, {"traceparent": PARENT}),
        ({"name": "x"}, {"traceparent": PARENT}),
        ({"_meta": {"traceparent": "old", "a/b": 1}}, {"traceparent": PARENT, "a/b": 1}),
        ({"_meta": "malformed"}, "malformed"),
    ],
)
def test_a_request_takes_a_trace_along(params: Any, meta: Any) -> None:
    body = {"id": 1} if params is None else {"id": 1, "params": params}
    before = json.dumps(body)

    traced = with_traceparent(body, PARENT)

    assert traced == {"id": 1, "params": {**(params or {}), "_meta": meta}}
    assert json.dumps(body) == before


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"_meta": "x"},
        {"_meta": {"traceparent": 5}},
        {"_meta": {"traceparent": PARENT.upper()}},
        {"_meta": {"traceparent": "00-" + PARENT}},
        {"_meta": {"traceparent": PARENT + "-x"}},
        {"_meta": {"traceparent": PARENT + "-x\r\ncontent-length: 2\r\n\r\n{}POST / HTTP/1.1"}},
        {"_meta": {"traceparent": PARENT[:-1] + "\n"}},
    ],
)
def test_what_is_not_a_trace_context_is_none(params: Any) -> None:
    assert traceparent(params) == ""


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ({"name": "editor", "version": "2.1"}, "editor 2.1"),
        ({"name": "editor"}, "editor"),
        ({"name": "editor", "version": 2}, "editor"),
        ({"name": "", "version": "2"}, ""),
        ({"name": 1}, ""),
        (None, ""),
        ("editor", ""),
        ({"name": "x" * 1000, "version": "1"}, "x" * MAX_CLIENT),
    ],
)
def test_a_client_is_called_what_it_says_it_is(info: Any, name: str) -> None:
    assert client_name(info) == name
    assert client_in({"_meta": {CLIENT_KEY: info}}) == name


def test_a_request_without_an_envelope_names_no_client() -> None:
    assert client_in({}) == client_in(None) == ""
