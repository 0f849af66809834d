"""Editing a config's servers."""

import re
import stat
from pathlib import Path

import pytest

from thoughtgate.cli.server_entries import ServerFile, known_fields, new_server_id, parse_pasted
from thoughtgate.errors import ConfigError, Conflict, UsageError

TEXT = """\
# Our gate.
schema: 1
default: deny   # strict

servers:
  files:        # the files
    command: files-server
    args: ["--root", "/tmp"]
  web: {url: "https://example.com/mcp"}

namespaces:
  work: [files, web]
"""


def config(tmp_path: Path, text: str = TEXT) -> Path:
    path = tmp_path / "thoughtgate.yaml"
    path.write_text(text)
    path.chmod(0o640)
    return path


@pytest.mark.requirement("S002-54")
def test_a_generated_id_has_four_characters_and_is_nobodys() -> None:
    made = {new_server_id(set()) for _ in range(200)}

    assert all(re.fullmatch("[a-z][a-z0-9]{3}", ident) for ident in made)
    taken = set(made)
    assert new_server_id(taken) not in taken


def test_adding_and_removing_keeps_comments_order_and_mode(tmp_path: Path) -> None:
    path = config(tmp_path)
    file = ServerFile(path, {})
    file.add("git", {"command": "git-server", "args": ["-v"]})
    file.save()

    text = path.read_text()
    assert "# Our gate." in text
    assert "# strict" in text
    assert "# the files" in text
    assert "git-server" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    again = ServerFile(path, {})
    assert again.remove("git") == []
    assert again.remove("web") == ["work"]
    again.save()
    assert "web" not in path.read_text()
    assert [one.name for one in tmp_path.iterdir()] == ["thoughtgate.yaml"]


def test_an_id_is_taken_only_once(tmp_path: Path) -> None:
    file = ServerFile(config(tmp_path), {})

    with pytest.raises(Conflict, match="Files"):
        file.add("Files", {"command": "x"})
    assert file.add("files", {"command": "x"}, replace=True) == "files"
    assert len(file.add("", {"command": "x"})) == 4
    with pytest.raises(UsageError, match="its servers are: files"):
        file.remove("nothing")


def test_a_change_that_would_break_the_config_is_not_written(tmp_path: Path) -> None:
    path = config(tmp_path)
    file = ServerFile(path, {})
    file.add("bad.name", {"command": "x", "url": "https://example.com"})

    with pytest.raises(ConfigError):
        file.save()
    assert path.read_text() == TEXT


@pytest.mark.parametrize("text", ["- a\n", "a: [", "5"])
def test_what_is_no_mapping_is_not_edited(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ServerFile(config(tmp_path, text), {})
    assert "\n" not in str(caught.value)


def test_other_formats_are_left_to_their_owner(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="by hand"):
        ServerFile(tmp_path / "thoughtgate.toml", {})
    with pytest.raises(ConfigError, match="cannot be read"):
        ServerFile(tmp_path / "absent.yaml", {})


def test_a_config_without_servers_gets_them(tmp_path: Path) -> None:
    for text in ("schema: 1\ndefault: deny\n", "schema: 1\ndefault: deny\nservers:\n"):
        path = config(tmp_path, text)
        file = ServerFile(path, {})
        file.add("one", {"command": "x"})
        file.save()

        assert "one:" in path.read_text()


@pytest.mark.requirement("S002-05")
@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a.b/c": {"command": "x", "autoApprove": []}}}',
        '{"servers": {"a b c": {"command": "x", "autoApprove": []}}}',
        '{"a-b-c": {"command": "x", "autoApprove": []}}',
    ],
)
def test_a_pasted_block_is_read_in_its_usual_forms(text: str) -> None:
    [(ident, entry)] = parse_pasted(text).items()

    assert ident == "a-b-c"
    assert known_fields(entry) == ({"command": "x"}, ["autoApprove"])


@pytest.mark.parametrize(
    "text", ["nope", "[]", "{}", '{"mcpServers": {}}', '{"command": "x"}', '{"a": 5}']
)
def test_a_paste_without_servers_says_what_is_wrong(text: str) -> None:
    with pytest.raises(UsageError):
        parse_pasted(text)


def test_a_linked_config_stays_a_link(tmp_path: Path) -> None:
    path = config(tmp_path)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    file = ServerFile(link, {})
    file.add("new", {"command": "x"})
    file.save()

    assert link.is_symlink()
    assert "new:" in path.read_text()


def test_a_change_by_another_program_is_not_overwritten(tmp_path: Path) -> None:
    path = config(tmp_path)
    file = ServerFile(path, {})
    file.add("new", {"command": "x"})
    path.write_text(TEXT + "# edited\n")

    with pytest.raises(Conflict, match="changed by another program"):
        file.save()
    assert path.read_text() == TEXT + "# edited\n"
