"""Environment variables over the file."""

from typing import Any

import pytest

from thoughtgate.config.environment import VARIABLES, apply_environment


def applied(data: dict[str, Any], **env: str) -> dict[str, Any]:
    changed, problems = apply_environment(data, env)
    assert problems == []
    return changed


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("THOUGHTGATE_PROFILE", "development", {"profile": "development"}),
        (
            "THOUGHTGATE_LISTEN",
            "0.0.0.0:9000",
            {"listen": {"transport": "http", "host": "0.0.0.0", "port": 9000}},
        ),
        (
            "THOUGHTGATE_LISTEN",
            ":9000",
            {"listen": {"transport": "http", "host": "0.0.0.0", "port": 9000}},
        ),
        (
            "THOUGHTGATE_LISTEN",
            "[::1]:9000",
            {"listen": {"transport": "http", "host": "::1", "port": 9000}},
        ),
        (
            "THOUGHTGATE_UPSTREAM",
            "https://x/mcp",
            {"servers": {"upstream": {"url": "https://x/mcp"}}},
        ),
        ("THOUGHTGATE_REQUEST_TIMEOUT_SECS", "45", {"listen": {"request_timeout": "45s"}}),
        ("THOUGHTGATE_MAX_CONCURRENT_REQUESTS", "5", {"listen": {"max_concurrent": 5}}),
        ("THOUGHTGATE_KEEPALIVE_SECS", "5", {"listen": {"keep_alive": "5s"}}),
        ("THOUGHTGATE_MAX_REQUEST_BODY_BYTES", "2048", {"listen": {"max_body": 2048}}),
        ("THOUGHTGATE_APPROVAL_TIMEOUT_SECS", "60", {"approval": {"default": {"timeout": "60s"}}}),
        ("THOUGHTGATE_STORE", "postgresql://gate@h/d", {"store": "postgresql://gate@h/d"}),
        ("THOUGHTGATE_LOG_LEVEL", "debug", {"telemetry": {"log_level": "debug"}}),
        ("THOUGHTGATE_PROFILE", "", {}),
        ("THOUGHTGATE_MAX_CONCURRENT_REQUESTS", "many", {"listen": {"max_concurrent": "many"}}),
    ],
)
def test_a_variable_sets_its_key(name: str, value: str, expected: dict[str, Any]) -> None:
    assert applied({}, **{name: value}) == expected


def test_the_file_is_overridden_and_left_as_it_was() -> None:
    data = {
        "listen": {"port": 1, "host": "h"},
        "approval": {"a": {}, "b": {"timeout": "1m"}, "c": 5},
    }
    changed = applied(data, THOUGHTGATE_LISTEN="h2:2", THOUGHTGATE_APPROVAL_TIMEOUT_SECS="9")
    assert changed["listen"]["port"] == 2
    assert changed["approval"] == {"a": {"timeout": "9s"}, "b": {"timeout": "9s"}, "c": 5}
    assert data["listen"] == {"port": 1, "host": "h"}


def test_the_upstream_replaces_the_only_server() -> None:
    data = {"servers": {"x": {"command": "run", "args": ["a"]}, "*": {}}}
    env = {"THOUGHTGATE_UPSTREAM": "https://u", "THOUGHTGATE_UPSTREAM_CONNECT_TIMEOUT_SECS": "2"}
    changed = applied(data, **env)["servers"]
    assert changed["x"] == {"url": "https://u", "connect_timeout": "2s"}


def test_the_upstream_joins_several_servers() -> None:
    changed = applied({"servers": {"a": {}, "b": {}}}, THOUGHTGATE_UPSTREAM="https://u")
    assert changed["servers"]["upstream"] == {"url": "https://u"}


@pytest.mark.parametrize("data", [{"servers": 5}, {"servers": {"a": 5}}, {"listen": 5}])
def test_a_file_of_wrong_types_is_left_for_the_models(data: dict[str, Any]) -> None:
    assert applied(data, THOUGHTGATE_UPSTREAM="https://u", THOUGHTGATE_KEEPALIVE_SECS="1")


@pytest.mark.parametrize("value", ["9000", "host", "host:", "host:port"])
def test_a_wrong_address_is_a_problem(value: str) -> None:
    _, problems = apply_environment({}, {"THOUGHTGATE_LISTEN": value})
    assert problems[0].key == "THOUGHTGATE_LISTEN"


def test_every_variable_is_explained_once() -> None:
    names = [variable.name for variable in VARIABLES]
    assert len(names) == len(set(names))
    assert all(variable.meaning.endswith(".") for variable in VARIABLES)
