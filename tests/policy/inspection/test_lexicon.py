"""The words that instructions are made of."""

from thoughtgate.policy.inspection import lexicon


def test_every_category_has_words_in_lower_case() -> None:
    for category, words in lexicon.WORDS.items():
        assert words.strip(), category
        assert words == words.lower(), category


def test_every_named_category_is_in_the_table() -> None:
    named = {
        value for name, value in vars(lexicon).items() if isinstance(value, str) and name.isupper()
    }
    assert named == set(lexicon.WORDS)
    assert set(lexicon.TELLING) < named
