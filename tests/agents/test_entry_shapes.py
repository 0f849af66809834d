"""What an entry runs, in every shape."""

from typing import Any

import pytest

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.entry_shapes import (
    argv_of,
    command_keys,
    env_of,
    is_left_by_wrap,
    is_shim_command,
    is_switched_off,
    lookup,
    merge_keys,
    transport_of,
    url_of,
    will_start,
)


@pytest.mark.parametrize(
    ("entry", "argv"),
    [
        ({"command": "npx", "args": ["-y", "x"]}, ["npx", "-y", "x"]),
        ({"command": "npx"}, ["npx"]),
        ({"command": "npx", "args": None}, ["npx"]),
        ({"command": ["npx", "x"]}, ["npx", "x"]),
        ({"command": {"path": "npx", "args": ["x"]}}, ["npx", "x"]),
        ({"command": {"path": "npx"}}, ["npx"]),
        ({"args": ["x"]}, []),
        ({"command": ""}, []),
        ({"command": 5}, []),
        ({"url": "https://a"}, []),
    ],
)
def test_the_command_line_is_found_in_every_shape(entry: dict[str, Any], argv: list[str]) -> None:
    assert argv_of(entry) == argv


def test_slots_name_the_keys_of_each_shape() -> None:
    assert command_keys({"command": "x"}) == (("command",), ("args",))
    assert command_keys({"command": {"path": "x"}}) == (("command", "path"), ("command", "args"))
    assert command_keys({"command": ["x"]}).is_array


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "x"}, "stdio"),
        ({"type": "stdio", "command": "x"}, "stdio"),
        ({"url": "https://a"}, "http"),
        ({"httpUrl": "https://a"}, "http"),
        ({"serverUrl": "https://a"}, "http"),
        ({"type": "sse", "url": "https://a"}, "sse"),
        ({"type": "http", "url": "https://a", "command": "x"}, "http"),
        ({"url": "https://a", "command": "x"}, "stdio"),
        ({"enabled": True, "settings": {}}, None),
    ],
)
def test_the_transport_follows_from_type_url_and_command(
    entry: dict[str, Any], transport: str | None
) -> None:
    assert transport_of(entry) == transport


def test_a_url_that_is_no_text_is_none() -> None:
    assert url_of({"url": 5}) == ""


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["/opt/x/thoughtgate", "shim", "--"], True),
        (["thoughtgate", "shim"], True),
        (["python3", "-m", "thoughtgate", "shim", "--server-id", "a"], True),
        (["uvx", "thoughtgate", "shim"], True),
        ([r"C:\bin\thoughtgate.exe", "shim"], True),
        (["thoughtgate", "serve", "--stdio"], False),
        (["npx", "--", "thoughtgate", "shim"], False),
        (["npx", "thoughtgate-plugin", "shim"], False),
        (["npx", 5, "thoughtgate", "shim"], False),
        (["thoughtgate"], False),
        ([], False),
    ],
)
def test_our_shim_is_known_by_its_command_line(argv: list[Any], expected: bool) -> None:
    assert is_shim_command(argv) is expected


@pytest.mark.parametrize(
    ("agent", "entry", "expected"),
    [
        ("claude-desktop", {"disabled": True}, False),
        ("claude-desktop", {"disabled": "true"}, True),
        ("claude-desktop", {"enabled": False}, True),
        ("codex", {"enabled": False}, False),
        ("codex", {"disabled": True}, True),
        ("custom", {"enabled": False}, False),
        ("custom", {"disabled": True}, False),
        ("claude-code", {"disabled": True}, True),
        ("gemini", {"disabled": True}, True),
    ],
)
def test_a_server_is_off_only_if_its_agent_heeds_the_switch(
    agent: str, entry: dict[str, Any], expected: bool
) -> None:
    assert will_start(entry, AGENTS[agent]) is expected


def test_a_switch_is_seen_even_if_nobody_heeds_it() -> None:
    assert is_switched_off({"disabled": True})
    assert is_switched_off({"enabled": False})
    assert not is_switched_off({"enabled": True})


def test_entries_join_tables_and_replace_the_rest() -> None:
    lower = {"command": "a", "args": ["1", "2"], "env": {"A": "1", "B": "2"}}
    upper = {"args": ["3"], "env": {"B": "3"}, "enabled": True}
    assert merge_keys(lower, upper) == {
        "command": "a",
        "args": ["3"],
        "env": {"A": "1", "B": "3"},
        "enabled": True,
    }


def test_looking_through_what_is_no_table_finds_nothing() -> None:
    assert lookup({"a": [1]}, ("a", "b")) is None


def test_variables_are_read_from_every_table() -> None:
    entry = {
        "environment": {"A": "1", "B": "1"},
        "env": {"B": "2", "C": "2"},
        "command": {"path": "x", "env": {"C": "3"}},
    }
    assert env_of(entry) == {"A": "1", "B": "2", "C": "3"}
    assert env_of({"env": "A=1", "command": "x"}) == {}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["thoughtgate", "shim", "--run", "k", "--", "x"], True),
        (["python", "-I", "-m", "thoughtgate", "shim", "--run", "k", "--", "x"], True),
        (["thoughtgate", "shim", "--", "x", "--run"], False),
        (["thoughtgate", "shim", "--run", "k", "--"], False),
        (["thoughtgate", "shim", "--run", "k"], False),
        (["npx", "--run", "--", "x"], False),
    ],
)
def test_a_command_line_that_a_wrap_wrote_is_known(argv: list[str], expected: bool) -> None:
    assert is_left_by_wrap(argv) is expected
