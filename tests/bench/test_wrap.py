"""The benchmark of a wrapped run measures what the requirements name, in a real run."""

import pytest
from bench.wrap import Size, measure_sized

_TINY = Size(rounds=1, starts=1, runs=1)


@pytest.mark.long
@pytest.mark.requirement("S000-NFR-001")
def test_latency_memory_start_and_rewrite_have_bars() -> None:
    figures = {figure.name: figure for figure in measure_sized(_TINY)}
    assert {name: figure.bar for name, figure in figures.items()} == {
        "passthrough: added p50": 0.3,
        "passthrough: added p99": 2.0,
        "governed by the service: added p50": 0.8,
        "governed by the service: added p99": 10.0,
        "shim, memory after a few thousand calls": 15.0,
        "shim, start to first forwarded byte": 100.0,
        "start until the agent runs": 1.0,
        "config rewrite, 50 servers": 200.0,
    }
    assert figures["shim, memory after a few thousand calls"].value > 0
    assert figures["start until the agent runs"].value > 0
