"""Words for what is wrong."""

from typing import Any

import pytest

from thoughtgate.config.complaints import MAX_SHOWN, shown, unknown_key
from thoughtgate.config.document import dotted
from thoughtgate.config.read_keys import read_settings


def said(**more: Any) -> dict[str, str]:
    found = read_settings({"schema": 1, "default": "deny", **more})
    assert found.settings is None
    return {dotted(path): words for path, words in found.problems}


@pytest.mark.parametrize(
    ("more", "key", "words"),
    [
        ({"profile": "prod"}, "profile", "unknown value; must be 'production' or 'development' (got \"prod\")"),
        ({"listen": {"port": 99999}}, "listen.port", "must be a valid port number, 1 to 65535 (got 99999)"),
        ({"listen": {"workers": 0}}, "listen.workers", "must be at least 1 (got 0)"),
        ({"listen": {"workers": 100}}, "listen.workers", "must be at most 64 (got 100)"),
        ({"manager_tools": "yes"}, "manager_tools", 'must be true or false (got "yes")'),
        ({"servers": []}, "servers", "must hold keys and values (got [])"),
        ({"servers": {"a": 5}}, "servers.a", "must hold keys and values (got 5)"),
        ({"rules": {}}, "rules", "must be a list (got {})"),
        ({"rules": [{"action": "deny", "toool": "x"}]}, "rules[0].toool", "unknown key; did you mean tool?"),
        ({"audit": {"sign_key_env": "a b"}}, "audit.sign_key_env", 'must be the name of an environment variable, not its value (got "a b")'),
        ({"separator": "~"}, "separator", 'must be one to three of the characters . _ / : - (got "~")'),
        ({"store": ""}, "store", 'must not be empty (got "")'),
        ({"cedar": {"policies": []}}, "cedar.policies", "must not be empty (got [])"),
        ({"cedar": {}}, "cedar.policies", "required, but missing"),
        ({"approval": {"a": {"required": 1.5}}}, "approval.a.required", "must be a whole number (got 1.5)"),
        ({"telemetry": {"otlp": {"endpoint": "x", "sample_rate": "1"}}}, "telemetry.otlp.sample_rate", 'must be a number (got "1")'),
        ({"limits": [{"rate": 5}]}, "limits[0].rate", "must be a number of calls per period, such as 30/m, 5/s, 100/h or 10/30s (got 5)"),
    ],
)  # fmt: skip
def test_a_complaint_says_what_would_be_right(more: dict[str, Any], key: str, words: str) -> None:
    assert said(**more) == {key: words}


def test_an_unknown_key_with_no_likeness_lists_the_known_ones() -> None:
    assert "the keys here are" in said(console={"zzz": 1})["console.zzz"]
    assert "the keys here are" in said(servers={"a": {"zzz": 1}})["servers.a.zzz"]
    assert unknown_key("zzz", {"b", "a"}) == "unknown key; the keys here are a, b"


@pytest.mark.parametrize("key", ["token", "secret"])
def test_an_inline_secret_gets_the_remedy_and_is_not_shown(key: str) -> None:
    found = said(approval={"a": {"slack": {"channel": "#x", key: "hunter2"}}})
    assert "environment variable" in found[f"approval.a.slack.{key}"]
    assert "hunter2" not in str(found)


def test_a_value_is_shown_short_and_never_when_secret() -> None:
    assert shown(("a",), 5) == "5"
    assert len(shown(("a",), "x" * 500)) <= MAX_SHOWN + 3
    assert shown(("env", "API_KEY"), "abc") == "a value that is not shown"
    assert shown(("args", 0), "sk-abcdef123456") == "a value that is not shown"
    assert shown((), {"a": 1}) == '{"a": 1}'
