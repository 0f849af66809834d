"""Arguments are found, added and removed as agents read them."""

import pytest

from thoughtgate.agents.injection.command_line import first_word_of, with_arguments, without_flag


def test_arguments_are_added_before_those_of_the_user() -> None:
    assert with_arguments(["a", "-p", "hi"], ["--x"]) == ("a", "--x", "-p", "hi")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a --f x y -p hi", "a -p hi"),
        ("a --f=x hi", "a hi"),
        ("a hi --f x", "a hi"),
        ("a -- --f x", "a -- --f x"),
        ("a --from x", "a --from x"),
    ],
)
def test_a_flag_is_removed_with_its_values(given: str, kept: str) -> None:
    assert without_flag(given.split(), "--f") == kept.split()


def test_a_flag_without_values_keeps_the_words_after_it() -> None:
    assert without_flag(["a", "--f", "hi"], "--f", values=False) == ["a", "hi"]


def test_a_word_counts_only_before_the_end_of_the_options() -> None:
    assert first_word_of(["a", "-x", "mcp", "list"], {"mcp"}) == "mcp"
    assert first_word_of(["a", "--", "mcp"], {"mcp"}) == ""
    assert first_word_of(["mcp"], {"mcp"}) == ""
