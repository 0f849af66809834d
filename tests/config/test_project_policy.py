"""What counts of a project's config that is not trusted."""

from typing import Any

import pytest

from thoughtgate.config.load import load_project_settings
from thoughtgate.config.parse import parse
from thoughtgate.config.project_policy import restrict
from thoughtgate.errors import ConfigError


def test_default_rules_limits_and_exposures_count() -> None:
    data: dict[str, Any] = {
        "schema": 1,
        "default": "deny",
        "servers": {"a": {"expose": {"allow": ["x"]}}},
        "rules": [{"id": "r", "tool": "x", "action": "forward"}],
        "limits": [{"tool": "x", "budget": 1}],
    }
    assert restrict(data) == (data, ())


def test_everything_else_is_left_out_and_named() -> None:
    data: dict[str, Any] = {
        "schema": 1,
        "profile": "development",
        "default": "forward",
        "servers": {"a": {"command": "evil", "env": {"A": "${SECRET}"}, "expose": "all"}},
        "rules": [{"tool": "x", "action": "policy"}, {"tool": "y", "action": "deny"}],
        "cedar": {"policies": ["p.cedar"]},
        "approval": {"ops": {"channel": "webhook", "on_timeout": "approve"}},
        "audit": {"on_failure": "continue"},
        "redact": {"patterns": [".*"]},
    }
    kept, ignored = restrict(data)
    assert kept == {
        "schema": 1,
        "default": "forward",
        "servers": {"a": {"expose": "all"}},
        "rules": [{"tool": "y", "action": "deny", "id": "rules[1]"}],
        "approval": {"ops": {}},
    }
    assert ignored == (
        "profile",
        "cedar",
        "approval",
        "audit",
        "redact",
        "servers.a.command",
        "servers.a.env",
        "rules[0]",
    )


def test_a_default_that_asks_cedar_leaves_the_decision_to_the_user() -> None:
    kept, ignored = restrict({"schema": 1, "default": "policy"})
    assert (kept["default"], ignored) == ("forward", ("default: policy",))


def test_references_to_variables_are_taken_literally() -> None:
    text = "schema: 1\ndefault: deny\nrules: [{tool: '${HOME}', action: forward}]\n"
    settings, _ = load_project_settings(parse(text, file="f"), file="f")
    assert settings.rules[0].selector.names == ("${HOME}",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("default: deny\n", "schema"),
        ("schema: 1\ndefault: deny\nnonsense: 1\n", "nonsense"),
        ("schema: 1\ndefault: deny\nservers: {a: {nonsense: 1}}\n", "servers.a.nonsense"),
        ("schema: 1\ndefault: deny\nservers: [a]\n", "servers"),
        ("schema: 1\ndefault: deny\nservers: {a: 1}\n", "servers.a"),
        ("schema: 1\ndefault: deny\nrules: [1]\n", "rules[0]"),
        ("schema: 1\ndefault: deny\nrules: [{tool: x, action: approve, approval: no}]\n", "no"),
    ],
)
def test_the_part_that_counts_is_checked_like_any_config(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"^f") as caught:
        load_project_settings(parse(text, file="f"), file="f")
    assert words in str(caught.value)
