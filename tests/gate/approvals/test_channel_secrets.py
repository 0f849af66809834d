"""Secrets of channels come from the variables that the settings name."""

import sys

import pytest

from thoughtgate.config.settings import Settings, SlackSettings, WebhookSettings, WorkflowSettings
from thoughtgate.errors import ConfigError
from thoughtgate.gate.approvals.channel_secrets import require_secrets, webhook_keys

SETTINGS = Settings(
    "deny",
    approval={
        "ops": WorkflowSettings("ops", channel="slack", slack=SlackSettings("#ops", "OPS_TOKEN")),
        "hook": WorkflowSettings(
            "hook", channel="webhook", webhook=WebhookSettings("https://x", "HOOK_KEY")
        ),
        "here": WorkflowSettings("here", slack=SlackSettings("#ops", "UNUSED_TOKEN")),
    },
)


def test_keys_are_read_by_workflow() -> None:
    assert webhook_keys(SETTINGS, {"HOOK_KEY": "k"}) == {"hook": b"k"}
    assert webhook_keys(SETTINGS, {}) == {}


def test_every_missing_variable_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        require_secrets(SETTINGS, {}, "thoughtgate.yaml")
    said = "\n".join(str(problem) for problem in caught.value.problems)

    assert "approval.ops.slack.token_env" in said
    assert "OPS_TOKEN" in said
    assert "approval.hook.webhook.secret_env" in said
    assert "UNUSED_TOKEN" not in said


def test_a_missing_library_is_named_before_anybody_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "slack_sdk", None)
    with pytest.raises(ConfigError) as caught:
        require_secrets(SETTINGS, {"OPS_TOKEN": "t", "HOOK_KEY": "k"})

    assert [problem.key for problem in caught.value.problems] == ["approval.ops.slack"]
    assert "pip install 'thoughtgate[slack]'" in str(caught.value)


def test_nothing_is_missing_when_all_are_set() -> None:
    require_secrets(SETTINGS, {"OPS_TOKEN": "t", "HOOK_KEY": "k"})


def test_variables_that_options_name_must_be_set() -> None:
    workflow = WorkflowSettings("post", channel="pigeon", options={"ring_env": "RING", "n": 1})
    settings = Settings("deny", approval={"post": workflow})
    with pytest.raises(ConfigError) as caught:
        require_secrets(settings, {})

    assert [problem.key for problem in caught.value.problems] == ["approval.post.options.ring_env"]
    require_secrets(settings, {"RING": "r"})
