"""Searching, paging and exporting calls."""

import json
import re
from pathlib import Path

import pytest
from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, write_events
from tests.support.records import T0, call, decided, ended, started

from thoughtgate.core.record_events import Record
from thoughtgate.web.call_pages.calls import EXPORT_STEP, SHOWN


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return write_events(tmp_path, *sample_events())


def call_of() -> tuple[str, str]:
    call = next(event.body["call"] for event in sample_events() if event.type == "tool_call_start")
    return call["call_id"], call["tool_name"]


def test_calls_are_listed_with_verdict_and_result(client: Client, record: Path) -> None:
    ident, tool = call_of()
    text = client.get("/calls").text

    assert ident in text
    assert tool in text


def test_a_search_narrows(client: Client, record: Path) -> None:
    ident, tool = call_of()

    assert ident in client.get(f"/calls?tool={tool}&since=").text
    assert ident not in client.get("/calls?tool=nothing-of-the-kind").text
    assert ident not in client.get("/calls?text=zzzzzz").text


@pytest.mark.parametrize("word", ["block", "BLOCK", "Block", "+block+", "denied"])
def test_a_verdict_is_found_in_whatever_case(client: Client, record: Path, word: str) -> None:
    text = client.get(f"/calls?decision={word}").text

    assert "run-1.3" in text
    assert "run-1.2" not in text
    assert '<option value="BLOCK" selected>' in text


def test_a_status_and_a_span_are_found_in_whatever_case(client: Client, record: Path) -> None:
    assert "run-1.3" in client.get("/calls?status=error").text
    text = client.get("/calls?since=2H&decision=").text

    assert "No call matches" in text
    assert '<option value="2h" selected>2h' in text


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("decision=deny", "decision must be one of allowed, held, denied, limited, not deny"),
        (
            "status=%3Cb%3E",
            "status must be one of ok, failed, timeout, cancelled, open, not &lt;b&gt;",
        ),
        ("since=soon", "since must be a duration such as 15m, 1h or 7d, or a time, not soon"),
        ("tool=" + "x" * 201, "tool must have at most 200 characters"),
    ],
)
def test_an_unknown_word_is_named_and_finds_nothing(
    client: Client, record: Path, query: str, fault: str
) -> None:
    text = client.get(f"/calls?{query}").text

    assert fault in text
    assert "run-1." not in text
    assert "No call matches" not in text


@pytest.mark.parametrize(
    "query",
    [
        "decision=NOPE",
        "status='",
        "since=soon",
        "text=%22%27*",
        "server=%00",
        "tool=" + "x" * 5000,
        "text=" + "%F0%9F%92%A9" * 50,
    ],
)
def test_an_odd_search_is_only_a_search(client: Client, record: Path, query: str) -> None:
    assert client.get(f"/calls?{query}").status == 200


def many(tmp_path: Path, count: int) -> Path:
    events: list[Record] = []
    for number in range(count):
        # Several calls begin in the same millisecond.
        events += [event._replace(at=T0 + number // 3) for event in call(number)]
    return write_events(tmp_path, *events)


def listed(text: str) -> list[str]:
    return re.findall(r'<tr data-call="([^"]+)"', text)


def test_pages_follow_one_another_without_a_gap_or_a_repeat(client: Client, tmp_path: Path) -> None:
    many(tmp_path, 2 * SHOWN + 7)
    found, path = [], "/calls?server=files"
    for _ in range(4):
        text = client.get(path).text
        found += listed(text)
        older = re.search(r'<a href="([^"]+)" rel="next">', text)
        if older is None:
            break
        path = older[1].replace("&amp;", "&")

    assert len(found) == len(set(found)) == 2 * SHOWN + 7
    assert "server=files" in path
    assert 'rel="first"' in text


@pytest.mark.parametrize("before", ["x", "1_x", "nan_1", "1e99_1", "1_" + "9" * 40, "1_-1"])
def test_an_odd_position_finds_nothing(client: Client, record: Path, before: str) -> None:
    text = client.get(f"/calls?before={before}").text

    assert "before must be a position" in text
    assert listed(text) == []


def test_what_is_shown_can_be_exported(client: Client, record: Path) -> None:
    page = client.get("/calls/export?format=jsonl&decision=denied")
    assert page.headers["content-type"].startswith("application/x-ndjson")
    assert "attachment" in page.headers["content-disposition"]
    assert [json.loads(line)["call_id"] for line in page.text.splitlines()] == ["run-1.3"]

    lines = client.get("/calls/export?format=csv").text.splitlines()
    assert lines[0].startswith("started_at,run_id,server")
    assert len(lines) == 4
    assert client.get("/calls/export?format=exe").status == 400
    assert client.get("/calls/export?format=csv&decision=nope").status == 400


def test_an_export_has_every_call_that_matches(client: Client, tmp_path: Path) -> None:
    many(tmp_path, EXPORT_STEP + 3)

    assert len(client.get("/calls/export?format=jsonl").text.splitlines()) == EXPORT_STEP + 3


def test_a_tool_that_reports_an_error_has_failed(client: Client, tmp_path: Path) -> None:
    write_events(
        tmp_path,
        started("run-1.1", T0, tool="read_file", preview="{}"),
        decided("run-1.1", T0, tool="read_file"),
        ended("run-1.1", T0 + 1, tool="read_file", is_error=True),
    )

    assert '<span class="chip bad">failed</span>' in client.get("/calls?status=failed").text
    assert "No call matches" in client.get("/calls?status=ok").text


def test_without_a_record_there_are_no_calls(client: Client) -> None:
    assert "No call matches" in client.get("/calls").text
