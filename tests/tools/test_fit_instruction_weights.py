"""The tool that fits the weights of features."""

import pytest
from tools.fit_instruction_weights import (
    AUTHORS,
    MAX_FEATURES,
    PART,
    Sample,
    author_of,
    fit,
    render,
)
from tools.inspection_quality import INSPECTORS, cases

from thoughtgate.policy.inspection.instruction_model import (
    BIAS,
    CONTENTS,
    load_weights,
    parse_weights,
    weigh,
)


def _samples() -> list[Sample]:
    attack = Sample((frozenset({"send", "key", "the"}),), True, 1.0, None)
    honest = Sample((frozenset({"show", "page", "the"}),), False, 1.0, None)
    return [attack, honest] * 6


def test_what_only_attacks_have_weighs_more() -> None:
    weights = fit(_samples(), 0.1)
    assert weights["send"] > 0 > weights["show"]
    assert weigh(weights, {"send", "key", "the"}) > 0 > weigh(weights, {"show", "page", "the"})
    assert fit(_samples(), 0.1) == weights


def test_a_feature_of_few_texts_has_no_weight() -> None:
    rare = Sample((frozenset({"rare", "send"}),), True, 1.0, None)
    assert "rare" not in fit([*_samples(), rare], 0.1)


def test_the_heaviest_part_of_a_longer_text_is_found() -> None:
    quiet, loud = frozenset({"page"}), frozenset({"key"})
    sample = Sample((quiet,) * PART + (loud,) + (quiet,) * PART, True, 1.0, None)
    part = sample.heaviest_part({BIAS: 0.0, "key": 1.0})
    assert len(part.sentences) == PART
    assert "key" in part.features


def test_written_weights_are_those_that_are_read() -> None:
    text = render({BIAS: -1.0, "send": 0.12345, "nothing": 0.0}, CONTENTS)
    read = parse_weights(text)
    assert read.keys() == {BIAS, "send"}
    assert read["send"] == pytest.approx(0.124)
    assert len(load_weights(CONTENTS)) <= MAX_FEATURES + 1


def test_there_are_cases_of_every_independent_author() -> None:
    missing = {"arguments": {"w4", "w6"}, "results": {"w4"}}
    for kind in INSPECTORS:
        expected = {*AUTHORS, ""} - missing.get(kind, set())
        assert {author_of(case) for case in cases(kind)} == expected
