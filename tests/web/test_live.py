"""The stream of server-sent events."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.consoles import Client, LocalConsole, Stream, write_events
from tests.web.conftest import Gate

from thoughtgate.core.record_events import frame_refused, message_seen
from thoughtgate.web import live

Opener = Callable[[Client, str], Stream]


@pytest.fixture
def streams() -> Iterator[Opener]:
    """Open streams, and close them whatever happens."""
    opened: list[Stream] = []

    def open_stream(client: Client, path: str) -> Stream:
        opened.append(Stream(client, path))
        return opened[-1]

    yield open_stream
    for stream in opened:
        stream.close()


def test_a_new_question_is_told_at_once(streams: Opener, client: Client, gate: Gate) -> None:
    stream = streams(client, "/live")
    assert stream.answer.headers["content-type"].startswith("text/event-stream")
    before = json.loads(stream.next("inbox"))["rev"]
    gate.hold()

    assert json.loads(stream.next("inbox"))["rev"] > before


def test_new_traffic_comes_as_rows(streams: Opener, client: Client, tmp_path: Path) -> None:
    old = frame_refused(1.0, "old", "1", direction="agent_to_server", check="c", kind="k", size=1)
    write_events(tmp_path, old)
    stream = streams(client, "/live?traffic=1")
    stream.next("inbox")
    unjudged = message_seen(2.0, "unjudged", "1", "agent_to_server", "request", "ping", 1)
    write_events(tmp_path, unjudged, old._replace(server="<new>"))

    row = stream.next("row")
    assert row.startswith("<tr")
    assert "&lt;new&gt;" in row


def test_everything_comes_when_asked_for(streams: Opener, client: Client, tmp_path: Path) -> None:
    stream = streams(client, "/live?traffic=1&every=1")
    stream.next("inbox")
    write_events(tmp_path, message_seen(2.0, "s", "1", "agent_to_server", "request", "ping", 1))

    assert "ping" in stream.next("row")


def test_a_stream_ends_with_its_session(
    streams: Opener, console: LocalConsole, client: Client
) -> None:
    stream = streams(client, "/live")
    stream.next("inbox")
    console.console.context.approvals.clock = lambda: 1e12

    while stream.answer.readline():
        pass


def test_a_stream_ends_when_its_browser_signs_out(streams: Opener, client: Client) -> None:
    stream = streams(client, "/live")
    stream.next("inbox")
    client.post("/logout", {"token": client.get("/").token("/logout")})

    while stream.answer.readline():
        pass


def test_not_more_streams_than_a_person_has_tabs(
    streams: Opener, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS", 2)
    for _ in range(2):
        streams(client, "/live").next("inbox")

    assert client.get("/live").status == 503
