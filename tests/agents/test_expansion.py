"""References to variables that nobody defines."""

from typing import Any

import pytest

from thoughtgate.agents.expansion import Syntax, expand, has_reference, undefined_variables


@pytest.mark.parametrize(
    ("syntax", "value", "expected"),
    [
        ("shell", "${A}/x", ["A"]),
        ("shell", "${A:-d} ${B:-} $C ${env:D} ${} {env:E}", []),
        ("shell", {"args": ["${A}", "${B}"], "env": {"K": "${A}"}, "n": 3}, ["A", "B"]),
        ("shell", "${SET} ${GIVEN}", []),
        ("dollar", "$A ${B} ${C:-d} $1 $", ["A", "B"]),
        ("env", "${env:A} ${B} ${env:C:-d} ${input:token}", ["A"]),
        ("brace-env", "{env:A} ${B}", ["A"]),
        ("none", "${A} $B", []),
        ("shell", "${A", []),
    ],
)
def test_only_references_without_value_and_default_are_found(
    syntax: Syntax, value: Any, expected: list[str]
) -> None:
    assert undefined_variables(value, syntax, {"SET": ""}, {"GIVEN"}) == expected


@pytest.mark.parametrize(
    ("text", "syntax", "expected"),
    [
        ("Bearer ${T}", "shell", "Bearer t"),
        ("${U:-d} ${U}", "shell", "d ${U}"),
        ("$T ${T}", "dollar", "t t"),
        ("${env:T} ${T}", "env", "t ${T}"),
        ("{env:T}", "brace-env", "t"),
        ("${T}", "none", "${T}"),
    ],
)
def test_a_value_is_filled_in_as_the_agent_would(text: str, syntax: Syntax, expected: str) -> None:
    assert expand(text, syntax, {"T": "t"}) == expected


@pytest.mark.parametrize(
    ("text", "syntax", "expected"),
    [
        ("${T:-x}", "shell", True),
        ("a ${input:t}", "env", True),
        ("{env:T}", "brace-env", True),
        ("{file:~/t}", "brace-env", True),
        ("$T", "dollar", True),
        ("$T", "shell", False),
        ("${T}", "none", True),
        ("a$ {b}", "dollar", False),
    ],
)
def test_a_text_that_an_agent_may_replace_in_part_is_found(
    text: str, syntax: Syntax, expected: bool
) -> None:
    assert has_reference(text, syntax) is expected
