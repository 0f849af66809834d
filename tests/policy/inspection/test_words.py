"""Finding the words of the lexicon."""

import pytest

from thoughtgate.policy.inspection import lexicon as lex
from thoughtgate.policy.inspection.words import SHORT, Positions, file_words, quick_words, regions


@pytest.mark.parametrize("text", ["ignore it", "it ignores", "忽略它", "ignored"])
def test_a_word_is_found_with_its_endings(text: str) -> None:
    assert Positions(text).of(lex.IGNORE)


@pytest.mark.parametrize("text", ["signore", "ignore_list", "ignorex", "ignore2"])
def test_a_part_of_a_word_is_not_the_word(text: str) -> None:
    assert not Positions(text).of(lex.IGNORE)


def test_words_of_one_sentence_are_read_together() -> None:
    at = Positions("ignore the password. later, please")
    ignore, secrets = at.of(lex.IGNORE), at.of(lex.SENSITIVE)
    assert at.pairs(ignore, secrets, 10) == [(0, 19)]
    assert at.pairs(secrets, ignore, 10) == []
    assert at.close(secrets, ignore, 10) == [(0, 19)]
    assert Positions("ignore it. password").pairs([(0, 6)], [(11, 19)], 10) == []
    assert at.of(lex.IGNORE, lex.SENSITIVE) == [(0, 6), (11, 19)]


def test_only_categories_with_places_can_be_asked_for() -> None:
    with pytest.raises(KeyError):
        Positions("rules").of(lex.RULES)


def test_a_long_text_is_read_only_around_telling_words() -> None:
    size = SHORT * 10
    assert regions([], 10) == [(0, 10)]
    assert regions([], size) == []
    assert regions([("", 5000)], size) == [(4680, 5320)]
    assert regions([("verb", 5000), ("rule", 5100)], size) == [(4680, 5420)]
    assert regions([("verb", 5000), ("rule", 5900)], size) == []
    assert regions([("verb", 5000), ("verb", 5100)], size) == []
    assert regions([("", 5000), ("", 5200)], size) == [(4680, 5520)]


def test_choices_are_spelled_out() -> None:
    words, classes = quick_words()
    assert "note to the model" in words
    assert len(words) == len(classes)
    assert not any("|" in word and "{" in word for word in words)
    assert "id_rsa" in file_words()
