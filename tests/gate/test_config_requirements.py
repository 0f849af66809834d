"""What a config needs of the machine it runs on."""

from pathlib import Path

import pytest

from thoughtgate.config.settings import Settings
from thoughtgate.errors import ConfigError
from thoughtgate.gate import config_requirements as requirements
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.config_requirements import missing_requirements, sign_key_fault

NEEDY = """\
schema: 1
default: deny
audit: {sign_key_env: RECORD_KEY}
listen: {transport: http, auth: {type: bearer, token_env: AGENTS_TOKEN}}
telemetry: {otlp: {endpoint: "http://127.0.0.1:4318"}}
approval: {default: {channel: webhook, webhook: {url: "https://example.com", secret_env: HOOK}}}
servers:
  far: {url: "https://example.com/mcp", auth: {token_env: FAR_TOKEN}}
  off: {url: "https://example.com/mcp", auth: {token_env: OFF_TOKEN}, enabled: false}
"""


def _settings(directory: Path, text: str) -> Settings:
    path = directory / "thoughtgate.yaml"
    path.write_text(text, "utf-8")
    return load_configuration(str(path), {}, str(directory)).settings


def test_everything_that_is_named_and_missing_is_listed(tmp_path: Path) -> None:
    found = missing_requirements(_settings(tmp_path, NEEDY), {"RECORD_KEY": " "}, "t.yaml")

    assert {problem.key: problem.message.split()[2] for problem in found} == {
        "audit.sign_key_env": "RECORD_KEY",
        "listen.auth.token_env": "AGENTS_TOKEN",
        "servers.far.auth.token_env": "FAR_TOKEN",
        "approval.default.webhook.secret_env": "HOOK",
    }
    assert {problem.file for problem in found} == {"t.yaml"}


def test_what_is_there_is_not_listed(tmp_path: Path) -> None:
    environ = dict.fromkeys(("RECORD_KEY", "AGENTS_TOKEN", "FAR_TOKEN", "HOOK"), "x" * 32)

    assert missing_requirements(_settings(tmp_path, NEEDY), environ) == []


@pytest.mark.parametrize("module", ["no_such_module", "no_such_package.module"])
def test_an_extra_that_is_not_installed_is_listed_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(requirements._EXTRAS, "otel", module)
    environ = dict.fromkeys(("RECORD_KEY", "AGENTS_TOKEN", "FAR_TOKEN", "HOOK"), "x" * 32)

    (problem,) = missing_requirements(_settings(tmp_path, NEEDY), environ)

    assert problem.key == "telemetry.otlp"
    assert "pip install 'thoughtgate[otel]'" in problem.message


def test_a_signing_key_that_is_too_short_is_listed_and_not_shown(tmp_path: Path) -> None:
    environ = dict.fromkeys(("AGENTS_TOKEN", "FAR_TOKEN", "HOOK"), "x" * 32)
    environ["RECORD_KEY"] = "q" * 31

    (problem,) = missing_requirements(_settings(tmp_path, NEEDY), environ, "t.yaml")

    assert problem.key == "audit.sign_key_env"
    assert problem.message == sign_key_fault("RECORD_KEY", environ)
    assert problem.message.startswith("the key in the variable RECORD_KEY is too short; ")
    assert "qq" not in problem.message


def test_blanks_are_no_signing_key() -> None:
    assert sign_key_fault("KEY", {"KEY": " " * 40}) == "the variable KEY is not set"
    assert sign_key_fault("KEY", {"KEY": "k" * 32}) == ""


SHARED = """\
schema: 1
default: deny
store: postgresql://gate@db/gates
listen: {transport: http}
"""


def test_gates_that_share_a_store_need_keys_that_can_be_read(tmp_path: Path) -> None:
    (problem,) = missing_requirements(_settings(tmp_path, SHARED), {})
    assert (problem.key, "openssl rand -hex 32" in problem.message) == ("keys.file", True)

    settings = _settings(tmp_path, SHARED + "keys: {file: keys}\n")
    (problem,) = missing_requirements(settings, {}, str(tmp_path / "thoughtgate.yaml"))
    assert f"{tmp_path / 'keys'}: No such file" in problem.message

    (tmp_path / "keys").write_text("ab" * 32 + "\n", "ascii")
    (tmp_path / "keys").chmod(0o644)
    (problem,) = missing_requirements(settings, {}, str(tmp_path / "thoughtgate.yaml"))
    assert problem.message.endswith(f"run: chmod 0600 {tmp_path / 'keys'}")

    (tmp_path / "keys").chmod(0o600)
    assert missing_requirements(settings, {}, str(tmp_path / "thoughtgate.yaml")) == []


@pytest.mark.parametrize("url", ["postgresql://gate@/x", "postgresql://gate@db", "postgresql://"])
def test_a_store_without_a_host_or_a_database_is_invalid(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="postgresql://USER@HOST/DATABASE"):
        _settings(tmp_path, f"schema: 1\ndefault: deny\nstore: '{url}'\n")
