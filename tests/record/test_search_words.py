"""Words as the shared ledger indexes them."""

import pytest

from thoughtgate.record.search_words import search_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"path":"/etc/passwd"}', ["path", "etc", "passwd"]),
        ("Müller CAFÉ", ["muller", "cafe"]),
        ("snake_case-kebab", ["snake", "case", "kebab"]),
        ("%$ ...", []),
        ("日本 x1", ["日本", "x1"]),
    ],
)
def test_only_letters_and_digits_count(text: str, words: list[str]) -> None:
    assert search_words(text) == words
