"""What the judge remembers of servers' tools, in bounds and without taking annotations back."""

from typing import Any

import pytest

from thoughtgate.core.known_tools import (
    MAX_ANNOTATIONS,
    MAX_KNOWN_TOOLS,
    UNLISTED,
    KnownTools,
    hash_of,
)
from thoughtgate.core.tool_listing import DONE, FAILED
from thoughtgate.wire.methods import Named

ASKED = (Named("tool", "t", {}),)


def test_a_flood_of_tools_is_not_remembered_without_end() -> None:
    tools = KnownTools()
    tools.learn("srv", tuple({"name": f"t{n}"} for n in range(MAX_KNOWN_TOOLS + 5)))
    assert tools.find("srv", "t0") != UNLISTED
    assert tools.find("srv", f"t{MAX_KNOWN_TOOLS}") == UNLISTED


@pytest.mark.promise("approval-is-exact")
def test_a_flood_of_tools_does_not_hide_that_a_definition_changed() -> None:
    tools = KnownTools()
    assert tools.listed_last("srv", "note") == ""
    for description in ("Shows a note.", "Deletes all notes."):
        before = tools.listed_last("srv", "note")
        flood = [{"name": f"t{n}"} for n in range(MAX_KNOWN_TOOLS)]
        tools.learn("srv", (*flood, {"name": "note", "description": description}))
        assert tools.listed_last("srv", "note") not in {"", before}
    assert tools.listed_last("other", "note") == ""


def test_a_definition_is_known_by_its_digest() -> None:
    tools = KnownTools()
    tools.learn("srv", ({"name": "t", "description": "a", "icons": []},))
    first = tools.find("srv", "t")
    tools.learn("srv", ({"name": "t", "description": "a", "icons": [1]},))
    assert tools.find("srv", "t") == first
    tools.learn("srv", ({"name": "t", "description": "b"},))
    assert tools.find("srv", "t") != first
    assert tools.find("other", "t") == UNLISTED


@pytest.mark.promise("grants-end-with-the-definition")
def test_a_definition_is_unknown_from_a_change_to_the_next_list() -> None:
    tools = KnownTools()
    entry = {"name": "t", "annotations": {"destructiveHint": True}}
    tools.learn("srv", (entry,))
    first = tools.find("srv", "t")
    tools.forget("srv")
    tools.forget("other")
    assert tools.find("srv", "t") == (first[0], "")
    tools.learn("srv", (entry,))
    assert tools.find("srv", "t") == first


def test_annotations_that_disappear_still_count() -> None:
    tools = KnownTools()
    tools.learn("srv", ({"name": "t", "annotations": {"destructiveHint": True}},))
    tools.learn("srv", ({"name": "t"}, {"name": 5}))
    assert tools.find("srv", "t")[0] == {"destructiveHint": True}


@pytest.mark.promise("annotations")
@pytest.mark.parametrize("later", [{}, {"title": "T"}, {"destructiveHint": None}], ids=str)
def test_a_single_annotation_that_disappears_still_counts(later: dict[str, Any]) -> None:
    tools = KnownTools()
    tools.learn("srv", ({"name": "t", "annotations": {"destructiveHint": True}},))
    tools.learn("srv", ({"name": "t", "annotations": later},))
    known = tools.find("srv", "t")[0]
    assert known is not None
    assert known["destructiveHint"] is True


def test_annotations_do_not_add_up_without_end() -> None:
    tools = KnownTools()
    for number in range(MAX_ANNOTATIONS + 5):
        tools.learn("srv", ({"name": "t", "annotations": {f"a{number}": True}},))
    known = tools.find("srv", "t")[0]
    assert known is not None
    assert len(known) == MAX_ANNOTATIONS


def test_a_list_is_fetched_for_an_unknown_tool_and_after_a_change() -> None:
    tools = KnownTools()
    assert tools.must_list("srv", ASKED, "")
    assert not tools.must_list("srv", ASKED, FAILED)
    assert tools.must_list("srv", ASKED, "")
    assert not tools.must_list("srv", ASKED, DONE)
    assert not tools.must_list("srv", ASKED, "")
    tools.learn("srv", ({"name": "t"},))
    tools.forget("srv")
    assert tools.must_list("srv", ASKED, "")
    assert not tools.must_list("srv", (Named("prompt", "p", {}),), "")


def test_what_has_no_canonical_form_has_no_hash() -> None:
    assert hash_of({"a": float("nan")}) == ""
    assert len(hash_of({"a": 1})) == 64


def test_the_last_list_says_whether_a_server_makes_tasks() -> None:
    tools = KnownTools()
    assert not tools.makes_tasks("s", "t")
    tools.learn("s", ({"name": "t", "execution": {"taskSupport": "optional"}},))
    assert tools.makes_tasks("s", "t")
    tools.learn("s", ({"name": "t", "execution": {"taskSupport": "forbidden"}},))
    assert not tools.makes_tasks("s", "t")
