"""What changed between two definitions, and how much it matters."""

from typing import Any

import pytest

from thoughtgate.core.definitions.changes import (
    KINDS_OF_CHANGE,
    MILD,
    NEW,
    NOTABLE,
    SEVERE,
    UNREADABLE,
    WEIGHTS,
    compare,
    heaviest,
)
from thoughtgate.core.definitions.pinned import define

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"p": {"type": "string", "maxLength": 5}},
    "required": ["p"],
}
ENTRY: dict[str, Any] = {"name": "t", "description": "Reads a file", "inputSchema": SCHEMA}


def changed(**members: Any) -> list[str]:
    old, new = define("tool", "t", ENTRY), define("tool", "t", {**ENTRY, **members})
    return [one.change for one in compare(old, new)]


def with_parameter(**schema: Any) -> dict[str, Any]:
    return {**SCHEMA, "properties": {"p": {"type": "string", "maxLength": 5, **schema}}}


@pytest.mark.parametrize(
    ("members", "kinds"),
    [
        ({}, []),
        ({"description": "Reads one file"}, ["wording"]),
        ({"icons": [{"src": "https://a.example/i.png"}]}, ["url-added", "icons"]),
        ({"annotations": {"destructiveHint": True}}, ["hint-flipped"]),
        ({"annotations": {"idempotentHint": True}}, ["member-changed"]),
        ({"description": "See https://evil.example/"}, ["url-added", "wording"]),
        ({"description": "Reads\u200b a file"}, ["hidden-characters", "wording"]),
        ({"inputSchema": with_parameter(maxLength=9)}, ["constraint-changed"]),
        ({"inputSchema": with_parameter(pattern="a")}, ["constraint-added"]),
        ({"inputSchema": with_parameter(type="integer")}, ["type-changed"]),
        ({"inputSchema": with_parameter(default="x")}, ["default-changed"]),
        (
            {"inputSchema": {**SCHEMA, "properties": {"p": {"type": "string"}}}},
            ["constraint-removed"],
        ),
        ({"inputSchema": {**SCHEMA, "required": []}}, ["parameter-not-required"]),
        ({"inputSchema": {**SCHEMA, "properties": {}, "required": []}}, ["parameter-removed"]),
        ({"outputSchema": {"type": "object"}}, ["output"]),
        ({"execution": {"taskSupport": "required"}}, ["member-changed"]),
    ],
)
def test_each_change_has_its_kind(members: dict[str, Any], kinds: list[str]) -> None:
    assert changed(**members) == kinds


def test_a_new_required_parameter_is_worse_than_an_optional_one() -> None:
    more = {**SCHEMA, "properties": {**SCHEMA["properties"], "q": {"type": "string"}}}
    assert changed(inputSchema=more) == ["parameter-added"]
    both = changed(inputSchema={**more, "required": ["p", "q"]})
    assert both == ["parameter-required", "parameter-added"]


def test_the_most_severe_change_counts() -> None:
    old, new = define("tool", "t", ENTRY), define("tool", "t", {**ENTRY, "title": "T"})
    assert heaviest(compare(old, new)) == MILD
    assert heaviest(compare(None, new)) == SEVERE
    assert heaviest(()) == ""


def test_a_new_or_unreadable_definition_is_one_change() -> None:
    new = define("tool", "t", ENTRY)
    assert [one.change for one in compare(None, new)] == [NEW]
    broken = define("tool", "t", {"name": "\ud800"})
    assert [one.change for one in compare(new, broken)] == [UNREADABLE]


def test_the_instructions_of_a_server_are_notable() -> None:
    old = define("server", "instructions", {"name": "instructions", "instructions": "Be brief."})
    new = define("server", "instructions", {"name": "instructions", "instructions": "Be long."})
    assert [(one.change, one.weight) for one in compare(old, new)] == [("instructions", NOTABLE)]


def test_every_kind_has_a_weight() -> None:
    assert {weight for weight, _ in KINDS_OF_CHANGE.values()} == set(WEIGHTS)
