"""Settings: frozen, complete, and quiet about secrets."""

from dataclasses import FrozenInstanceError

import pytest

from thoughtgate.config.settings import ServerSettings, Settings


def test_settings_cannot_be_changed() -> None:
    settings = Settings(default="deny")
    with pytest.raises(FrozenInstanceError):
        settings.default = "forward"  # type: ignore[misc]  # the very thing that must not work


def test_a_default_workflow_always_exists() -> None:
    assert Settings(default="deny").approval["default"].timeout_s == 300.0


def test_what_may_hold_secrets_is_not_shown() -> None:
    server = ServerSettings("x", env={"K": "hunter2"}, headers={"Authorization": "hunter2"})
    assert "hunter2" not in repr(server)
