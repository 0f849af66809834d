"""Settings: frozen, complete, strict about what the file holds, and quiet about secrets."""

from dataclasses import MISSING, Field, FrozenInstanceError, fields
from typing import Any

import pytest

from thoughtgate.config.read_keys import keys_of, read_settings
from thoughtgate.config.settings import ServerSettings, Settings

LEAST: dict[str, Any] = {"schema": 1, "default": "deny"}


def read(**more: Any) -> Settings:
    settings, problems = read_settings({**LEAST, **more})
    assert problems == []
    assert settings is not None
    return settings


def test_settings_cannot_be_changed() -> None:
    settings = Settings(default="deny")
    with pytest.raises(FrozenInstanceError):
        settings.default = "forward"  # type: ignore[misc]  # the very thing that must not work


def test_a_default_workflow_always_exists() -> None:
    assert Settings(default="deny").approval["default"].timeout_s == 300.0


def test_what_may_hold_secrets_is_not_shown() -> None:
    server = ServerSettings("x", env={"K": "hunter2"}, headers={"Authorization": "hunter2"})
    assert "hunter2" not in repr(server)


def test_two_keys_are_enough() -> None:
    settings = read()
    assert settings.profile == "production"
    assert settings.listen.host == "127.0.0.1"


def test_a_file_and_code_have_the_same_defaults() -> None:
    assert read() == Settings(default="deny")


def test_entries_in_a_file_and_in_code_have_the_same_defaults() -> None:
    found = read(
        servers={"a": {}},
        limits=[{"breaker": {"failures": 1}}],
        approval={
            "w": {"channel": "slack", "slack": {"channel": "#x"}},
            "h": {"webhook": {"url": "u", "secret_env": "S"}},
        },
        listen={"auth": {"type": "bearer"}},
        telemetry={"otlp": {"endpoint": "x"}},
        rules=[{"action": "deny"}],
    )
    for entry in (
        found.servers["a"],
        found.approval["w"].slack,
        found.listen.auth,
        found.telemetry.otlp,
        found.limits[0].breaker,
        found.rules[0],
    ):
        assert entry is not None
        required = {one.name for one in fields(entry) if _is_required(one)}
        again = type(entry)(**{name: getattr(entry, name) for name in required})
        assert again == entry


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def test_every_setting_comes_from_a_key() -> None:
    assert {one.name for one in fields(Settings)} == keys_of(Settings).keys() - {"schema"}


@pytest.mark.parametrize(
    "more",
    [
        {"schema": 2},
        {"schema": "1"},
        {"schema": True},
        {"schema": 1.0},
        {"default": "allow"},
        {"manager_tools": 1},
        {"listen": {"port": "80"}},
        {"listen": {"port": 0}},
        {"listen": {"max_body": True}},
        {"holds": True},
        {"servers": {"a": {"timeout": 30}}},
        {"servers": {"a": {"timeout_s": 30.0}}},
        {"servers": {"a": {"id": "b"}}},
        {"servers": {"a": {"expose": "none"}}},
        {"servers": {"a": {"expose": {"allow": ["x"], "block": ["y"]}}}},
        {"rules": [{"action": "deny", "tool": []}]},
        {"rules": [{"action": "deny", "selector": {}}]},
        {"rules": [{"action": "deny", "when": {"a": {"gt": "x"}}}]},
        {"redact": {"patterns": ["(a+)+"]}},
        {"redact": {"patterns": [5]}},
        {"rules": [{"action": "deny", "tool": [5]}]},
        {"rules": [{"action": "deny", "when": 5}]},
        {"audit": {"rotate_size": 5}},
        {"separator": "abc"},
        {"unknown": 1},
    ],
)
def test_nothing_is_converted_or_ignored_silently(more: dict[str, Any]) -> None:
    settings, problems = read_settings({**LEAST, **more})
    assert settings is None
    assert len(problems) == 1


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
    read(**more)


def test_keys_without_a_setting_of_their_own_become_other_settings() -> None:
    found = read(
        servers={
            "a": {"expose": {"block": ["x"]}, "type": "stdio", "disabled": True},
            "b": {"disabled": False},
            "c": {"enabled": False},
        },
        limits=[{"tool": "a", "prompt": "b*", "server": "s", "words": ["Drop"]}, {"id": "mine"}],
        audit={"rotate": {"size": 5}},
        holds=7,
    )
    assert (found.servers["a"].expose.mode, found.servers["a"].expose.names) == ("block", ("x",))
    assert [one.enabled for one in found.servers.values()] == [False, True, False]
    assert [one.id for one in found.servers.values()] == ["a", "b", "c"]
    selector = found.limits[0].selector
    assert (selector.kinds, selector.names) == (("tool", "prompt"), ("a", "b*"))
    assert (selector.servers, selector.words) == (("s",), ("drop",))
    assert [one.id for one in found.limits] == ["limits[0]", "mine"]
    assert (found.audit.rotate_size, found.audit.rotate_keep) == (5, 10)
    assert found.holds.connection == 7
