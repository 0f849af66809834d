"""Canonical JSON and the hash of arguments, by vectors and by properties."""

import hashlib
import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.json_values import json_objects, json_values

from thoughtgate.wire.canonical import NotCanonical, args_hash, canonical_json, has_float

VECTORS = [
    ("{}", "{}", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    ('{"a":1.0}', '{"a":1}', "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"),
    ('{"a":1}', '{"a":1}', "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"),
    ('{"x":5e-1}', '{"x":0.5}', "ad0233224b23c9622ebd084088f2c1647737a4cabad828e4349bbed0d9b42e11"),
    (
        '{"q":"a<b & c>d"}',
        '{"q":"a<b & c>d"}',
        "2870f016599bad683161f302aeaabd9abbab2559021e05f16bd65d3cd50ddbe1",
    ),
    (
        '{"é":1,"z":2,"Z":3}',
        '{"Z":3,"z":2,"é":1}',
        "e98731a9e65b2b5ae6c890d8f7f29495d78f77a57af65ccee140f13869e7efb1",
    ),
    (
        '{"n":null,"l":[3,1,2],"o":{"y":1,"x":[]}}',
        '{"l":[3,1,2],"n":null,"o":{"x":[],"y":1}}',
        "3b7a967c593267810343811133a12cf9fa50bd00234deecdc17819c823ec4602",
    ),
    (
        '{"id":12345678901234567890}',
        '{"id":12345678901234567890}',
        "974d46d9988f7cf0225d863e703c3072aa9fadd989bc62f23933a99650a6c5e5",
    ),
    (
        '{"f":1e21}',
        '{"f":1e+21}',
        "29e1ff14df23baec8ab80d157f5225bae7752ee2fab8c02792575877be421829",
    ),
    (
        '{"f":1e-7}',
        '{"f":1e-7}',
        "71fa30706551eb8a3b932906933154a14d9804b0a0c80a3742901b9fcbb6f93c",
    ),
    (
        '{"b":2,"a":1}',
        '{"a":1,"b":2}',
        "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777",
    ),
    (
        '{"command":"git push","force":false,"branch":"main"}',
        '{"branch":"main","command":"git push","force":false}',
        "e13c608f6d08e999ce8c39b52fa274a731ccab0e6b3b3e62cd23511b93d7527e",
    ),
]


@pytest.mark.requirement("HASH-001", "HASH-002")
@pytest.mark.parametrize(("text", "canonical", "digest"), VECTORS)
def test_the_vectors_hold(text: str, canonical: str, digest: str) -> None:
    value = json.loads(text)

    assert canonical_json(value) == canonical
    assert args_hash(value) == digest


def test_absent_arguments_hash_as_an_empty_object() -> None:
    assert args_hash(None) == args_hash({}) == hashlib.sha256(b"{}").hexdigest()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-0.0, "0"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1e21, "-1e+21"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (-1e-6, "-0.000001"),
        (1.25e-6, "0.00000125"),
        (1e-5, "0.00001"),
        (1.05e-5, "0.0000105"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (5e-324, "5e-324"),
        (True, "true"),
        (None, "null"),
        ('\x7f\u2028"\\\n', '"\x7f\u2028\\"\\\\\\n"'),
    ],
)
def test_numbers_and_strings_have_one_form(value: Any, text: str) -> None:
    assert canonical_json(value) == text
    assert canonical_json([value, 0.5]) == f"[{text},0.5]"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_form(value: float) -> None:
    with pytest.raises(NotCanonical):
        canonical_json({"a": [value]})


@pytest.mark.parametrize("value", [{"a": "\ud800"}, {"\udfff": 1}, {"a": ["\ud800", 0.5]}])
def test_a_lone_surrogate_has_no_form(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical_json(value)


@pytest.mark.parametrize("value", [{"a": b"x"}, {"a": {1, 2}, "b": 0.5}, [0.5, b""], object()])
def test_what_is_not_json_has_no_form(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical_json(value)


@given(json_values())
@settings(max_examples=200, deadline=None)
def test_the_canonical_text_reads_back_as_the_same_value(value: Any) -> None:
    text = canonical_json(value)

    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@pytest.mark.requirement("HASH-001")
@given(json_objects(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_hash_does_not_depend_on_the_order_of_keys(value: dict[str, Any], random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)

    assert args_hash({key: value[key] for key in keys}) == args_hash(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=200, deadline=None)
def test_a_float_keeps_its_value_and_ecmascripts_thresholds(value: float) -> None:
    text = canonical_json(value)

    assert float(text) == value
    size = abs(value)
    assert ("e" in text) == (size != 0 and (size >= 1e21 or size < 1e-6))


def _floats_in(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_floats_in, value.values()))
    return any(map(_floats_in, value)) if isinstance(value, list) else isinstance(value, float)


@given(json_values())
@example([1, [True, {"a": None, "b": [0.5]}]])
@example({"a": "1.5", "b": [[], {}]})
def test_a_float_is_found_at_any_depth(value: Any) -> None:
    assert has_float(value) == _floats_in(value)
