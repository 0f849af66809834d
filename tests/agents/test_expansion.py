"""References to variables that nobody defines."""

from typing import Any

import pytest

from thoughtgate.agents.expansion import Syntax, undefined_variables


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
