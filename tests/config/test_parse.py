"""Choosing the format, and refusing what is no config at all."""

import subprocess
import sys

import pytest

from thoughtgate.config import parse as parse_module
from thoughtgate.config.parse import format_of, parse
from thoughtgate.errors import ConfigError


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("a.yaml", "yaml"),
        ("a.yml", "yaml"),
        ("a", "yaml"),
        ("A.TOML", "toml"),
        ("a.json", "json"),
        ("a.jsonc", "json"),
    ],
)
def test_the_name_tells_the_format(file: str, expected: str) -> None:
    assert format_of(file) == expected


def test_the_same_data_is_read_from_every_format() -> None:
    texts = {"yaml": "a: {b: [1]}", "json": '{"a": {"b": [1]}}', "toml": "a.b = [1]"}
    for format_, text in texts.items():
        assert parse(text, file=f"x.{format_}").data == {"a": {"b": [1]}}


@pytest.mark.requirement("FR9")
@pytest.mark.parametrize("text", ["", "   \n", "# nothing\n", "null"])
def test_an_empty_file_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="empty"):
        parse(text, file="a.yaml")


@pytest.mark.parametrize("text", ["- a\n", "just text", "5"])
def test_something_else_than_keys_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="keys and values"):
        parse(text, file="a.yaml")


def test_a_huge_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_module, "MAX_BYTES", 10)
    with pytest.raises(ConfigError, match="larger"):
        parse("a: 12345678", file="a.yaml")


def test_a_config_in_json_loads_no_parser_of_another_format() -> None:
    program = (
        "import sys; from thoughtgate.config.parse import parse\n"
        "parse('{}', file='a.json')\n"
        "sys.exit(bool({'ruamel.yaml', 'tomllib'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
