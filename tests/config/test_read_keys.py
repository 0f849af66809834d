"""Reading keys: exact types, every problem, and its path."""

from collections.abc import Mapping
from typing import Annotated, Any

import pytest

from thoughtgate.config.document import dotted
from thoughtgate.config.key_types import REQUIRED, Checked, Parsed
from thoughtgate.config.read_keys import keys_of, read_settings, shape_of
from thoughtgate.config.settings import AuditSettings, RuleSettings, ServerSettings, Settings

LEAST: dict[str, Any] = {"schema": 1, "default": "deny"}


def said(**more: Any) -> dict[str, str]:
    return {dotted(path): words for path, words in read_settings({**LEAST, **more}).problems}


def test_keys_are_named_as_in_the_file() -> None:
    assert {"timeout", "type", "disabled"} <= keys_of(ServerSettings).keys()
    assert keys_of(ServerSettings)["timeout"].field == "timeout_s"
    assert keys_of(RuleSettings)["id"].field == "id_"
    assert keys_of(AuditSettings).keys() & {"rotate", "rotate_size"} == {"rotate"}


def test_keys_without_a_default_are_required() -> None:
    required = {name for name, key in keys_of(Settings).items() if key.default is REQUIRED}
    assert required == {"schema", "default"}
    assert read_settings({}).problems == [
        (("schema",), "required, but missing"),
        (("default",), "required, but missing"),
    ]


def test_every_problem_is_found_at_once() -> None:
    found = said(
        listen={"port": "80", "auth": {"type": "both", "allow": ["", 5], "extra": 1}},
        servers={"a": {"env": {"A": 1}, "timeout": "soon"}, "b": []},
        rules=[{"action": "deny", "tool": ["[", "ok", 5]}, {}],
    )
    assert found.keys() == {
        "listen.port",
        "listen.auth.allow[0]",
        "listen.auth.allow[1]",
        "listen.auth.extra",
        "servers.a.env.A",
        "servers.a.timeout",
        "servers.b",
        "rules[0].tool[0]",
        "rules[0].tool[2]",
        "rules[1].action",
    }


@pytest.mark.parametrize(
    ("more", "key", "words"),
    [
        ({"listen": {"port": None}}, "listen.port", "is empty; give it a value or remove the key"),
        ({"servers": {"a": None}}, "servers.a", "is empty; give it a value or remove the key"),
        ({"default": None}, "default", "unknown value; must be 'forward', 'deny', 'approve' or 'policy' (got null)"),
    ],
)  # fmt: skip
def test_a_key_without_a_value_is_refused(more: dict[str, Any], key: str, words: str) -> None:
    assert said(**more) == {key: words}


def test_conditions_may_compare_with_null() -> None:
    assert said(rules=[{"action": "deny", "when": {"a": None}}]) == {}


def test_a_whole_number_is_a_number() -> None:
    settings = read_settings({**LEAST, "telemetry": {"otlp": {"endpoint": "x", "sample_rate": 1}}})
    assert settings.settings is not None
    otlp = settings.settings.telemetry.otlp
    assert otlp is not None
    assert isinstance(otlp.sample_rate, float)


def test_the_keys_of_a_server_named_like_a_key_are_those_of_a_server() -> None:
    assert "command" in said(servers={"auth": {"zzz": 1}})["servers.auth.zzz"]


def test_a_shape_is_a_type_taken_apart() -> None:
    mark, parser = Checked(len), Parsed(str)
    shape = shape_of(Annotated[tuple[Annotated[str, mark], ...], parser] | None)
    assert (shape.base, shape.parsers, shape.checks) == (tuple, (parser,), ())
    assert shape.member is not None
    assert (shape.member.base, shape.member.checks) == (str, (mark,))
    assert shape_of(Mapping[str, Any]).member == shape_of(Any)
    assert shape_of(int | None) == shape_of(int)
