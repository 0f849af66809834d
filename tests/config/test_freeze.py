"""From models to settings: nothing is lost on the way."""

from dataclasses import fields

from thoughtgate.config.freeze import freeze
from thoughtgate.config.models import ConfigModel
from thoughtgate.config.settings import Settings

LEAST = {"schema": 1, "default": "deny"}


def test_the_defaults_of_models_and_settings_are_the_same() -> None:
    assert freeze(ConfigModel.model_validate(LEAST), ()) == Settings(default="deny")


def test_the_defaults_of_entries_are_the_same() -> None:
    whole = {
        **LEAST,
        "servers": {"a": {}},
        "limits": [{"breaker": {"failures": 1}}],
        "approval": {
            "w": {"channel": "slack", "slack": {"channel": "#x"}},
            "h": {"webhook": {"url": "u", "secret_env": "S"}},
        },
        "listen": {"auth": {"type": "bearer"}},
        "telemetry": {"otlp": {"endpoint": "x"}},
        "rules": [{"action": "deny"}],
    }
    found = freeze(ConfigModel.model_validate(whole), ())
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


def _is_required(field: object) -> bool:
    from dataclasses import MISSING

    return (
        getattr(field, "default", MISSING) is MISSING
        and getattr(field, "default_factory", MISSING) is MISSING
    )


def test_every_setting_comes_from_a_key() -> None:
    keys = {info.alias or name for name, info in ConfigModel.model_fields.items()}
    assert {one.name for one in fields(Settings)} == keys - {"schema"}
