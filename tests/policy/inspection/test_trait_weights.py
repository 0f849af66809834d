"""The weights belong to traits that there are."""

from thoughtgate.policy.inspection.trait_weights import BIAS, WEIGHTS
from thoughtgate.policy.inspection.traits import TRAITS

OTHERS = {
    *("first", "in text", "in parameter", "in value", "in label", "in output"),
    *("address", "identifier", "quoted", "own name", "own parameter"),
}


def test_each_weight_is_that_of_a_trait_or_of_two() -> None:
    for name in WEIGHTS:
        parts = name.split(" + ")
        assert parts == sorted(parts)
        for part in parts:
            known = part.removeprefix("known ").removeprefix("not ")
            assert known in TRAITS or part in OTHERS, part


def test_a_sentence_without_traits_is_honest() -> None:
    assert BIAS < 0
