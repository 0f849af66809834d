"""One interface over both formats."""

import pytest

from thoughtgate.agents.documents import (
    JsonDocument,
    copy_entries,
    parse_document,
    read_back,
    reads_back_as,
    references_change_more_than_values,
)
from thoughtgate.errors import ConfigError

TEXT = '{\n  "a": {"command": "x", "args": ["1"]}, // c\n  "b": {"command": "y"},\n}'


def test_edits_of_several_entries_leave_the_rest() -> None:
    document = JsonDocument(TEXT)
    document.replace(("b",), ("command",), '"B"')
    document.prepend(("a",), ("args",), ["0"])
    document.insert(("b",), ("args",), "[]", "command")
    document.replace(("a",), ("command",), '"A"')
    assert document.render() == (
        '{\n  "a": {"command": "A", "args": ["0", "1"]}, // c\n  "b": {"command": "B", "args": []},\n}'
    )


def test_edits_can_be_taken_back() -> None:
    document = JsonDocument(TEXT)
    document.insert(("b",), ("args",), "[1]", "command")
    document.remove(("b",), ("args",))
    document.prepend(("a",), ("args",), ["0"])
    document.remove_first(("a",), ("args",), 1)
    assert document.render() == TEXT


def test_the_first_extra_is_the_first_in_the_text() -> None:
    assert JsonDocument(TEXT).extra == (2, "comment")
    assert JsonDocument("{}").extra is None
    assert JsonDocument('{"a": [1,],\n/**/}').extra == (1, "trailing comma")


def test_a_missing_entry_cannot_be_edited() -> None:
    with pytest.raises(KeyError):
        JsonDocument("{}").replace(("a",), ("command",), "1")


@pytest.mark.parametrize("form", ["json", "toml"])
def test_bytes_that_are_no_text_are_refused(form: str) -> None:
    with pytest.raises(ConfigError, match="f: not UTF-8 text: byte 1"):
        parse_document(b"{\xff", form, file="f")  # type: ignore[arg-type]  # a literal out of a list


def test_a_complaint_names_file_and_line() -> None:
    with pytest.raises(ConfigError, match=r"^f\.json:2: not valid JSON"):
        parse_document(b'{\n"a": }', "json", file="f.json")
    with pytest.raises(ConfigError, match=r"^f\.toml: not valid TOML"):
        parse_document(b"a = ", "toml", file="f.toml")


def test_raw_and_decode_are_the_text_and_its_value() -> None:
    document = JsonDocument('{"a": { "b" : [1,] }}')
    assert document.raw(("a",)) == '{ "b" : [1,] }'
    assert document.decode("[1, /* c */ 2,]") == [1, 2]
    assert document.encode("é") == '"é"'


def test_a_text_is_read_back_with_or_without_comments() -> None:
    assert read_back('\ufeff{"a": 1}', "json") == {"a": 1}
    assert read_back('{"a": 1,}', "json") == {"a": 1}
    assert read_back("a = 1", "toml") == {"a": 1}


def test_a_text_reads_back_as_its_values_and_no_others() -> None:
    assert reads_back_as('{"a": 1}', "json", {"a": 1})
    assert not reads_back_as('{"a": 1}', "json", {"a": 2})
    assert not reads_back_as("{", "json", {})


def test_detached_entries_can_change_without_the_original() -> None:
    values = {"t": {"a": {"l": [1]}, "b": {"l": [2]}}, "other": {}}
    copy = copy_entries(values, [("t", "a"), ("t", "b")])
    copy["t"]["a"]["l"].append(3)
    copy["t"]["b"]["x"] = 1
    assert values == {"t": {"a": {"l": [1]}, "b": {"l": [2]}}, "other": {}}
    assert copy["other"] is values["other"]


REFERENCES = [
    ('{"a": "{env:V}", "b": ["x{file:./k}y"], // {env:V} as in the docs\n "c": 1}', False),
    ('{"a": 1}', False),
    ('{"m{env:NONE}cp": {}}', True),
    ('{"{file:./key}": {}}', True),
    ('{"a": "{env:", "b": {"c": "}", "mcp": {}}}', True),
    ('{"a": {} /* *{env:NONE}/ ,"mcp": {} /* */}', True),
    ('{"a": {} /* {file:./end} ,"mcp": {} /* */}', True),
    ('{"a": "{env:QUOTED}"}', True),
]


@pytest.mark.promise("repository-servers")
@pytest.mark.parametrize(("text", "expected"), REFERENCES)
def test_a_reference_may_change_nothing_but_the_text_of_a_value(
    text: str, *, expected: bool
) -> None:
    env = {"V": "some value", "QUOTED": '", "mcp": {}, "b": "'}
    values = parse_document(text.encode(), "json").values
    assert references_change_more_than_values(text, values, env) is expected
