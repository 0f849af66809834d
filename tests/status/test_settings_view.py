"""Settings with their sources."""

from pathlib import Path

from thoughtgate.gate.config_files import load_configuration
from thoughtgate.status.settings_view import SettingRow, describe_settings

CONFIG = """\
schema: 1
default: deny
servers:
  web:
    url: https://example.org/mcp
    headers: {X-Key: swordfish-and-more}
rules:
  - {tool: "delete_*", action: approve}
"""


def rows(tmp_path: Path, profile: str | None = None, **environ: str) -> dict[str, SettingRow]:
    file = tmp_path / "thoughtgate.yaml"
    file.write_text(CONFIG)
    file.chmod(0o600)
    loaded = load_configuration(str(file), environ, str(tmp_path), profile=profile)
    return {row.key: row for one in describe_settings(loaded, environ) for row in one.rows}


def test_values_come_from_the_file_the_environment_a_flag_or_a_default(tmp_path: Path) -> None:
    found = rows(tmp_path, "development", THOUGHTGATE_LOG_LEVEL="debug")

    assert found["default"] == ("default", "deny", "file", "thoughtgate.yaml:2")
    assert found["servers.web.url"].where == "thoughtgate.yaml:5"
    assert found["telemetry.log_level"][1:] == ("debug", "environment", "THOUGHTGATE_LOG_LEVEL")
    assert found["profile"][1:] == ("development", "flag", "--profile")
    assert found["audit.rotate.keep"].source == "default"
    assert found["tasks.poll"].value == "5s"


def test_lists_and_sections_are_shown_key_by_key(tmp_path: Path) -> None:
    found = rows(tmp_path)

    assert found["rules[0]"].value == '{"tool": "delete_*", "action": "approve"}'
    assert found["console.sign_in"].value == "not set"
    assert not [key for key in found if key.startswith("console.sign_in.")]


def test_values_that_may_be_secrets_are_not_shown(tmp_path: Path) -> None:
    found = rows(tmp_path, THOUGHTGATE_STORE="postgresql://ann:swordfish2026@db/gates")

    assert found["servers.web.headers.X-Key"].value == "set, not shown"
    assert not [row for row in found.values() if "swordfish" in row.value]


def test_the_built_in_policy_has_settings_too(tmp_path: Path) -> None:
    loaded = load_configuration(None, {"HOME": str(tmp_path)}, str(tmp_path))

    assert describe_settings(loaded, {})
