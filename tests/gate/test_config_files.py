"""Finding and reading the config file on a real disk."""

import os
from pathlib import Path
from typing import Any

import pytest

from thoughtgate.config.document import MAX_BYTES
from thoughtgate.errors import ConfigError, UsageError, exit_code
from thoughtgate.gate.config_files import (
    Loaded,
    find_config,
    load_configuration,
    load_document,
    load_text,
    reload_configuration,
)
from thoughtgate.gate.policy_files import sources
from thoughtgate.gate.policy_files.checked_files import PolicyFiles
from thoughtgate.gate.policy_files.trusted_files import trust_file
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.policy.call import Call
from thoughtgate.policy.evaluation import evaluate

GOOD = "schema: 1\ndefault: forward\n"


def load(flag: str | None, cwd: Path, **env: str) -> Loaded:
    """Load in a directory whose ``thoughtgate`` folder is the one of the user's config files."""
    environ = {"HOME": str(cwd / "home"), "XDG_CONFIG_HOME": str(cwd), **env}
    return load_configuration(flag, environ, str(cwd))


def problem(flag: str | None, cwd: Path, **env: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(flag, cwd, **env)
    assert exit_code(caught.value) == 1
    return str(caught.value)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "thoughtgate" / "thoughtgate.yaml"
    path.parent.mkdir()
    path.write_text(GOOD)
    path.chmod(0o600)
    return path


def project(folder: Path, text: str) -> Path:
    """Write a config into the working directory."""
    path = folder / "thoughtgate.yaml"
    path.write_text(text, "utf-8")
    return path


def organisation(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> Path:
    """Write the organisation's policy."""
    (folder / "etc").mkdir()
    path = folder / "etc" / "thoughtgate.yaml"
    path.write_text(text, "utf-8")
    monkeypatch.setattr(sources, "SYSTEM_DIRECTORY", str(path.parent))
    return path


def action(loaded: Loaded, tool: str, **arguments: Any) -> str:
    return evaluate(Call("s", "tool", tool, arguments), loaded.policy, 0.0).action


@pytest.mark.requirement("FR24")
def test_a_named_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('schema = 1\ndefault = "deny"\n')
    loaded = load("other.toml", tmp_path)
    assert loaded.settings.default == "deny"
    assert loaded.path == str(tmp_path / "other.toml")
    assert loaded.warnings == ()


def test_files_are_found_by_variable_and_user_directory(config: Path, tmp_path: Path) -> None:
    named = tmp_path / "named.yaml"
    named.write_text("schema: 1\ndefault: deny\n")
    assert load(None, tmp_path, THOUGHTGATE_CONFIG=str(named)).settings.default == "deny"
    assert load(None, tmp_path).path == str(config)
    home = tmp_path / "home" / ".config" / "thoughtgate"
    home.mkdir(parents=True)
    (home / "thoughtgate.json").write_text('{"schema": 1, "default": "approve"}')
    found = load_configuration(None, {"HOME": str(tmp_path / "home")}, str(tmp_path))
    assert found.settings.default == "approve"


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
    assert load("thoughtgate.yaml", tmp_path).settings.default == "forward"


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
        (GOOD + "servers: {a: {command: x, env: {API_KEY: abc}}}\n", 0o600, ""),
        (GOOD + "servers: {a: {command: x, env: {API_KEY: abc}}}\n", 0o644, "holds a secret"),
        (GOOD + "servers: {a: {command: x, env: {API_KEY: '${K:-}'}}}\n", 0o644, ""),
        (GOOD + "servers: {a: {command: x, args: [sk-abcdef123456]}}\n", 0o640, "holds a secret"),
        (GOOD + "servers: {a: {url: 'https://h', auth: {token_env: T}}}\n", 0o644, ""),
    ],
)
def test_a_secret_that_others_can_read_is_warned_of(
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
    os.mkfifo(config.parent / "pipe")
    policy = "permit(principal, action, resource);\n//"
    large = policy.ljust(MAX_BYTES + 1, "x") + "\nforbid(principal, action, resource);\n"
    (config.parent / "large").write_text(large)
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


# A project's policy.

DENY = "schema: 1\ndefault: deny\nrules: [{tool: read, action: forward}]\n"
LOOSE = """
schema: 1
profile: development
default: forward
servers: {s: {command: evil, expose: {block: [hidden]}}}
rules:
  - {tool: danger, action: deny}
  - {tool: ask, action: approve, approval: ops}
  - {tool: other, action: approve, approval: theirs}
approval:
  ops: {on_timeout: approve, channel: webhook, webhook: {url: "https://x/${SECRET}", secret_env: S}}
  theirs: {on_timeout: approve}
limits: [{tool: read, budget: 1}]
redact: {patterns: [".*"]}
"""


def trust(path: Path, environ: dict[str, str], *cedar: str) -> None:
    digest = PolicyFiles().digest(str(path), list(cedar))
    trust_file(state_directory(environ), str(path), digest, "now")


@pytest.mark.promise("project-policy-only-tightens")
def test_a_file_in_the_working_directory_loosens_nothing(config: Path, tmp_path: Path) -> None:
    config.write_text(DENY, "utf-8")
    path = project(tmp_path, LOOSE)
    loaded = load(None, tmp_path, THOUGHTGATE_STATE_DIR=str(tmp_path / "state"))

    assert loaded.path == str(config)
    assert (loaded.policy.profile, loaded.settings.profile) == ("production", "production")
    assert action(loaded, "anything") == "deny"
    assert action(loaded, "read") == "forward"
    assert loaded.settings.servers == {}
    assert loaded.policy.redactor.mask_text("plain") == "plain"
    assert [source.role for source in loaded.sources] == ["user", "project"]
    (warning,) = loaded.warnings
    for key in ("profile", "servers.s.command", "approval", "redact"):
        assert key in warning
    assert f"{path} is not trusted" in warning


def test_a_file_in_the_working_directory_may_tighten(config: Path, tmp_path: Path) -> None:
    config.write_text("schema: 1\ndefault: forward\napproval: {ops: {timeout: 7s}}\n", "utf-8")
    project(tmp_path, LOOSE)
    loaded = load(None, tmp_path)

    assert action(loaded, "danger") == "deny"
    assert action(loaded, "hidden") == "deny"
    assert action(loaded, "anything") == "forward"
    asked = [evaluate(Call("s", "tool", one, {}), loaded.policy, 0.0) for one in ("ask", "other")]
    assert [one.workflow for one in asked] == ["ops", "default"], "the user's own workflows"
    assert loaded.settings.approval["ops"].timeout_s == 7.0
    assert [limit.id for limit in loaded.policy.limits] == ["project:limits[0]"]


def test_without_a_file_of_the_user_a_project_tightens_the_starter_policy(tmp_path: Path) -> None:
    project(tmp_path, LOOSE)
    loaded = load(None, tmp_path)
    assert loaded.path is None
    assert action(loaded, "delete_all") == "approve"
    assert action(loaded, "danger") == "deny"


def test_a_project_s_file_beside_the_starter_policy_is_never_reported_as_missing(
    tmp_path: Path,
) -> None:
    path = project(tmp_path, "schema: 1\ndefault: forward\n")
    (told,) = load(None, tmp_path).warnings
    assert "no config file found" not in told
    assert "the built-in starter policy applies" in told
    assert f"{path}, which is not trusted, can only tighten it" in told
    assert "thoughtgate trust" in told


def test_an_invalid_project_file_is_refused_with_its_name(config: Path, tmp_path: Path) -> None:
    path = project(tmp_path, "schema: 1\ndefault: nope\n")
    assert str(path) in problem(None, tmp_path)
    assert config.exists()


@pytest.mark.promise("project-policy-trust")
def test_a_trusted_project_file_replaces_the_user_s(config: Path, tmp_path: Path) -> None:
    path = project(tmp_path, "schema: 1\ndefault: forward\n")
    state = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    config.write_text(DENY, "utf-8")
    trust(path, state)

    loaded = load(None, tmp_path, **state)
    assert (loaded.path, action(loaded, "anything")) == (str(path), "forward")
    assert [(one.role, one.trusted) for one in loaded.sources] == [("project", True)]
    assert find_config(None, {"XDG_CONFIG_HOME": str(tmp_path), **state}, str(tmp_path)) == str(
        path
    )

    path.write_text("schema: 1\ndefault: forward\n# one more byte\n", "utf-8")
    loaded = load(None, tmp_path, **state)
    assert (loaded.path, action(loaded, "anything")) == (str(config), "deny")


@pytest.mark.promise("project-policy-trust")
def test_a_link_to_a_trusted_file_of_another_project_is_not_trusted(
    config: Path, tmp_path: Path
) -> None:
    path = project(tmp_path, "schema: 1\ndefault: forward\n")
    state = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    config.write_text(DENY, "utf-8")
    trust(path, state)
    other = tmp_path / "other"
    other.mkdir()
    # The only kind of link that is followed, as Kubernetes makes them.
    (other / "..data").symlink_to(tmp_path)
    (other / path.name).symlink_to(f"..data/{path.name}")

    environ = {"XDG_CONFIG_HOME": str(tmp_path), **state}
    loaded = load_configuration(None, environ, str(other))

    assert (loaded.path, action(loaded, "anything")) == (str(config), "deny")


@pytest.mark.promise("project-policy-trust")
@pytest.mark.parametrize("name", ["cedar", '"ced\\u0061r"'])
def test_trust_covers_the_policy_files_that_are_named(
    name: str, config: Path, tmp_path: Path
) -> None:
    path = project(tmp_path, f"schema: 1\ndefault: policy\n{name}: {{policies: [p.cedar]}}\n")
    cedar = tmp_path / "p.cedar"
    cedar.write_text("permit(principal, action, resource);", "utf-8")
    state = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    config.write_text(DENY, "utf-8")
    trust(path, state, "p.cedar")
    assert action(load(None, tmp_path, **state), "anything") == "forward"
    cedar.write_text("permit(principal, action, resource); // changed", "utf-8")
    assert action(load(None, tmp_path, **state), "anything") == "deny"
    cedar.unlink()
    assert action(load(None, tmp_path, **state), "anything") == "deny"


def test_a_policy_file_that_others_can_write_is_refused(config: Path, tmp_path: Path) -> None:
    config.write_text("schema: 1\ndefault: policy\ncedar: {policies: [p.cedar]}\n", "utf-8")
    cedar = config.parent / "p.cedar"
    cedar.write_text("permit(principal, action, resource);", "utf-8")
    cedar.chmod(0o666)
    assert f"{cedar}: can be written by everybody" in problem(None, tmp_path)
    cedar.chmod(0o600)
    config.chmod(0o666)
    assert f"{config}: can be written by everybody" in problem(None, tmp_path)


# The organisation's policy.

FLOOR = """
schema: 1
default: forward
rules:
  - {tool: never, action: deny}
  - {tool: ask, action: approve, approval: security}
approval: {security: {timeout: 9s, required: 2}}
audit: {sign_key_env: ORG_KEY}
"""


@pytest.mark.promise("organisation-floor")
def test_the_organisation_is_always_asked_and_nothing_loosens_it(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(
        "schema: 1\ndefault: forward\nrules: [{tool: ask, action: approve}]\n"
        "audit: {on_failure: continue}\n"
    )
    path = organisation(monkeypatch, tmp_path, FLOOR)
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "THOUGHTGATE_PROFILE": "development"}
    for flag, profile in ((None, None), (str(config), "development")):
        loaded = load_configuration(flag, environ, str(tmp_path), profile=profile)
        assert action(loaded, "never") == "deny"
        assert (loaded.policy.profile, loaded.settings.profile) == ("production", "production")
        verdict = evaluate(Call("s", "tool", "ask", {}), loaded.policy, 0.0)
        assert verdict.workflow == "organisation/security"
        workflow = loaded.settings.approval["organisation/security"]
        assert (workflow.name, workflow.timeout_s, workflow.required) == (verdict.workflow, 9.0, 2)
        assert verdict.workflow in loaded.policy.workflows
        audit = loaded.settings.audit
        assert (audit.on_failure, audit.sign_key_env) == ("refuse", "ORG_KEY")
        assert loaded.sources[-1].path == str(path)


def test_a_gate_behind_another_gate_does_not_ask_the_organisation_twice(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    organisation(monkeypatch, tmp_path, FLOOR)
    loaded = load_configuration(str(config), {}, str(tmp_path), has_floor=False)
    assert action(loaded, "never") == "forward"
    assert action(reload_configuration(loaded, {}), "never") == "forward"


def test_alone_the_organisation_s_policy_is_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = organisation(monkeypatch, tmp_path, FLOOR)
    project(tmp_path, "schema: 1\ndefault: deny\n")
    loaded = load_configuration(None, {"HOME": "/n"}, str(tmp_path), profile="development")
    assert (loaded.path, loaded.policy.profile) == (str(path), "production")
    assert action(loaded, "anything") == "deny", "the project tightens it"
    assert [one.role for one in loaded.sources] == ["organisation", "project"]
    path.write_text("schema: 1\nprofile: development\ndefault: forward\n", "utf-8")
    for profile, env in (("production", {}), (None, {"THOUGHTGATE_PROFILE": "production"})):
        found = load_configuration(None, {"HOME": "/n", **env}, "/", profile=profile)
        assert found.policy.profile == "production"
    assert load_configuration(None, {"HOME": "/n"}, "/").policy.profile == "development"


@pytest.mark.promise("organisation-floor")
def test_a_trusted_project_does_not_loosen_the_organisation_s_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    organisation(monkeypatch, tmp_path, FLOOR)
    state = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    trust(project(tmp_path, "schema: 1\ndefault: forward\n"), state)
    assert action(load(None, tmp_path, **state), "never") == "deny"


# Loading again.


def test_a_file_that_is_gone_does_not_take_its_rules_along(config: Path, tmp_path: Path) -> None:
    path = project(tmp_path, "schema: 1\ndefault: deny\n")
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    loaded = load_configuration(None, environ, str(tmp_path))
    assert reload_configuration(loaded, environ).sources == loaded.sources
    path.unlink()
    with pytest.raises(ConfigError, match="is gone; restart to run without it"):
        reload_configuration(loaded, environ)
    assert config.exists()
