"""``validate-config`` as a process: messages, exit codes, and silence on stdout."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.support.warm_command import run_warm

GOOD = "schema: 1\ndefault: deny\n"


def validate(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_warm("validate-config", *args, cwd=cwd)


@pytest.mark.requirement("FR27", "FR29")
def test_a_valid_config_exits_0_says_so_on_stderr_and_nothing_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    result = validate("-c", "a.yaml", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (
        0,
        "",
        f"The config is valid: {tmp_path / 'a.yaml'} (-c), production.\n",
    )


@pytest.mark.requirement("FR25", "FR26", "FR27", "FR29")
def test_the_config_can_be_named_without_an_option(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    assert "a.yaml" in validate("a.yaml", cwd=tmp_path).stderr
    twice = validate("a.yaml", "-c", "b.yaml", cwd=tmp_path)
    assert (twice.returncode, twice.stdout) == (2, "")
    assert "name the config once" in twice.stderr


def test_an_invalid_config_exits_1_with_each_problem_on_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "schema: 1\nlisten: {transport: http, port: 99999}\nrules: [{action: x}]\n"
    )
    result = validate("-c", "a.yaml", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("Error: ") for line in lines)
    assert "listen.port: must be a valid port number" in result.stderr
    assert "default: required" in result.stderr
    assert "rules[0].action: unknown value" in result.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = validate("-c", "gone.yaml", cwd=tmp_path)
    assert result.returncode == 1
    assert "gone.yaml" in result.stderr


def test_what_the_machine_lacks_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD + "audit: {sign_key_env: NO_SUCH_KEY}\n")
    result = validate("-c", "a.yaml", cwd=tmp_path)
    assert result.returncode == 0
    assert "audit.sign_key_env: the variable NO_SUCH_KEY is not set" in result.stderr
    assert result.stderr.startswith("Warning: ")
    assert "The config is valid: " in result.stderr


def test_missing_certificates_are_named_with_their_keys(tmp_path: Path) -> None:
    listen = "listen: {transport: http, tls: {cert: gate.pem, key: gate.key}}\n"
    (tmp_path / "a.yaml").write_text(GOOD + listen)
    result = validate("-c", "a.yaml", cwd=tmp_path)
    for key, name in (("cert", "gate.pem"), ("key", "gate.key")):
        expected = f"listen.tls.{key}: {tmp_path / name}: No such file or directory"
        assert expected in result.stderr


def test_without_a_file_there_is_nothing_to_validate(tmp_path: Path) -> None:
    result = validate(cwd=tmp_path)
    assert result.returncode == 1
    assert "thoughtgate init" in result.stderr


def test_a_file_is_found_without_a_flag(tmp_path: Path) -> None:
    (tmp_path / "thoughtgate.yaml").write_text(GOOD + "audit: {on_failure: continue}\n")
    result = validate("--json", cwd=tmp_path)
    assert result.returncode == 0
    starter, project = json.loads(result.stdout)["sources"]
    assert (starter["role"], project["role"], project["trusted"]) == ("starter", "project", False)
    assert project["ignored"] == ["audit"]
    assert "(project, not trusted: only tightens; thoughtgate trust)" in result.stderr


def test_json_lists_problems_and_warnings(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD + "audit: {sign_key_env: NO_SUCH_KEY}\n")
    report = json.loads(validate("-c", "a.yaml", "--json", cwd=tmp_path).stdout)
    assert report["valid"]
    assert len(report["warnings"]) == 1
    path.write_text("schema: 1\n")
    result = validate("-c", "a.yaml", "--json", cwd=tmp_path)
    assert result.returncode == 1
    assert json.loads(result.stdout)["problems"][0]["key"] == "default"


def test_the_schema_is_json(tmp_path: Path) -> None:
    schema = json.loads(validate("--schema", cwd=tmp_path).stdout)
    assert "rules" in schema["properties"]


def test_a_signing_key_that_no_gate_starts_with_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT_KEY", "q" * 31)
    (tmp_path / "a.yaml").write_text(GOOD + "audit: {sign_key_env: SHORT_KEY}\n")
    result = validate("-c", "a.yaml", cwd=tmp_path)
    assert result.returncode == 0
    assert "audit.sign_key_env: the key in the variable SHORT_KEY is too short; " in result.stderr
    assert "qq" not in result.stderr


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        (None, 0, "No such file or directory"),
        ("ab" * 32, 0o644, "has mode 0644"),
        ("nonsense", 0o600, "64 hexadecimal digits"),
    ],
)
def test_a_key_file_that_cannot_be_used_is_named_with_its_config(
    tmp_path: Path, content: str | None, mode: int, reason: str
) -> None:
    (tmp_path / "a.yaml").write_text(GOOD + "keys: {file: session-keys}\n")
    if content is not None:
        (tmp_path / "session-keys").write_text(content + "\n")
        (tmp_path / "session-keys").chmod(mode)
    result = validate("-c", "a.yaml", cwd=tmp_path)
    (warning, _) = result.stderr.splitlines()
    assert warning.startswith(f"Warning: {tmp_path / 'a.yaml'}: keys.file: ")
    assert str(tmp_path / "session-keys") in warning
    assert reason in warning


def test_a_key_file_that_can_be_used_is_not_mentioned(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD + "keys: {file: session-keys}\n")
    (tmp_path / "session-keys").touch(0o600)
    (tmp_path / "session-keys").write_text("ab" * 32 + "\n")
    assert "keys.file" not in validate("-c", "a.yaml", cwd=tmp_path).stderr
