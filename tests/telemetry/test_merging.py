"""Numbers of several processes as one page."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.records import call

from thoughtgate.telemetry.merging import decode_metrics, encode_metrics, render_merged
from thoughtgate.telemetry.metric_table import HTTP
from thoughtgate.telemetry.metrics import Metrics

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _counting(calls: int) -> Metrics:
    metrics = Metrics(HTTP)
    for number in range(calls):
        for record in call(number):
            metrics.observe(record)
    return metrics


def _samples(page: bytes) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if sample.name != "thoughtgate_uptime_seconds"
    }


def test_a_process_alone_shows_the_page_it_always_shows() -> None:
    metrics = _counting(3)

    alone = render_merged(metrics.families(), [])

    assert _samples(alone) == _samples(metrics.render())
    assert [line for line in alone.splitlines() if line.startswith(b"#")] == [
        line for line in metrics.render().splitlines() if line.startswith(b"#")
    ]


def test_counters_gauges_and_histograms_are_added_up_and_what_a_process_is_is_not() -> None:
    own, other = _counting(3), _counting(4)
    other.set("mcp_connections_active", 2)

    told = decode_metrics(encode_metrics(other.families()))
    merged = _samples(render_merged(own.families(), [told]))

    expected = _samples(_counting(7).render())
    expected["mcp_connections_active", ()] = 2.0
    assert merged == expected
    assert not any("uptime" in family.name for family in told)


@pytest.mark.parametrize("data", [b"", b"{", b"7", b"[7]", b"[[1]]", b'[["a","b","gauge",[[1]]]]'])
def test_what_is_no_page_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is json's or Python's
        decode_metrics(data)
