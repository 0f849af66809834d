"""Editing YAML in place: the edited values change and nothing else, and back again."""

from typing import Any

import pytest
from ruamel.yaml import YAML

from thoughtgate.agents.formats.yaml_document import YamlDocument
from thoughtgate.errors import ConfigError

BLOCK = """\
# my extensions
GOOSE_MODEL: none   # a comment
extensions:
  files:
    cmd: npx # the runner
    args:
      - -y
      - "@example/files"
    envs: {MODE: read}
    enabled: true

  other: {cmd: uvx, args: [a, b], enabled: true}
  bare:
    cmd: run
# the end
"""


def _values(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def _entry(name: str) -> tuple[str, ...]:
    return ("extensions", name)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["files", "other"])
def test_a_command_and_its_arguments_change_and_change_back(
    name: str, newline: str, bom: str
) -> None:
    text = bom + BLOCK.replace("\n", newline)
    document = YamlDocument(text)
    old = document.raw((*_entry(name), "cmd"))
    before = document.values["extensions"][name]
    document.replace(_entry(name), ("cmd",), document.encode("/opt/python"))
    document.prepend(_entry(name), ("args",), ["-I", "with: colon", "--", old])

    changed = _values(document.render())["extensions"][name]
    assert changed["cmd"] == "/opt/python"
    assert changed["args"] == ["-I", "with: colon", "--", old, *before["args"]]

    document.remove_first(_entry(name), ("args",), 4)
    document.replace(_entry(name), ("cmd",), old)
    assert document.render() == text


@pytest.mark.parametrize(("name", "after"), [("bare", "cmd"), ("other", "cmd"), ("files", "cmd")])
def test_a_key_is_added_and_removed_again(name: str, after: str) -> None:
    document = YamlDocument(BLOCK)
    document.insert(_entry(name), ("new",), '["x", "y"]', after)
    changed = _values(document.render())
    assert list(changed["extensions"][name])[:2] == ["cmd", "new"]
    assert changed["extensions"][name]["new"] == ["x", "y"]
    assert {**changed["extensions"][name], "new": None} == {
        **document.values["extensions"][name],
        "new": None,
    }
    document.remove(_entry(name), ("new",))
    assert document.render() == BLOCK


def test_a_first_key_is_added_and_removed_again() -> None:
    document = YamlDocument(BLOCK)
    for name in ("bare", "other"):
        document.insert(_entry(name), ("first",), "1", None)
        assert next(iter(_values(document.render())["extensions"][name])) == "first"
        document.remove(_entry(name), ("first",))
    assert document.render() == BLOCK


def test_a_whole_list_is_emptied() -> None:
    document = YamlDocument(BLOCK)
    document.remove_first(_entry("files"), ("args",), 2)
    document.remove_first(_entry("other"), ("args",), 2)
    values = _values(document.render())["extensions"]
    assert values["files"]["args"] == values["other"]["args"] == []
    document.prepend(_entry("other"), ("args",), ["z"])
    assert _values(document.render())["extensions"]["other"]["args"] == ["z"]


def test_the_text_of_a_block_is_one_line() -> None:
    document = YamlDocument(BLOCK)
    assert document.decode(document.raw((*_entry("files"), "args"))) == ["-y", "@example/files"]
    with pytest.raises(KeyError):
        document.raw(("extensions", "none"))


def test_an_empty_text_has_no_values() -> None:
    assert YamlDocument("# nothing\n").values == {}


@pytest.mark.parametrize("text", ["a: [1", "a: 1\na: 2\n", "--- {}\n--- {}\n", "a: !!x/y {}\n"])
def test_what_is_not_one_plain_document_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not valid YAML"):
        YamlDocument(text)


def test_a_form_that_cannot_be_edited_is_refused() -> None:
    document = YamlDocument("e:\n  x:\n    cmd: |\n      npx\n    args: word\n")
    with pytest.raises(ConfigError, match=r"e\.x\.cmd: is written in a form"):
        document.replace(("e", "x"), ("cmd",), "1")
    with pytest.raises(ConfigError, match="is written in a form"):
        document.prepend(("e", "x"), ("args",), ["1"])
