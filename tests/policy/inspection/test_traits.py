"""The words of traits can be found as they are listed."""

import pytest

from thoughtgate.policy.inspection.normal import normalise
from thoughtgate.policy.inspection.traits import TRAITS
from thoughtgate.policy.inspection.words import WordFinder


@pytest.mark.parametrize("trait", TRAITS)
def test_the_words_of_a_trait_are_found(trait: str) -> None:
    finder = WordFinder(TRAITS)
    for listed in filter(None, map(str.strip, TRAITS[trait].split(","))):
        word = normalise(listed.removesuffix("*")).text
        assert any(trait in traits for _, _, traits in finder.find(word)), listed
