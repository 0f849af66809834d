"""Files of an agent that cannot be read approve nothing."""

from pathlib import Path

from thoughtgate.agents.injection.records import read_json, read_toml, table, texts


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "x"
    assert read_json(file) == {}
    for text in ("[1]", "{", "[" * 100_000):
        file.write_text(text, "utf-8")
        assert read_json(file) == {}
        assert read_toml(file) in ({}, {"1": {}})
    file.unlink()
    file.mkdir()
    assert read_json(file) == {}
    assert read_toml(file) == {}


def test_tables_and_lists_of_another_shape_are_empty(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('[a.b]\nc = "d"\n', "utf-8")
    values = read_toml(file)
    assert table(values, "a", "b") == {"c": "d"}
    assert table(values, "a", "b", "c") == {}
    assert table(None, "a") == {}
    assert texts(["a", 1, None]) == {"a"}
    assert texts("a") == frozenset()
