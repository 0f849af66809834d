"""Expressions from a config are safe to run on text from an agent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.policy.regexes import MAX_PATTERN, MAX_STEPS, MAX_TEXT, Pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*b",
        "(?:a|a)*",
        "(a|aa)+$",
        "(a?){20}",
        "[[]",
        "((ab)+c)*",
        r"(a)\1",
        r"(?P<x>a)(?P=x)",
        "a*b*c*d*",
        "(",
        "[",
        "a" * (MAX_PATTERN + 1),
        "(?:x{2,3})+",
        "(?#[)(a+)+$(?#])",
        "(a+)(?#c)+",
        "(?x) a b",
        "(?x:a)b",
        "a?" * 24 + "a" * 24,
        "(a|a)" * 24,
        "a{0,16}" * 6,
        "(a+){2}",
        "(a|b){20}",
    ],
)
def test_an_expression_that_could_stall_or_does_not_compile_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("rm -rf", "sudo rm -rf /", True),
        (r"^\w+@example\.com$", "me@example.com", True),
        (r"^\w+@example\.com$", "me@example.com\n", False),
        (r"cost\$", "cost$", True),
        (r"(?i)DROP\s+TABLE", "drop  table", True),
        (r"(?i:x)y", "Xy", True),
        (r"(?P<year>\d{4})-\d{2}", "2024-05", True),
        (r"[0-9a-f]{40}", "a" * 40, True),
        (r"(?:ab)+", "abab", True),
        (r"(?:ab){2}", "ab", False),
        (r"(a?)?b", "b", True),
        (r"a{2,20}", "aaa", True),
        (r"a{2,}", "aaa", True),
        (r"a{,3}", "", True),
        (r"x{}", "x{}", True),
        (r"^\d{1,3}(\.\d{1,3}){3}$", "10.0.0.255", True),
        (r"(?#a ( comment)ab+", "abb", True),
        (r"(a|b)c", "bc", True),
        (r"foo|bar|baz", "a bar", True),
        (r"^a|b", "xb", True),
        (r"a{,}b", "aab", True),
        (r"x(?=y)", "xy", True),
        (r"(?P<x>a)b", "ab", True),
        (r"x{y", "x{y", True),
        (r"[]]+", "]]", True),
        (r"a|b", "b", True),
        (r"\(a\)*", "(a", True),
        (r"(a{3}){2}", "aaaaaa", True),
    ],
)
def test_an_expression_is_searched_anywhere(pattern: str, text: str, expected: bool) -> None:
    assert Pattern(pattern).search(text) is expected


def test_a_text_too_long_to_search_gives_no_answer() -> None:
    pattern = Pattern("a+b")
    assert pattern.search("a" * pattern.max_length) is False
    assert pattern.search("a" * (pattern.max_length + 1)) is None


def test_the_longest_text_shrinks_with_the_repeats() -> None:
    lengths = [Pattern(one).max_length for one in ("^abc", "abc", "a+b", "a+b+", "a+b+c+")]
    assert lengths[0] == MAX_TEXT
    assert lengths == sorted(lengths, reverse=True)
    assert Pattern("^a+b").max_length > Pattern("a+b").max_length
    assert Pattern("^a+|b").max_length < Pattern("^a+b").max_length
    assert Pattern("a?b?c?d?e?f?g?h?i+").max_length < Pattern("i+").max_length


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a+a+a+b", "a"),
        ("^a+a+a+b", "a"),
        (".*.*x", "a"),
        ("a?a?a?a?a?a?a?a?a?a?aaaaaaaaaab", "a"),
        ("(a|a)(a|a)(a|a)(a|a)(a|a)b", "a"),
        (r"^\s*(a{0,16}a{0,16})b", "a"),
    ],
)
def test_the_worst_text_of_an_accepted_expression_is_searched_soon(pattern: str, text: str) -> None:
    compiled = Pattern(pattern)
    assert compiled.search(text * compiled.max_length) is False


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab(|)*+?{2,}[]\\^$.", max_size=12), st.text(alphabet="ab", max_size=200))
def test_any_expression_is_refused_or_answers(pattern: str, text: str) -> None:
    try:
        compiled = Pattern(pattern)
    except ValueError:
        return
    assert compiled.search(text) in {True, False, None}


def test_replacing_masks_every_match() -> None:
    assert Pattern("a+b").replace("xaab-ab", lambda _: "#") == "x#-#"


def test_a_long_text_is_replaced_piece_by_piece() -> None:
    pattern = Pattern("k-[0-9]+")
    text = "k-1 " * pattern.max_length
    assert (
        "k-1"
        not in pattern.replace(text, lambda _: "#").replace("k-", "", 0)[: pattern.max_length // 2]
    )


def test_an_expression_shows_itself() -> None:
    assert repr(Pattern("a")) == "Pattern('a')"


@pytest.mark.parametrize("pattern", ["^x$", "^x$|^y$", "(^x$)", "^(?:x$|y)", "[$]x$"])
def test_an_end_is_the_end_wherever_it_stands_in_an_expression(pattern: str) -> None:
    assert Pattern(pattern).search("$x" if "[$]" in pattern else "x")
    assert Pattern(pattern).search("$x\n" if "[$]" in pattern else "x\n") is False


def test_ends_of_lines_are_found_where_they_are_asked_for() -> None:
    assert Pattern("(?m)^x$").search("x\ny")


def test_what_stands_across_two_pieces_of_a_long_text_is_replaced() -> None:
    pattern = Pattern(r"\w+@\w+\.\w+")
    for before in range(pattern.max_length * 2):
        text = " " * before + "bob@example.com" + " " * 100
        assert pattern.replace(text, lambda _: "X") == " " * before + "X" + " " * 100


@pytest.mark.parametrize(
    ("pattern", "text", "least", "most"),
    [
        (r"[\w.]+@x", "some words and more " * 100, 2_000, 20_000),
        (r"[\w.]+@x", "a" * 2_000, 2_000 * 2_000, 3_000 * 2_000),
        (r"(?i:[^a-z]+)@x", "A" * 2_000, 2_000 * 2_000, 3_000 * 2_000),
        (r"(?a:\W+)@x", "é" * 2_000, 2_000 * 2_000, 3_000 * 2_000),
        (r"\x61+@x", "a" * 2_000, 2_000 * 2_000, 3_000 * 2_000),
        (r"(?:ab)+@x", "ab" * 1_000, 2_000 * 2_000, 3_000 * 2_000),
        (r"\d{4}", "1" * 100_000, 100_000, 200_000),
        (r"[0-9a-f]{40}", "a" * 1_000, 40_000, 80_000),
    ],
)
def test_the_steps_for_a_text_depend_on_how_far_its_repeats_go(
    pattern: str, text: str, least: int, most: int
) -> None:
    assert least <= Pattern(pattern).steps(text) <= most


def test_a_large_exact_count_takes_its_steps_at_every_character() -> None:
    assert Pattern("[0-9a-f]{40}").max_length == MAX_TEXT
    assert Pattern("a{30000}b").max_length < 200


def test_counts_of_counts_take_their_steps_at_every_character() -> None:
    assert Pattern("(?:a{16}){16}b").max_length == MAX_TEXT
    nested = Pattern("(?:(?:a{16}){16}){16}b")
    assert 16**3 * nested.max_length <= MAX_STEPS
    with pytest.raises(ValueError, match="split the rule"):
        Pattern("(?:(?:(?:(?:a{16}){16}){16}){16}){16}b")
