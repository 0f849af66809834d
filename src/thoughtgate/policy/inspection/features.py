"""The features of a sentence, by which ``instruction_model`` tells orders to a model from honest text.

Two sorts: the words themselves, alone and in pairs that stand close together, and the classes that
words belong to (``traits`` and ``lexicon``), which mean the same in every language.
"""

import re
from functools import cache, lru_cache
from itertools import combinations, pairwise
from typing import Final

from thoughtgate.policy.inspection.lexicon import TELLING, WORDS
from thoughtgate.policy.inspection.traits import TRAITS
from thoughtgate.policy.inspection.words import WordFinder

_WORD: Final = re.compile(
    r"[\u2e80-\U0001ffff]|[^\W_]+(?:'[a-z]+)?|[!?:<>@`\"'«»“”\[\]{}#*=|/~$]"  # unspaced scripts by letter
)
_START: Final = "^"
"""Stands before the first word: an order begins with its verb."""
_REACHES: Final = (2, 3, 4)
"""How many words apart two words are read together, besides neighbours."""
_ENDINGS: Final = ("ing", "ed", "es", "s")
_MIN_STEM: Final = 4


def word_features(text: str) -> set[str]:
    """Return the words of a normalised sentence and the pairs that stand close together."""
    words = [_START, *(_stem(word) for word in _WORD.findall(text))]
    found = set(words)
    found.update(map(" ".join, pairwise(words)))
    spoken = [word for word in words if word[0].isalnum()]
    for reach in _REACHES:
        found.update(map(" .. ".join, zip(spoken, spoken[reach:], strict=False)))
    return found


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    """Return a word without its English ending; numbers are all alike."""
    if not word.isalpha() and any(map(str.isdigit, word)):
        return "0" if word.isdigit() else "x0"
    if word.isascii() and not word.endswith("ss"):
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
                return word[: -len(ending)]
    return word


@cache
def trait_finder() -> WordFinder:
    """Return the finder of the common words of ``traits``."""
    return WordFinder(TRAITS)


@cache
def _telling_finder() -> WordFinder:
    return WordFinder({f"telling {name}": WORDS[name] for name in TELLING})


def telling_classes(text: str) -> set[str]:
    """Return the classes of the telling words of a normalised sentence."""
    return {name for _, _, names in _telling_finder().find(text) for name in names}


def class_features(classes: frozenset[str]) -> set[str]:
    """Return classes and pairs of classes as features."""
    found = {f"#{one}" for one in classes}
    found.update(f"#{one} #{other}" for one, other in combinations(sorted(classes), 2))
    return found
