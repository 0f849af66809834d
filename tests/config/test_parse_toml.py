"""TOML, with the lines of tables and keys."""

import pytest

from thoughtgate.config.parse_toml import parse_toml
from thoughtgate.errors import ConfigError

TEXT = """schema = 1 # first
default = "deny"
[servers.fs]
command = "npx"
expose.allow = ["a"]
[[rules]]
tool = "x"
[[rules]]
tool = "y"
# a comment
"quoted key" = 2024-01-01
at = 10:00:00
"""


def test_data_and_lines_are_read() -> None:
    document = parse_toml(TEXT, "f.toml")
    assert document.data["rules"][1] == {"tool": "y", "quoted key": "2024-01-01", "at": "10:00:00"}
    assert document.lines["schema",] == 1
    assert document.lines["servers", "fs"] == 3
    assert document.lines["servers", "fs", "expose", "allow"] == 5
    assert document.lines["rules", 1, "tool"] == 9
    assert document.lines["rules", 1, "quoted key"] == 11


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\na = 2\n", 2), ("a = \n", 1), ("[a]\n[a]\n", 2), ("x", 0)]
)
def test_what_is_not_toml_is_refused(text: str, line: int) -> None:
    with pytest.raises(ConfigError, match="not valid TOML") as caught:
        parse_toml(text, "f.toml")
    assert caught.value.problems[0].line == line


@pytest.mark.parametrize(
    "text", ["a = " + "9" * 5000, ".".join("a" * 3000) + " = 1", "a = " + "[" * 300 + "]" * 300]
)
def test_what_no_config_needs_is_refused_as_not_readable(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.toml"):
        parse_toml(text, "f.toml")
