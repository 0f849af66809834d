"""The schema for editors: every key, described, with its default as one would write it."""

from thoughtgate.config.json_schema import json_schema


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


def test_types_and_defaults_are_those_of_the_file() -> None:
    sections = json_schema()["$defs"]
    server, listen = sections["ServerSettings"]["properties"], sections["ListenSettings"]
    assert server["timeout"]["default"] == "30s"
    assert server["isolation"]["enum"] == ["shared", "session"]
    assert server["env"]["additionalProperties"] == {"type": "string"}
    assert "default" not in server["auth"]
    assert listen["properties"]["port"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 65_535,
        "default": 8080,
        "description": "Port to listen on.",
    }


def test_what_no_file_can_hold_is_left_out() -> None:
    sections = json_schema()["$defs"]
    assert "id" not in sections["ServerSettings"]["properties"]
    assert sections["RuleSettings"]["properties"].keys() >= {"id", "tool", "when", "action"}
    assert "selector" not in sections["RuleSettings"]["properties"]
    assert {"rotate_size", "rotate_keep"}.isdisjoint(sections["AuditSettings"]["properties"])


def test_every_key_that_a_file_can_hold_is_in_the_schema() -> None:
    sections = json_schema()["$defs"]
    contents = sections["ResultSettings"]["properties"], sections["ArgumentSettings"]["properties"]
    assert list(contents[0]) == ["record", "annotate", "redact", "hold", "block"]
    assert list(contents[1]) == ["block_secrets", "record"]
    assert all(one["properties"] for one in sections.values())
