"""What a server offers, and how it is shown."""

from typing import Any

import pytest

from thoughtgate.core.catalogue import (
    MAX_ENTRIES,
    MAX_WARNINGS,
    Offer,
    check_offer,
    exposed_entry,
    name_warnings,
)


def tool(name: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.mark.requirement("S002-23", "S002-24", "S002-26")
def test_a_tool_is_named_after_its_server_and_its_schema_stays() -> None:
    schema = {"type": "object", "$defs": {"x": {"const": 1.5}}, "x-unknown": [None]}
    entry = {"name": "read", "description": "Read a file", "inputSchema": schema, "icons": []}

    shown = exposed_entry("tools/list", entry, "fs", "Filesystem", ".")

    assert shown == {
        "name": "fs.read",
        "description": "[Filesystem] Read a file",
        "inputSchema": schema,
        "icons": [],
    }
    assert entry["name"] == "read"


def test_a_tool_without_a_description_says_whose_it_is() -> None:
    shown = exposed_entry(
        "tools/list", tool("x", execution={"taskSupport": "required"}), "s", "S", "__"
    )

    assert shown == {"name": "s__x", "description": "[S]", "inputSchema": {"type": "object"}}


def test_resources_keep_their_uri_and_words() -> None:
    entry = {"uri": "a://1", "name": "one", "description": "d"}

    assert exposed_entry("resources/list", entry, "s", "S", ".") is entry


def test_a_composed_name_over_the_limit_is_not_shown() -> None:
    assert exposed_entry("tools/list", tool("x" * 127), "s", "S", ".") is None


def test_what_has_no_name_or_comes_twice_is_left_out_with_a_warning() -> None:
    listed = [tool("a", n=1), tool("a", n=2), tool(""), tool(5), "x", None, tool("b")]

    offer = check_offer("tools/list", listed)

    assert [entry["name"] for entry in offer.entries] == ["a", "b"]
    assert offer.entries[0]["n"] == 1
    assert offer.names == {"a", "b"}
    assert offer.warnings == (
        "skipped 4 entries that have no name",
        "a is listed twice; the first is kept",
    )


def test_a_flood_of_entries_is_cut() -> None:
    offer = check_offer("tools/list", [tool(f"t{n}") for n in range(MAX_ENTRIES + 5)])

    assert len(offer.entries) == MAX_ENTRIES
    assert "the rest is left out" in offer.warnings[-1]


def test_warnings_are_bounded() -> None:
    assert len(check_offer("tools/list", [tool("a")] * 100).warnings) == MAX_WARNINGS


def test_long_composed_names_are_warned_of() -> None:
    offer = Offer((), frozenset({"x" * 70, "short"}))

    assert len(name_warnings("tools/list", offer, "s", ".")) == 1
    assert name_warnings("resources/list", offer, "s", ".") == []
