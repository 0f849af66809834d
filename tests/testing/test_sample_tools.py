"""The sample server's tools as plain functions."""

from typing import Any

import pytest

from thoughtgate.testing.sample_tools import (
    MAX_BIG,
    NEEDS_CLIENT,
    TOOLS,
    ToolFailed,
    first_notes,
    plain_tool,
    question_for,
    resources,
)


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_an_entry_describes_its_arguments(name: str) -> None:
    entry = TOOLS[name].entry(name)

    assert entry["name"] == name
    assert set(entry["inputSchema"]["required"]) <= set(entry["inputSchema"]["properties"])


def test_only_what_destroys_says_so() -> None:
    destructive = {name for name, tool in TOOLS.items() if tool.annotations.get("destructiveHint")}

    assert destructive == {"delete_note"}


def test_a_note_can_be_deleted_once() -> None:
    notes = first_notes()
    run = TOOLS["delete_note"].run
    assert run is not None
    assert run({"name": "draft"}, notes) == "deleted draft"

    with pytest.raises(ToolFailed):
        run({"name": "draft"}, notes)


def test_big_is_bounded() -> None:
    run = TOOLS["big"].run
    assert run is not None

    assert len(run({"bytes": MAX_BIG + 1}, {})) == MAX_BIG


def test_a_plain_tool_answers_with_its_arguments() -> None:
    run = plain_tool("x").run
    assert run is not None

    assert run({"b": 1, "a": 2}, {}) == '{"a": 2, "b": 1}'


@pytest.mark.parametrize(
    ("tool", "member"), [("sample", "messages"), ("elicit", "message"), ("roots", None)]
)
def test_a_question_has_the_params_of_its_method(tool: str, member: Any) -> None:
    assert tool in NEEDS_CLIENT
    params = question_for(tool, {})

    assert (member in params) if member else params == {}


def test_notes_are_resources() -> None:
    assert resources({"a": "text"})[0]["uri"] == "note:///a"
