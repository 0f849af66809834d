"""The registry of checks."""

import re

import pytest

from thoughtgate.policy.inspection.checks import ARGUMENTS, CHECKS, DEFINITION, RESULT
from thoughtgate.policy.inspection.finding import HARD, SOFT


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_has_an_id_a_tier_and_an_explanation(check: str) -> None:
    one = CHECKS[check]
    assert re.fullmatch(r"[a-z]+(?:-[a-z]+)*", check)
    assert one.tier in {HARD, SOFT}
    assert one.explanation.endswith(".")
    assert one.example
    assert set(one.applies_to) <= {DEFINITION, ARGUMENTS, RESULT}
