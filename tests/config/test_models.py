"""The models: strict, and the source of the schema for editors."""

from typing import Any

import pytest
from pydantic import ValidationError

from thoughtgate.config.models import ConfigModel, json_schema

LEAST: dict[str, Any] = {"schema": 1, "default": "deny"}


def test_two_keys_are_enough() -> None:
    model = ConfigModel.model_validate(LEAST)
    assert model.profile == "production"
    assert model.listen.host == "127.0.0.1"


@pytest.mark.parametrize(
    "more",
    [
        {"schema": 2},
        {"schema": "1"},
        {"default": "allow"},
        {"manager_tools": 1},
        {"listen": {"port": "80"}},
        {"listen": {"port": 0}},
        {"listen": {"max_body": True}},
        {"holds": True},
        {"servers": {"a": {"timeout": 30}}},
        {"servers": {"a": {"expose": "none"}}},
        {"servers": {"a": {"expose": {"allow": ["x"], "block": ["y"]}}}},
        {"rules": [{"action": "deny", "tool": []}]},
        {"rules": [{"action": "deny", "when": {"a": {"gt": "x"}}}]},
        {"redact": {"patterns": ["(a+)+"]}},
        {"redact": {"patterns": [5]}},
        {"rules": [{"action": "deny", "tool": [5]}]},
        {"rules": [{"action": "deny", "when": 5}]},
        {"separator": "abc"},
        {"unknown": 1},
    ],
)
def test_nothing_is_converted_or_ignored_silently(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ConfigModel.model_validate({**LEAST, **more})


@pytest.mark.parametrize(
    "more",
    [
        {"servers": {"a": {"expose": "all"}, "b": {"expose": {"allow": []}}}},
        {"rules": [{"action": "deny", "tool": ["a", "b*"]}, {"action": "deny", "tool": "a"}]},
        {"holds": 5},
        {"audit": {"preview": "1KiB", "rotate": {"size": 5}}},
        {"redact": {"patterns": ["K-[0-9]+"], "names": ["pin"]}},
        {"separator": "__"},
    ],
)
def test_short_forms_are_accepted(more: dict[str, Any]) -> None:
    ConfigModel.model_validate({**LEAST, **more})


def test_the_schema_describes_every_key() -> None:
    schema = json_schema()
    assert schema["required"] == ["schema", "default"]
    assert schema["properties"]["mcpServers"] == schema["properties"]["servers"]
    for name, definition in {"": schema, **schema["$defs"]}.items():
        assert definition["additionalProperties"] is False, name
        for key, entry in definition["properties"].items():
            target = schema["$defs"].get(entry.get("$ref", "").rpartition("/")[2], {})
            assert entry.get("description") or target.get("description"), f"{name}.{key}"
            if entry.get("type") == "string":
                assert isinstance(entry.get("default", ""), str), f"{name}.{key}"
