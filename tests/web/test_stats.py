"""The stats page."""

import time
from pathlib import Path

from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, write_events


def test_sums_and_plots_of_the_calls(client: Client, tmp_path: Path) -> None:
    now = time.time()
    write_events(tmp_path, *(event._replace(at=now - 60) for event in sample_events()))
    text = client.get("/stats").text

    assert "Calls over time" in text
    for title in ("Decisions", "Results", "Tools", "Servers", "Refusals", "Approvals"):
        assert f"<h2>{title}</h2><svg" in text
    assert "<h2>Frames refused</h2><svg" in text
    assert "<b>1</b> other messages" in text
    assert "p90 of answered calls" in text
    assert "forwarded immediately" in text


def test_a_time_without_calls_says_so(client: Client, tmp_path: Path) -> None:
    write_events(tmp_path, *sample_events())

    assert "No calls in this period" in client.get("/stats?span=1h").text


def test_a_span_is_a_day_unless_it_is_said_in_whatever_case(client: Client) -> None:
    for query, span in (("", "1d"), ("?span=", "1d"), ("?span=7D", "7d")):
        text = client.get(f"/stats{query}").text
        assert f'href="/stats?span={span}" aria-current="true"' in text


def test_an_odd_span_is_named_and_nothing_is_summed_up(client: Client, tmp_path: Path) -> None:
    now = time.time()
    write_events(tmp_path, *(event._replace(at=now - 60) for event in sample_events()))
    text = client.get("/stats?span=%3Cb%3E").text

    assert "span must be one of 1h, 1d, 7d, 30d, not &lt;b&gt;" in text
    assert "Calls over time" not in text
    assert "aria-current" not in text.partition('class="tabs"')[2].partition("</p>")[0]


def test_a_span_may_be_said_as_for_the_calls(client: Client) -> None:
    assert "since must be one of 1h, 1d, 7d, 30d, not zz" in client.get("/stats?since=zz").text
    assert 'href="/stats?span=7d" aria-current="true"' in client.get("/stats?since=7d").text
