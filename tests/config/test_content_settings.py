"""The keys for contents: which checks a config may name, and what it means to leave them out."""

import pytest

from thoughtgate.config.build import build_policy, policy_version
from thoughtgate.config.content_settings import known_check
from thoughtgate.config.load import load_settings
from thoughtgate.config.settings import Settings
from thoughtgate.errors import ConfigError


def settings(servers: str) -> Settings:
    text = f"schema: 1\ndefault: deny\nservers:\n{servers}\n"
    return load_settings(text, file="t.yaml", env={}, read_text=str)


@pytest.mark.parametrize("name", ["hard", "soft", "secret-token", "secret-*", "*"])
def test_checks_globs_and_tiers_are_accepted(name: str) -> None:
    known_check(name)
    found = settings(f'  a: {{command: x, results: {{block: ["{name}"]}}}}').servers["a"].results
    assert found is not None
    assert found.block == (name,)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("secret-tokens", "did you mean secret-token"),
        ("hards", "did you mean hard"),
        ("zzz", "the checks are"),
        ("zzz-*", "no check has this name"),
    ],
)
def test_an_unknown_check_is_an_error_that_names_close_ones(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        settings(f'  a: {{command: x, results: {{redact: ["{name}"]}}}}')
    assert caught.value.problems[0].key.startswith("servers.a.results.redact")
    with pytest.raises(ConfigError, match="no check has this name"):
        settings(f'  a: {{command: x, silence: [{{check: "{name}", reason: r}}]}}')


def test_a_server_has_what_the_star_says_unless_it_says_something_itself() -> None:
    policy = build_policy(
        settings(
            '  "*": {results: {block: [hard]}, arguments: {block_secrets: true}}\n'
            "  off: {command: x, results: {}}\n"
            "  same: {command: x}"
        )
    )
    contents = policy.contents
    assert contents is not None
    assert contents.result_inspection("same")
    assert contents.result_inspection("unnamed")
    assert not contents.result_inspection("off")
    assert contents.inspects_arguments("off")


def test_nothing_is_inspected_unless_a_server_asks_for_it() -> None:
    assert build_policy(settings("  a: {command: x}")).contents is None


def test_the_policys_version_depends_on_contents() -> None:
    texts = ("", ", results: {block: [hard]}", ", arguments: {block_secrets: true}")
    versions = {policy_version(settings(f"  a: {{command: x{text}}}")) for text in texts}
    assert len(versions) == len(texts)
