"""Finding and reading the config file on a real disk."""

import os
from pathlib import Path

import pytest

from thoughtgate.config.document import MAX_BYTES
from thoughtgate.errors import ConfigError, UsageError, exit_code
from thoughtgate.gate.config_files import (
    Loaded,
    find_config,
    load_configuration,
    load_document,
    load_text,
)
from thoughtgate.policy.call import Call
from thoughtgate.policy.evaluation import evaluate

GOOD = "schema: 1\ndefault: forward\n"


def load(flag: str | None, cwd: Path, **env: str) -> Loaded:
    return load_configuration(flag, {"HOME": str(cwd / "home"), **env}, str(cwd))


def problem(flag: str | None, cwd: Path, **env: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(flag, cwd, **env)
    assert exit_code(caught.value) == 1
    return str(caught.value)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "thoughtgate.yaml"
    path.write_text(GOOD)
    path.chmod(0o600)
    return path


@pytest.mark.requirement("FR24")
def test_a_named_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('schema = 1\ndefault = "deny"\n')
    loaded = load("other.toml", tmp_path)
    assert loaded.settings.default == "deny"
    assert loaded.path == str(tmp_path / "other.toml")
    assert loaded.warnings == ()


def test_files_are_found_by_variable_working_directory_and_user_directory(
    config: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home" / ".config" / "thoughtgate"
    home.mkdir(parents=True)
    (home / "thoughtgate.yaml").write_text("schema: 1\ndefault: approve\n")
    named = tmp_path / "named.yaml"
    named.write_text("schema: 1\ndefault: deny\n")
    assert load(None, tmp_path, THOUGHTGATE_CONFIG=str(named)).settings.default == "deny"
    assert load(None, tmp_path).path == str(config)
    config.unlink()
    assert load(None, tmp_path).settings.default == "approve"
    xdg = tmp_path / "xdg" / "thoughtgate"
    xdg.mkdir(parents=True)
    (xdg / "thoughtgate.json").write_text('{"schema": 1, "default": "forward"}')
    assert load(None, tmp_path, XDG_CONFIG_HOME=str(tmp_path / "xdg")).settings.default == "forward"


@pytest.mark.requirement("FR9")
def test_a_named_file_that_is_missing_is_an_error_and_nothing_else_is_tried(
    config: Path, tmp_path: Path
) -> None:
    assert "gone.yaml" in problem("gone.yaml", tmp_path)
    assert "THOUGHTGATE_CONFIG" in problem(None, tmp_path, THOUGHTGATE_CONFIG="gone.yaml")
    assert config.exists()


def test_without_a_file_the_starter_policy_applies_and_is_announced(tmp_path: Path) -> None:
    loaded = load(None, tmp_path)
    assert loaded.path is None
    assert loaded.policy.starter
    assert "starter policy" in loaded.warnings[0]
    assert evaluate(Call("s", "tool", "delete_all", {}), loaded.policy, 0.0).action == "approve"
    assert find_config(None, {"HOME": str(tmp_path)}, str(tmp_path)) is None


def test_a_symlink_is_refused(config: Path, tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to(config)
    assert "symlink" in problem("link.yaml", tmp_path)
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nowhere")
    assert "symlink" in problem("dangling.yaml", tmp_path)


def test_the_links_of_a_mounted_config_map_are_followed(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "thoughtgate.yaml").write_text(GOOD)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "thoughtgate.yaml").symlink_to("..data/thoughtgate.yaml")
    assert load(None, tmp_path).settings.default == "forward"


def test_a_directory_a_pipe_and_binary_data_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dir.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "bin.yaml").write_bytes(b"\xff\xfe\x00")
    assert "regular file" in problem("dir.yaml", tmp_path)
    assert "regular file" in problem("pipe.yaml", tmp_path)
    assert "UTF-8" in problem("bin.yaml", tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_refused(config: Path, tmp_path: Path) -> None:
    config.chmod(0)
    assert "cannot be read" in problem(None, tmp_path)


def test_a_file_in_the_place_of_a_directory_is_refused(config: Path, tmp_path: Path) -> None:
    assert "no such file" in problem(f"{config}/inner.yaml", tmp_path)


@pytest.mark.parametrize(
    "text", ["", " \n", "schema: 1\n", "nonsense", "schema: 1\ndefault: nope\n"]
)
def test_an_empty_or_wrong_file_never_falls_back_to_the_starter_policy(
    text: str, config: Path, tmp_path: Path
) -> None:
    config.write_text(text)
    assert str(config) in problem(None, tmp_path)


def test_a_byte_order_mark_is_fine(config: Path, tmp_path: Path) -> None:
    config.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load(None, tmp_path).settings.default == "forward"


def test_cedar_files_are_read_beside_the_config(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "c.yaml").write_text("schema: 1\ndefault: policy\ncedar: {policies: [p.cedar]}\n")
    assert "p.cedar" in problem("conf/c.yaml", tmp_path)
    (folder / "p.cedar").write_text("permit(principal, action, resource);")
    loaded = load("conf/c.yaml", tmp_path)
    assert evaluate(Call("s", "tool", "x", {}), loaded.policy, 0.0).action == "forward"


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        (GOOD, 0o644, ""),
        (GOOD, 0o666, "written by others"),
        (GOOD + "servers: {a: {command: x, env: {API_KEY: abc}}}\n", 0o600, ""),
        (GOOD + "servers: {a: {command: x, env: {API_KEY: abc}}}\n", 0o644, "holds a secret"),
        (GOOD + "servers: {a: {command: x, env: {API_KEY: '${K:-}'}}}\n", 0o644, ""),
        (GOOD + "servers: {a: {command: x, args: [sk-abcdef123456]}}\n", 0o640, "holds a secret"),
        (GOOD + "servers: {a: {url: 'https://h', auth: {token_env: T}}}\n", 0o644, ""),
    ],
)
def test_a_file_others_can_touch_is_warned_of(
    text: str, mode: int, words: str, config: Path, tmp_path: Path
) -> None:
    config.write_text(text)
    config.chmod(mode)
    warnings = load(None, tmp_path).warnings
    assert (words in warnings[0]) if words else not warnings


def test_a_profile_of_the_command_line_goes_before_everything(config: Path, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "THOUGHTGATE_PROFILE": "production"}
    loaded = load_configuration(str(config), env, str(tmp_path), profile="development")
    assert (loaded.settings.profile, loaded.policy.profile) == ("development", "development")


def test_a_mistyped_profile_is_refused_and_never_taken_for_development(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="production or development"):
        load_configuration(None, {"HOME": str(tmp_path)}, str(tmp_path), profile="prod")


def test_a_shared_store_is_refused_and_never_taken_for_a_local_one(
    config: Path, tmp_path: Path
) -> None:
    config.write_text("schema: 1\ndefault: deny\nstore: redis://127.0.0.1/0\n", "utf-8")
    with pytest.raises(ConfigError, match="use sqlite"):
        load_configuration(str(config), {"HOME": str(tmp_path)}, str(tmp_path))


def test_values_of_named_secrets_are_masked(config: Path, tmp_path: Path) -> None:
    config.write_text(
        GOOD
        + "servers: {a: {url: 'https://h', auth: {token_env: ONE}}}\n"
        + "listen: {transport: http, auth: {type: bearer, token_env: TWO}}\n"
        + "approval: {s: {channel: slack, slack: {channel: c, token_env: THREE}}, w: {channel: webhook, webhook: {url: 'https://h', secret_env: FOUR}}}\n"
        + "audit: {sign_key_env: FIVE}\n"
    )
    names = ("ONE", "TWO", "THREE", "FOUR", "FIVE")
    loaded = load(None, tmp_path, **{name: f"value-of-{name}" for name in names})
    for name in names:
        assert (
            loaded.policy.redactor.mask_text(f"x value-of-{name} y")
            == f"x [injected secret, {len(name) + 9} characters] y"
        )


def test_secrets_handed_to_a_server_are_masked(config: Path, tmp_path: Path) -> None:
    config.write_text(
        GOOD
        + "servers:\n  a: {command: x, env: {GITHUB_TOKEN: '${T}', MODE: production}}\n"
        + "  b: {url: 'https://h', headers: {Authorization: 'Bearer ${T}2', Accept: text/plain}}\n"
    )
    mask = load(None, tmp_path, T="s3cret-value").policy.redactor.mask_text
    assert mask("x s3cret-value y s3cret-value2 z") == (
        "x [injected secret, 12 characters] y [injected secret, 13 characters] z"
    )
    assert mask("production text/plain") == "production text/plain"


def test_the_document_of_a_file_and_of_the_starter_policy_can_be_had(config: Path) -> None:
    assert load_document(str(config)).lines["default",] == 2
    assert load_document(None).data["default"] == "forward"


def test_a_policy_file_that_is_a_pipe_too_large_or_no_name_is_refused(
    config: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    policy = "permit(principal, action, resource);\n//"
    large = policy.ljust(MAX_BYTES + 1, "x") + "\nforbid(principal, action, resource);\n"
    (tmp_path / "large").write_text(large)
    config.write_text(GOOD + 'cedar: {policies: [pipe, large, "a\\0b"]}\n')
    told = problem(None, tmp_path)
    assert "cedar.policies[0]: cannot read pipe: not a regular file" in told
    assert "cedar.policies[1]: cannot read large: larger than" in told
    assert "cedar.policies[2]: cannot read" in told


def test_a_text_is_loaded_like_a_file_that_nobody_watches(tmp_path: Path) -> None:
    (tmp_path / "p.cedar").write_text("permit(principal, action, resource);")
    text = "{schema: 1, default: policy, cedar: {policies: [p.cedar]}}"
    loaded = load_text(text, {}, str(tmp_path), profile="development")

    assert (loaded.path, loaded.policy.starter) == (None, False)
    assert loaded.policy.profile == "development"
    assert loaded.policy.cedar is not None
    with pytest.raises(ConfigError, match="config text"):
        load_text("{schema: 1}", {}, str(tmp_path))
