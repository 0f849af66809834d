"""The first gate: allowlists, blocklists, disabled servers and the entry for all others."""

import pytest

from thoughtgate.policy.call import PROMPT, RESOURCE, TOOL
from thoughtgate.policy.visibility import ALL, ALLOW, BLOCK, Exposure, Visibility


@pytest.mark.requirement("FR5")
def test_an_allowlist_shows_only_what_it_names() -> None:
    visibility = Visibility({"fs": Exposure.of(ALLOW, ["read_file", "list_*"])})
    assert visibility.allows("fs", TOOL, "read_file")
    assert visibility.allows("fs", TOOL, "list_dir")
    assert not visibility.allows("fs", TOOL, "Read_file")
    assert not visibility.allows("fs", TOOL, "write_file")


@pytest.mark.requirement("FR8")
def test_an_empty_allowlist_shows_nothing() -> None:
    assert not Visibility({"fs": Exposure.of(ALLOW)}).allows("fs", TOOL, "read_file")


def test_a_blocklist_shows_everything_else() -> None:
    visibility = Visibility({"fs": Exposure.of(BLOCK, ["admin_*", "wipe"])})
    assert visibility.allows("fs", TOOL, "read_file")
    assert not visibility.allows("fs", TOOL, "admin_reset")
    assert not visibility.allows("fs", TOOL, "wipe")


def test_one_list_serves_tools_resources_and_prompts() -> None:
    visibility = Visibility({"fs": Exposure.of(ALLOW, ["read_file", "file:///tmp/*"])})
    assert visibility.allows("fs", RESOURCE, "file:///tmp/a")
    assert not visibility.allows("fs", RESOURCE, "file:///etc/passwd")
    assert not visibility.allows("fs", PROMPT, "greet")


def test_a_server_without_an_entry_falls_to_the_star() -> None:
    visibility = Visibility({"fs": Exposure.of(ALL), "*": Exposure.of(BLOCK, ["x"])})
    assert visibility.allows("fs", TOOL, "x")
    assert not visibility.allows("other", TOOL, "x")


def test_without_a_star_an_unknown_server_is_visible() -> None:
    assert Visibility().allows("other", TOOL, "x")


def test_a_disabled_server_shows_nothing() -> None:
    assert not Visibility({"fs": Exposure.of(ALL, enabled=False)}).allows("fs", TOOL, "x")


def test_hidden_names_are_told_in_order() -> None:
    visibility = Visibility({"fs": Exposure.of(ALLOW, ["b"])})
    assert visibility.hidden("fs", TOOL, ["c", "b", "a"]) == ["c", "a"]
