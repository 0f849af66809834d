"""Searching calls, and one call's story."""

from pathlib import Path

import pytest
from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, write_events


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


@pytest.mark.parametrize("word", ["block", "BLOCK", "Block", "+block+"])
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
        ("decision=deny", "decision must be one of allow, hold, block, throttle, not deny"),
        ("status=%3Cb%3E", "status must be one of ok, error, timeout, cancelled, not &lt;b&gt;"),
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


def test_one_call_has_its_story(client: Client, record: Path) -> None:
    ident, tool = call_of()
    text = client.get(f"/calls/{ident}").text

    assert ">Events</h2>" in text
    assert tool in text
    assert "verdict" in text


def test_an_unknown_call_is_not_found(client: Client, record: Path) -> None:
    assert client.get("/calls/nothing").status == 404


def test_without_a_record_there_are_no_calls(client: Client) -> None:
    assert "No call matches" in client.get("/calls").text
