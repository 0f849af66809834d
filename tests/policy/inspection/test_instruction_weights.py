"""The tables of weights can be read, and no feature is in one of them twice."""

import pytest

from thoughtgate.policy.inspection.instruction_model import BIAS, parse_weights
from thoughtgate.policy.inspection.instruction_weights import CONTENTS, DEFINITIONS


@pytest.mark.parametrize("table", [DEFINITIONS, CONTENTS])
def test_each_feature_has_one_weight(table: str) -> None:
    features = [one for line in table.strip().splitlines() for one in line.split("  ")[1:]]
    assert len(features) == len(set(features)) == len(parse_weights(table))
    assert BIAS in features
