"""Paths as people write them."""

from thoughtgate.config.document import dotted, syntax_error


def test_a_path_is_dotted_with_indexes_in_brackets() -> None:
    assert dotted(("servers", "search", "args", 0)) == "servers.search.args[0]"
    assert dotted(("rules", 3, "when")) == "rules[3].when"
    assert dotted(()) == ""


def test_a_syntax_error_names_file_line_and_key() -> None:
    error = syntax_error("bad", "a.yaml", 3, ("x",))
    assert str(error) == "a.yaml:3: x: bad"
