"""TOML edited in place."""

import pytest

from thoughtgate.agents.formats.toml_document import TomlDocument
from thoughtgate.errors import ConfigError

TEXT = """model = "m" # keep

[mcp_servers.files] # table
command = "npx" # why
args = [ # first
  "-y", # yes
  "b",
]

[mcp_servers.files.env]
K = "v"

# about bare
[mcp_servers.bare]
command = 'server'

# tail
[projects."/srv"]
trust = 1
"""
FILES = ("mcp_servers", "files")
BARE = ("mcp_servers", "bare")


def test_a_document_without_edits_renders_as_it_was() -> None:
    assert TomlDocument(TEXT).render() == TEXT


def test_a_replaced_value_keeps_its_comment() -> None:
    document = TomlDocument(TEXT)
    document.replace(FILES, ("command",), '"/abs"')
    assert document.render() == TEXT.replace('"npx"', '"/abs"')


def test_elements_put_before_others_leave_the_array_as_written() -> None:
    document = TomlDocument(TEXT)
    document.prepend(FILES, ("args",), ["shim", "--"])
    text = document.render()
    assert text == TEXT.replace('  "-y",', '  "shim", "--", "-y",')
    again = TomlDocument(text)
    again.remove_first(FILES, ("args",), 2)
    assert again.render() == TEXT


def test_elements_come_off_an_array_that_others_wrote() -> None:
    document = TomlDocument('[s]\nargs = ["a",\n "b" , "c"]\n')
    document.remove_first(("s",), ("args",), 2)
    assert TomlDocument(document.render()).values == {"s": {"args": ["c"]}}


def test_an_empty_array_grows_and_shrinks() -> None:
    document = TomlDocument("[s]\nargs = []\n")
    document.prepend(("s",), ("args",), ["a", "a"])
    assert document.render() == '[s]\nargs = ["a", "a"]\n'
    document.remove_first(("s",), ("args",), 2)
    assert document.render() == "[s]\nargs = []\n"


def test_an_added_key_can_be_removed_without_a_trace() -> None:
    document = TomlDocument(TEXT)
    document.insert(BARE, ("args",), '["x"]', "command")
    text = document.render()
    again = TomlDocument(text)
    assert again.values["mcp_servers"]["bare"] == {"command": "server", "args": ["x"]}
    again.remove(BARE, ("args",))
    assert again.render() == TEXT


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.a.command = "x"\nmcp_servers.a.args = ["y"]\n',
        '[mcp_servers]\na = { command = "x", args = ["y"] } # c\n',
        'mcp_servers = { a = { command = "x", args = ["y"] } }\n',
        '[mcp_servers.a]\ncommand="x"\n[other]\nq=1\n[mcp_servers.b]\n[mcp_servers.a.env]\nz="1"\n',
        '[mcp_servers."a"]\r\ncommand = "x"\r\n\r\n[z]\r\n',
        '\ufeff[mcp_servers.a]\ncommand = """x"""',
    ],
)
def test_every_spelling_of_an_entry_is_edited(text: str) -> None:
    document = TomlDocument(text)
    entry = ("mcp_servers", "a")
    had_args = "args" in document.values["mcp_servers"]["a"]
    document.replace(entry, ("command",), '"tg"')
    if had_args:
        document.prepend(entry, ("args",), ["p"])
    else:
        document.insert(entry, ("args",), '["p"]', "command")
    values = TomlDocument(document.render()).values
    assert values["mcp_servers"]["a"]["command"] == "tg"
    assert values["mcp_servers"]["a"]["args"] == (["p", "y"] if had_args else ["p"])


def test_line_endings_of_windows_stay() -> None:
    document = TomlDocument('[s]\r\ncommand = "x"\r\n\r\n[t]\r\na = 1\r\n')
    document.insert(("s",), ("args",), '["x"]', None)
    assert "\n" not in document.render().replace("\r\n", "")


def test_text_that_is_not_toml_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"not valid TOML: .*line 2"):
        TomlDocument("a = 1\nb = = 2\n")


def test_a_table_reads_as_an_inline_one() -> None:
    document = TomlDocument('[s.headers]\n"X-A" = "1"\nb = [1, true]\n')
    raw = document.raw(("s", "headers"))
    assert raw == '{"X-A" = "1", "b" = [1, true]}'
    assert document.decode(raw) == {"X-A": "1", "b": [1, True]}


@pytest.mark.parametrize("value", ["", 'a"b\\c', "\x7f\x01", "é\n", ["a", "b"], {"k k": 1}])
def test_every_value_survives_its_text(value: object) -> None:
    assert TomlDocument.decode(TomlDocument.encode(value)) == value


def test_a_number_too_long_to_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be edited"):
        TomlDocument("x = " + "9" * 5000)
