"""The first gate: allowlists, blocklists, disabled servers and the entry for all others."""

import pytest

from thoughtgate.policy.visibility import ALL, ALLOW, BLOCK, Exposure, Visibility


@pytest.mark.requirement("FR5")
def test_an_allowlist_shows_only_what_it_names() -> None:
    visibility = Visibility({"fs": Exposure.of(ALLOW, ["read_file", "list_*"])})
    assert visibility.allows("fs", "read_file")
    assert visibility.allows("fs", "list_dir")
    assert not visibility.allows("fs", "Read_file")
    assert not visibility.allows("fs", "write_file")


@pytest.mark.requirement("FR8")
def test_an_empty_allowlist_shows_nothing() -> None:
    assert not Visibility({"fs": Exposure.of(ALLOW)}).allows("fs", "read_file")


def test_a_blocklist_shows_everything_else() -> None:
    visibility = Visibility({"fs": Exposure.of(BLOCK, ["admin_*", "wipe"])})
    assert visibility.allows("fs", "read_file")
    assert not visibility.allows("fs", "admin_reset")
    assert not visibility.allows("fs", "wipe")


def test_one_list_serves_tools_resources_and_prompts() -> None:
    visibility = Visibility({"fs": Exposure.of(ALLOW, ["read_file", "file:///tmp/*"])})
    assert visibility.allows("fs", "file:///tmp/a")
    assert not visibility.allows("fs", "file:///etc/passwd")
    assert not visibility.allows("fs", "greet")


def test_a_server_without_an_entry_falls_to_the_star() -> None:
    visibility = Visibility({"fs": Exposure.of(ALL), "*": Exposure.of(BLOCK, ["x"])})
    assert visibility.allows("fs", "x")
    assert not visibility.allows("other", "x")


def test_without_a_star_an_unknown_server_is_visible() -> None:
    assert Visibility().allows("other", "x")


def test_a_disabled_server_shows_nothing() -> None:
    assert not Visibility({"fs": Exposure.of(ALL, enabled=False)}).allows("fs", "x")
