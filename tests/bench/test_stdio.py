"""The stdio benchmark measures what the requirements name, through real shims."""

import pytest
from bench.stdio import Size, measure_sized

_TINY = Size(rounds=1, messages=50, calls=50, starts=1, warm_up=2)


@pytest.mark.long
@pytest.mark.requirement("S000-NFR-001")
def test_latency_and_messages_a_second_have_bars_and_no_call_is_lost() -> None:
    figures = {figure.name: figure for figure in measure_sized(_TINY)}
    bars = {name: figure.bar for name, figure in figures.items() if figure.bar is not None}
    assert bars == {
        "passthrough, 100 rules: added p50": 0.3,
        "passthrough, 100 rules: added p99": 2.0,
        "governed, 100 rules: added p50": 0.4,
        "governed, 100 rules: added p99": 10.0,
        "governed, 20 Cedar policies: added p50": 0.6,
        "governed, 20 Cedar policies: added p99": 10.0,
        "messages parsed and forwarded": 50_000,
        "50 pipelined calls, both pipes full: lost": 0,
    }
    assert figures["messages parsed and forwarded"].at_least
    assert figures["50 pipelined calls, both pipes full: lost"].value == 0
    assert figures["standalone shim, memory"].value > 0
