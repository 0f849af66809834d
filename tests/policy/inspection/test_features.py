"""The features of a sentence."""

from thoughtgate.policy.inspection.features import (
    class_features,
    telling_classes,
    trait_finder,
    word_features,
)


def test_words_and_close_pairs_are_features() -> None:
    found = word_features("sends the keys 42")
    assert {"send", "the", "keys", "0", "^ send", "send the", "send .. 0"} <= found
    assert "send .. the" not in found


def test_scripts_without_spaces_are_read_by_letter() -> None:
    assert {"忽", "忽 略"} <= word_features("忽略")


def test_classes_are_features_alone_and_in_pairs() -> None:
    assert class_features(frozenset({"give", "secret"})) == {"#give", "#secret", "#give #secret"}


def test_classes_of_words_are_found() -> None:
    assert {"telling ignore", "telling rules"} <= telling_classes("ignore the instructions")
    assert any("secret" in names for _, _, names in trait_finder().find("the password"))
