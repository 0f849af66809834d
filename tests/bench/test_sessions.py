"""The scenario of many sessions counts every wrap and every shim."""

import pytest
from bench.sessions import Size, measure_sized


@pytest.mark.long
def test_it_measures_all_processes_and_ends_them() -> None:
    together, wrap, shim = measure_sized(Size(sessions=2, servers=2))
    assert together.value == pytest.approx(2 * wrap.value + 4 * shim.value)
    assert together.value > 0
