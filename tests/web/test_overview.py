"""The overview page."""

import html
import re
import time
from pathlib import Path

from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, write_events
from tests.support.records import decided, started

from thoughtgate.web.overview import RANKINGS


def test_sums_and_plots_of_the_calls(client: Client, tmp_path: Path) -> None:
    now = time.time()
    write_events(tmp_path, *(event._replace(at=now - 60) for event in sample_events()))
    text = client.get("/overview").text

    for title in ("Calls over time", "Latency", "Failed calls"):
        assert f"<h2>{title}</h2>" in text
    assert re.search(r"p50 [\d,]+ ms, p95 [\d,]+ ms", text)
    for title, _, _ in RANKINGS.values():
        assert f"<h2>{title}</h2>" in text
    assert "<b>1</b> other messages" in text
    assert "p90</small>" in text
    assert "allowed at once" in text


def test_calls_that_were_all_denied_have_no_curves(client: Client, tmp_path: Path) -> None:
    now = time.time()
    write_events(tmp_path, started("c.1", now), decided("c.1", now, action="BLOCK"))
    text = client.get("/overview").text

    assert "Calls over time" in text
    assert "<h2>Latency</h2>" not in text
    assert "<h2>Failed calls</h2>" not in text


def test_every_number_leads_to_the_calls_that_it_counts(client: Client, tmp_path: Path) -> None:
    now = time.time()
    write_events(tmp_path, *(event._replace(at=now - 60) for event in sample_events()))
    text = client.get("/overview").text
    found = [html.unescape(one) for one in re.findall(r'href="(/calls\?[^"]+)"', text)]
    assert any("since=20" in one and "until=20" in one for one in found), "bars over time"
    for filters in ("decision=BLOCK", "status=OK", "rule=", "approved_by=", "principal="):
        assert any(filters in one for one in found), filters
    for address in found:
        answer = client.get(address).text
        assert "Invalid search" not in answer, address
        counted = re.search(
            rf'href="{re.escape(html.escape(address))}">(?:[^<]*</a> )?<b>([\d,]+)</b>', text
        )
        if counted:
            assert answer.count("<tr data-call=") == int(counted[1]), address


def test_the_overview_of_one_server_counts_only_its_calls(client: Client, tmp_path: Path) -> None:
    now = time.time()
    write_events(tmp_path, *(event._replace(at=now - 60) for event in sample_events()))

    assert "No calls in this period" in client.get("/overview?server=absent").text
    assert "server=absent" in client.get("/overview?server=absent").text


def test_a_time_without_calls_says_so(client: Client, tmp_path: Path) -> None:
    write_events(tmp_path, *sample_events())

    assert "No calls in this period" in client.get("/overview?span=1h").text


def test_a_span_is_a_day_unless_it_is_said_in_whatever_case(client: Client) -> None:
    for query, span in (("", "1d"), ("?span=", "1d"), ("?span=7D", "7d")):
        text = client.get(f"/overview{query}").text
        assert f'href="/overview?span={span}" aria-current="true"' in text


def test_an_odd_span_is_named_and_nothing_is_summed_up(client: Client, tmp_path: Path) -> None:
    now = time.time()
    write_events(tmp_path, *(event._replace(at=now - 60) for event in sample_events()))
    text = client.get("/overview?span=%3Cb%3E").text

    assert "span must be one of 1h, 1d, 7d, 30d, not &lt;b&gt;" in text
    assert "Calls over time" not in text
    assert "aria-current" not in text.partition('class="tabs"')[2].partition("</p>")[0]


def test_a_span_may_be_said_as_for_the_calls(client: Client) -> None:
    assert "since must be one of 1h, 1d, 7d, 30d, not zz" in client.get("/overview?since=zz").text
    assert 'href="/overview?span=7d" aria-current="true"' in client.get("/overview?since=7d").text
